"""Read manifest lists, manifests and index manifests.

Invariant: these files are immutable, so the decoded content is cached by path. A file that is missing or damaged, or
that has another size than the file that names it records, is CorruptTable with its path.

Source: `ManifestList`, `ManifestFile`, `IndexManifestFile`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from attrs import evolve

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.manifest.entries import (
    DELETION_VECTORS,
    FileKind,
    IndexManifestEntry,
    ManifestEntry,
    ManifestFileMeta,
    count_statistics_bytes,
)
from paimon.domain.manifest.entry_codec import Record, entry_from_record, index_entry_from_record, manifest_from_record
from paimon.domain.manifest.entry_columns import ENTRY_TYPE, EntryColumns, ManifestRecords, entry_columns, files_at
from paimon.domain.manifest.merge_entries import check_added_once, mark_live
from paimon.domain.paths import check_stored_segment, check_within, join_path
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DeletionFile
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import WHOLE_BYTES

T = TypeVar("T")
_KINDS = tuple(FileKind)
_COLUMNS = "columns"
_META_BYTES, _ENTRY_BYTES = 300, 1_000
"""Size of one decoded object in the cache. Measured: 275 bytes for a manifest, 950 for an entry with four columns."""
_BYTES_AT_ONCE = 1 << 20
"""The stored bytes of manifests that are decoded together; their records have about ten times as many."""
_SEARCHED_BYTES = 2 << 20
"""The stored bytes of manifests from which on those of few partitions are searched for, and not cached.

