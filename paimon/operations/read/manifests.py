"""Reading manifest lists, manifests and index manifests.

Law: these files are immutable, so what was decoded is kept by path and never read twice; a missing or damaged one is
CorruptTable naming it, and so is one of another size than is said of it. Source: `ManifestList`, `ManifestFile`,
`IndexManifestFile`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.manifest.codec import entry_from_record, manifest_from_record
from paimon.domain.manifest.columns import ENTRY_TYPE, EntryColumns, ManifestRecords, entry_columns, files_at
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.index_codec import index_entry_from_record
from paimon.domain.manifest.merge import check_once, live_mask
from paimon.domain.manifest.records.record import Record
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.ports.engine import Engine
from paimon.ports.files import WHOLE_BYTES

T = TypeVar("T")

_KINDS = tuple(FileKind)
_COLUMNS = "columns"
_META_BYTES, _ENTRY_BYTES = 300, 1_000
"""What one decoded object takes in the cache: measured, a manifest's 275 bytes, an entry's 950 with four columns."""
_PLACE_BYTES = 600
"""What the cache's own containers take for one value: its path, keys and dictionaries."""


def read_manifest_list(
    engine: Engine, table: TableDefinition, name: str, size: int | None = None
) -> tuple[ManifestFileMeta, ...]:
    """The manifests that a manifest list names, in its order; `size` is what a snapshot says of the file.

    Each manifest is named once: a list of a few bytes for each entry could have one manifest read as often as it likes.
    """
    found = _decoded(engine, table, name, manifest_from_record, _META_BYTES, size)
    if len({meta.file_name for meta in found}) < len(found):
        twice = next(held for held, count in Counter(m.file_name for m in found).items() if count > 1)
        raise CorruptTable(table.paths.manifest(name), f"names the manifest {twice!r} twice")
    return found


def remember_manifest_list(
    engine: Engine, table: TableDefinition, name: str, manifests: Sequence[ManifestFileMeta]
) -> None:
    """Keep what was just written, so that the next commit of this process need not read it."""
    engine.cache.put(table.paths.manifest(name), tuple(manifests), _PLACE_BYTES + _META_BYTES * len(manifests))


def read_manifest(engine: Engine, table: TableDefinition, name: str) -> tuple[ManifestEntry, ...]:
    """All entries of a manifest, in its order."""
    return _decoded(engine, table, name, entry_from_record, _ENTRY_BYTES)


def read_index_manifest(engine: Engine, table: TableDefinition, name: str) -> tuple[IndexManifestEntry, ...]:
    """All entries of an index manifest, in its order."""
    return _decoded(engine, table, name, index_entry_from_record, _ENTRY_BYTES)


