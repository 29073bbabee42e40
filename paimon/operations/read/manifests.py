"""Reading manifest lists, manifests and index manifests.

Law: these files are immutable, so what was decoded is kept by path and never read twice; a missing or damaged one is
CorruptTable naming it. Source: `ManifestList`, `ManifestFile`, `IndexManifestFile`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.manifest.codec import entry_from_record, manifest_from_record
from paimon.domain.manifest.columns import ENTRY_TYPE, entry_columns, files_at
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.index_codec import index_entry_from_record
from paimon.domain.manifest.merge import live_mask
from paimon.domain.manifest.records import Record
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.ports.engine import Engine

T = TypeVar("T")

_OBJECT_BYTES = 1_000
"""What one decoded record weighs in the cache, roughly."""


def read_manifest_list(engine: Engine, table: TableDefinition, name: str) -> tuple[ManifestFileMeta, ...]:
    """The manifests that a manifest list names, in its order."""
    return _decoded(engine, table, name, manifest_from_record)


def read_manifest(engine: Engine, table: TableDefinition, name: str) -> tuple[ManifestEntry, ...]:
    """All entries of a manifest, in its order."""
    return _decoded(engine, table, name, entry_from_record)


def read_index_manifest(engine: Engine, table: TableDefinition, name: str) -> tuple[IndexManifestEntry, ...]:
    """All entries of an index manifest, in its order."""
    return _decoded(engine, table, name, index_entry_from_record)


def data_manifests(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
    """The manifests of a snapshot's whole content: base, then delta."""
    base = read_manifest_list(engine, table, snapshot.base_manifest_list)
    return base + read_manifest_list(engine, table, snapshot.delta_manifest_list)


def live_entries(
    engine: Engine, table: TableDefinition, manifests: Sequence[ManifestFileMeta]
) -> list[ManifestEntry]:
    """The files that are live after these manifests, in the order in which they were added."""
    columns = entry_columns(read_manifest_columns(engine, table, [m.file_name for m in manifests]))
    live = columns.where(live_mask(columns))
    parts = zip(live.partitions.tolist(), live.buckets.tolist(), live.total_buckets.tolist(), strict=True)
    return [
        ManifestEntry(FileKind.ADD, live.partition_rows[partition], bucket, total, file)
        for (partition, bucket, total), file in zip(parts, files_at(live.files), strict=True)
    ]


def read_manifest_columns(
    engine: Engine, table: TableDefinition, names: Sequence[str]
) -> list[tuple[str, pa.StructArray]]:
    """The entries of manifests as columns, each with its path; not yet checked."""
    paths = [table.paths.manifest(name) for name in names]
    return [(path, _columns_of(engine, path)) for path in paths]


def _columns_of(engine: Engine, path: str) -> pa.StructArray:
    key = f"columns:{path}"
    kept = engine.cache.get(key)
    if isinstance(kept, pa.StructArray):
        return kept
    found = pa.array(engine.records.read_records(_bytes_of(engine, path), path), ENTRY_TYPE)
    engine.cache.put(key, found, found.nbytes)
    return found


def _decoded(
    engine: Engine, table: TableDefinition, name: str, decode: Callable[[Record, str], T]
) -> tuple[T, ...]:
    path = table.paths.manifest(name)
    kept = engine.cache.get(path)
    if isinstance(kept, tuple):
        return kept
    found = tuple(decode(record, path) for record in engine.records.read_records(_bytes_of(engine, path), path))
    engine.cache.put(path, found, _OBJECT_BYTES * len(found))
    return found


def _bytes_of(engine: Engine, path: str) -> bytes:
    try:
        return engine.files.read(path)
    except NotFound as error:
        hint = "its snapshot may have expired while it was read; plan again"
        raise CorruptTable(path, "is named by the table but does not exist", hint=hint) from error