Fewer bytes are decoded in 0.15 s, and then serve all partitions.
"""
_MAX_CACHED_ENTRIES = 100
_CACHE_ENTRY_BYTES = 600
"""Size of the containers of one cached value: its path, keys and dictionaries."""


def read_manifest_list(context: TableContext, name: str, size: int | None = None) -> tuple[ManifestFileMeta, ...]:
    """Return the manifests of a manifest list, in its order.

    `size` is the size in bytes that the snapshot records. A list that names a manifest twice is `CorruptTable`: a few
    bytes could otherwise make one manifest be read any number of times.
    """
    found = _read_decoded(context, name, manifest_from_record, _META_BYTES, size)
    if len({meta.file_name for meta in found}) < len(found):
        repeated = next(name for name, count in Counter(m.file_name for m in found).items() if count > 1)
        raise CorruptTable(context.paths.manifest(name), f"names the manifest {repeated!r} twice")
    return found


def cache_manifest_list(context: TableContext, name: str, manifests: Sequence[ManifestFileMeta]) -> None:
    """Cache a manifest list that was just written, so that the next commit of this process does not read it."""
    context.engine.cache.put(
        context.paths.manifest(name), tuple(manifests), _CACHE_ENTRY_BYTES + _META_BYTES * len(manifests)
    )


def cache_manifest(context: TableContext, name: str, entries: Sequence[ManifestEntry]) -> None:
    """Cache a small manifest that was just written: the next writer of this process reads it."""
    if len(entries) <= _MAX_CACHED_ENTRIES:
        context.engine.cache.put(context.paths.manifest(name), tuple(entries), _weigh(entries, _ENTRY_BYTES))


def _weigh(found: Sequence[object], object_bytes: int) -> int:
    """Return about how many bytes decoded objects have in the cache."""
    files = (entry.file for entry in found if isinstance(entry, ManifestEntry))
    return _CACHE_ENTRY_BYTES + object_bytes * len(found) + count_statistics_bytes(files)


def read_manifest(context: TableContext, name: str) -> tuple[ManifestEntry, ...]:
    """Return all entries of a manifest, in its order."""
    return _read_decoded(context, name, entry_from_record, _ENTRY_BYTES)


def read_index_manifest(context: TableContext, name: str) -> tuple[IndexManifestEntry, ...]:
    """Return all entries of an index manifest, in its order."""
    return _read_decoded(context, name, index_entry_from_record, _ENTRY_BYTES)


def read_data_manifests(context: TableContext, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
    """Return the manifests of all data files of a snapshot: those of the base list, then those of the delta list."""
    base = read_manifest_list(context, snapshot.base_manifest_list, snapshot.base_manifest_list_size)
    return base + read_delta_list(context, snapshot)


def read_delta_list(context: TableContext, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
    """Return the manifests of the changes of a snapshot."""
    return read_manifest_list(context, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)


def read_live_entries(context: TableContext, manifests: Sequence[ManifestFileMeta]) -> list[ManifestEntry]:
    """Return the entries of the files that are live after these manifests, in the order in which they were added."""
    return to_entries(read_live_columns(context, manifests))


def read_live_columns(context: TableContext, manifests: Sequence[ManifestFileMeta]) -> EntryColumns:
    """Return the same entries as `read_live_entries`, as columns."""
    columns = read_entry_columns(context, manifests)
    live = columns.filter(mark_live(columns))
    check_added_once(live)
    return live


def read_entry_columns(context: TableContext, manifests: Sequence[ManifestFileMeta]) -> EntryColumns:
    """Return all ADD and DELETE entries of these manifests, as columns."""
    return entry_columns(read_manifest_columns(context, [m.file_name for m in manifests], manifests))


def to_entries(columns: EntryColumns) -> list[ManifestEntry]:
    """Convert columns to entry objects."""
    numbers = (columns.kinds, columns.partitions, columns.buckets, columns.total_buckets)
    rows = zip(*(n.tolist() for n in numbers), files_at(columns.files), strict=True)
    return [
        ManifestEntry(_KINDS[kind], columns.partition_rows[partition], bucket, total, file)
        for kind, partition, bucket, total, file in rows
    ]


def read_manifest_columns(
    context: TableContext,
    names: Sequence[str],
    recorded: Sequence[ManifestFileMeta] = (),
    partitions: Collection[bytes] = (),
) -> list[ManifestRecords]:
    """Return the entries of manifests as columns, before any check of their values.

    Manifests that are not cached are decoded, cached and returned together. The result is in the order of `names`;
    adjacent manifests may share one element. Of `recorded`, only sizes and numbers of entries are compared. If
    `partitions` are given, entries of others may be missing.
    """
    by_name = {name: context.paths.manifest(name) for name in names}
    recorded_by_path = {by_name[meta.file_name]: meta for meta in recorded if meta.file_name in by_name}
    paths = [by_name[name] for name in names]
    cached = {path: _find_cached_records(context.engine, path) for path in paths}
    missing = [path for path in cached if cached[path] is None]
    if sum(recorded_by_path[path].file_size for path in missing if path in recorded_by_path) < _SEARCHED_BYTES:
        partitions = ()
    for piece in _decode_missing(context.engine, missing, recorded_by_path, partitions):
        size = _CACHE_ENTRY_BYTES + piece.records.weight // len(piece.paths)
        for position, path in enumerate(piece.paths):
            cached[path] = (piece, position)
            if not partitions:
                context.engine.cache.put(path, (piece, position), size, _COLUMNS)
    return _join_adjacent([found for path in paths if (found := cached[path]) is not None])


def _decode_missing(
    engine: Engine,
    paths: Sequence[str],
    recorded_by_path: Mapping[str, ManifestFileMeta],
    partitions: Collection[bytes],
) -> Iterator[ManifestRecords]:
    """Read and decode manifests, as many together as are small: decoding takes memory in proportion to them."""
    files: list[tuple[str, bytes]] = []
    left_out: list[int] = []
    size = 0
    for path in paths:
        meta = recorded_by_path.get(path)
        data, count = _read_bytes(engine, path, None if meta is None else meta.file_size), 0
        if partitions:
            data, count = engine.records.select_blocks(data, path, partitions)
        files.append((path, data))
        left_out.append(count)
        size += len(data)
        if path == paths[-1] or size >= _BYTES_AT_ONCE:
            records, counts = engine.records.read_columns(files, ENTRY_TYPE)
            names = [path for path, _ in files]
            _check_counts(names, [a + b for a, b in zip(counts, left_out, strict=True)], recorded_by_path)
            yield ManifestRecords(tuple(names), tuple(counts), records)
            files, left_out, size = [], [], 0


def _check_counts(
    paths: Sequence[str], counts: Sequence[int], recorded_by_path: Mapping[str, ManifestFileMeta]
) -> None:
    """Check the number of entries of each manifest against what its manifest list records."""
    for path, count in zip(paths, counts, strict=True):
        meta = recorded_by_path.get(path)
        recorded = count if meta is None else meta.num_added_files + meta.num_deleted_files
        if count != recorded:
            raise CorruptTable(path, f"has {count} entries, but its manifest list records {recorded}")


def _find_cached_records(engine: Engine, path: str) -> tuple[ManifestRecords, int] | None:
    found = engine.cache.get(path, _COLUMNS)
    return found if isinstance(found, tuple) else None


def _join_adjacent(positions: Sequence[tuple[ManifestRecords, int]]) -> list[ManifestRecords]:
    """Return the parts of decoded pieces at these positions; adjacent positions stay in one part."""
    runs: list[tuple[ManifestRecords, int, int]] = []
    for piece, position in positions:
        if runs and runs[-1][0] is piece and runs[-1][2] == position:
            runs[-1] = (piece, runs[-1][1], position + 1)
        else:
            runs.append((piece, position, position + 1))
    return [p if last - first == len(p.paths) else p.part(first, last) for p, first, last in runs]


def _read_decoded(
    context: TableContext,
    name: str,
    decode: Callable[[Record, str], T],
    object_bytes: int,
    size: int | None = None,
) -> tuple[T, ...]:
    """Return the decoded records of a file, from the cache or the storage."""
    path = context.paths.manifest(name)
    cached = context.engine.cache.get(path)
    if isinstance(cached, tuple):
        return cached
    found = tuple(
        decode(record, path)
        for record in context.engine.records.read_records(_read_bytes(context.engine, path, size), path)
    )
    context.engine.cache.put(path, found, _weigh(found, object_bytes))
    return found


def _read_bytes(engine: Engine, path: str, size: int | None) -> bytes:
    """Read a whole file, and check its size."""
    try:
        data = engine.files.read(path, WHOLE_BYTES if size is None else min(size, WHOLE_BYTES))
    except NotFound as error:
        hint = "its snapshot may have expired during the read: plan the scan again"
        raise CorruptTable(path, "does not exist, but the table references it", hint=hint) from error
    if size is not None and size != len(data):
        raise CorruptTable(path, f"has {len(data)} bytes, but the table records {size}")
    return data


def find_deletion_files(context: TableContext, snapshot: Snapshot) -> Mapping[BucketKey, Mapping[str, DeletionFile]]:
    """Return the location of each deletion vector, by bucket, then by the name of its data file."""
    if snapshot.index_manifest is None:
        return {}
    source = context.paths.manifest(snapshot.index_manifest)
    found: dict[BucketKey, dict[str, DeletionFile]] = {}
    for entry in read_index_manifest(context, snapshot.index_manifest):
        if entry.kind is FileKind.DELETE:
            continue
        if entry.index_type != DELETION_VECTORS:
            if entry.deletion_vectors:
                raise CorruptTable(source, f"contains deletion vectors in an index of type {entry.index_type!r:.80}")
            continue
        path = index_path(context.table, entry, source)
        files = found.setdefault((entry.partition, entry.bucket), {})
        for vector in entry.deletion_vectors or ():
            if vector.data_file in files:
                raise CorruptTable(source, f"names two deletion vectors for data file {vector.data_file!r}")
            files[vector.data_file] = DeletionFile(path, vector)
    return found


def index_path(table: TableDefinition, entry: IndexManifestEntry, source: str) -> str:
    """Return the path of an index file: the external path, or in the bucket or index directory, as the options say.

    `source` is the file that names the index file, for error messages. Raises `CorruptTable` if the path lies outside
    the table and its allowed roots.
    """
    if entry.external_path is not None:
        return check_within(entry.external_path, table.roots, source)
    if table.options.index_file_in_data_file_dir and entry.global_index is None:
        directory = BucketPaths.of(table).directory(entry.partition, entry.bucket)
        return join_path(directory, check_stored_segment(entry.file_name, source))
    return table.paths.index(entry.file_name, source)


def place_index_file(table: TableDefinition, entry: IndexManifestEntry) -> IndexManifestEntry:
    """Return the entry of a new index file with its external path, if index files are next to external data files."""
    external = table.external_paths if table.options.index_file_in_data_file_dir else None
    if external is None:
        return entry
    directory = BucketPaths.of(table).directory(entry.partition, entry.bucket)
    return evolve(entry, external_path=external.path_of(directory, entry.file_name))