def data_manifests(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
    """The manifests of a snapshot's whole content: base, then delta."""
    base = read_manifest_list(engine, table, snapshot.base_manifest_list, snapshot.base_manifest_list_size)
    return base + read_delta_list(engine, table, snapshot)


def read_delta_list(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
    """The manifests of what a snapshot changed."""
    return read_manifest_list(engine, table, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)


def live_entries(
    engine: Engine, table: TableDefinition, manifests: Sequence[ManifestFileMeta]
) -> list[ManifestEntry]:
    """The files that are live after these manifests, in the order in which they were added."""
    return entries_at(live_columns(engine, table, manifests))


def live_columns(engine: Engine, table: TableDefinition, manifests: Sequence[ManifestFileMeta]) -> EntryColumns:
    """Like `live_entries`, as columns."""
    columns = all_columns(engine, table, manifests)
    live = columns.where(live_mask(columns))
    check_once(live)
    return live


def all_columns(engine: Engine, table: TableDefinition, manifests: Sequence[ManifestFileMeta]) -> EntryColumns:
    """All that these manifests add and delete, as columns."""
    return entry_columns(read_manifest_columns(engine, table, [m.file_name for m in manifests], manifests))


def entries_at(columns: EntryColumns) -> list[ManifestEntry]:
    """Entries as objects."""
    numbers = (columns.kinds, columns.partitions, columns.buckets, columns.total_buckets)
    rows = zip(*(n.tolist() for n in numbers), files_at(columns.files), strict=True)
    return [
        ManifestEntry(_KINDS[kind], columns.partition_rows[partition], bucket, total, file)
        for kind, partition, bucket, total, file in rows
    ]


def read_manifest_columns(
    engine: Engine, table: TableDefinition, names: Sequence[str], said: Sequence[ManifestFileMeta] = ()
) -> list[ManifestRecords]:
    """The entries of manifests as columns; not yet checked.

    Manifests that are read together are decoded, kept and answered as one piece. A file of another size, or
    with more or fewer entries, than a manifest list has `said` of it is corrupt.
    """
    by_name = {name: table.paths.manifest(name) for name in names}
    told = {by_name[meta.file_name]: meta for meta in said if meta.file_name in by_name}
    paths = [by_name[name] for name in names]
    kept = {path: _kept(engine, path) for path in paths}
    missing = [path for path in kept if kept[path] is None]
    if missing:
        files = [(path, _bytes_of(engine, path, told[path].file_size if path in told else None)) for path in missing]
        records, counts = engine.records.read_columns(files, ENTRY_TYPE)
        _check_counts(missing, counts, told)
        piece = ManifestRecords(tuple(missing), tuple(counts), records)
        size = _PLACE_BYTES + records.weight // len(missing)
        for position, path in enumerate(missing):
            kept[path] = (piece, position)
            engine.cache.put(path, (piece, position), size, _COLUMNS)
    return _runs([found for path in paths if (found := kept[path]) is not None])


def _check_counts(paths: Sequence[str], counts: Sequence[int], told: Mapping[str, ManifestFileMeta]) -> None:
    for path, count in zip(paths, counts, strict=True):
        meta = told.get(path)
        said = count if meta is None else meta.num_added_files + meta.num_deleted_files
        if count != said:
            raise CorruptTable(path, f"has {count} entries, and {said} are said of it")


def _kept(engine: Engine, path: str) -> tuple[ManifestRecords, int] | None:
    found = engine.cache.get(path, _COLUMNS)
    return found if isinstance(found, tuple) else None


def _runs(places: Sequence[tuple[ManifestRecords, int]]) -> list[ManifestRecords]:
    """Places in pieces as pieces: neighbours stay together."""
    runs: list[tuple[ManifestRecords, int, int]] = []
    for piece, position in places:
        if runs and runs[-1][0] is piece and runs[-1][2] == position:
            runs[-1] = (piece, runs[-1][1], position + 1)
        else:
            runs.append((piece, position, position + 1))
    return [p if last - first == len(p.paths) else p.part(first, last) for p, first, last in runs]


def _decoded(
    engine: Engine,
    table: TableDefinition,
    name: str,
    decode: Callable[[Record, str], T],
    object_bytes: int,
    size: int | None = None,
) -> tuple[T, ...]:
    path = table.paths.manifest(name)
    kept = engine.cache.get(path)
    if isinstance(kept, tuple):
        return kept
    found = tuple(decode(record, path) for record in engine.records.read_records(_bytes_of(engine, path, size), path))
    engine.cache.put(path, found, _PLACE_BYTES + object_bytes * len(found))
    return found


def _bytes_of(engine: Engine, path: str, size: int | None) -> bytes:
    try:
        data = engine.files.read(path, WHOLE_BYTES if size is None else min(size, WHOLE_BYTES))
    except NotFound as error:
        hint = "its snapshot may have expired while it was read; plan again"
        raise CorruptTable(path, "is named by the table but does not exist", hint=hint) from error
    if size is not None and size != len(data):
        raise CorruptTable(path, f"has {len(data)} bytes, and {size} are said of it")
    return data
