"""System tables about data files: `files`, `file_key_ranges`.

Law: one row a live file of the latest (or travelled) snapshot, also those that batch reads hide at level 0, but none
of the postponed bucket; statistics are shown in today's columns: a column that the file lacks is all null. Source:
`FilesTable`, `FileKeyRangesTable`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from paimon.domain.columns.cast import cast
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.row.values import to_array, to_values
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.codec import column_stats
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import DataField, VariantType
from paimon.domain.types.system import SYSTEM_FIELDS
from paimon.operations.read.data_file import file_format
from paimon.operations.read.manifests import data_manifests, live_entries
from paimon.operations.read.schemas import load_schemas
from paimon.operations.read.system.text import key_text, map_text, row_text, stats_text
from paimon.operations.read.time_travel import pin
from paimon.ports.engine import Engine

_PLACE = [
    ("partition", pa.string()),
    ("bucket", pa.int32()),
    ("file_path", pa.string()),
    ("file_format", pa.string()),
    ("schema_id", pa.int64()),
    ("level", pa.int32()),
    ("record_count", pa.int64()),
    ("file_size_in_bytes", pa.int64()),
    ("min_key", pa.string()),
    ("max_key", pa.string()),
]
_KEY_RANGES = pa.schema([*_PLACE, ("first_row_id", pa.int64())])
_FILES = pa.schema(
    [
        *_PLACE,
        ("null_value_counts", pa.string()),
        ("min_value_stats", pa.string()),
        ("max_value_stats", pa.string()),
        ("min_sequence_number", pa.int64()),
        ("max_sequence_number", pa.int64()),
        ("creation_time", pa.timestamp("ms")),
        ("deleteRowCount", pa.int64()),
        ("file_source", pa.string()),
        ("first_row_id", pa.int64()),
        ("write_cols", pa.list_(pa.string())),
    ]
)


def files_table(engine: Engine, table: TableDefinition) -> pa.Table:
    """One row a live data file, with its statistics."""
    now, entries = _entries(engine, table)
    ids = {e.file.schema_id for e in entries} - {now.schema.id}
    schemas = {now.schema.id: now.schema, **load_schemas(engine, table.paths, ids)}
    directories = BucketPaths.of(now)
    rows = [
        {
            **_place(now, directories, e),
            **_content(e.file),
            **_stats(e.file, now.schema, schemas[e.file.schema_id]),
        }
        for e in entries
    ]
    return pa.Table.from_pylist(rows, schema=_FILES)


def file_key_ranges_table(engine: Engine, table: TableDefinition) -> pa.Table:
    """One row a live data file, with its smallest and largest key."""
    now, entries = _entries(engine, table)
    directories = BucketPaths.of(now)
    rows = [{**_place(now, directories, e), "first_row_id": e.file.first_row_id} for e in entries]
    return pa.Table.from_pylist(rows, schema=_KEY_RANGES)


def _entries(engine: Engine, table: TableDefinition) -> tuple[TableDefinition, list[ManifestEntry]]:
    pinned = pin(engine, table)
    if pinned.snapshot is None:
        return pinned.table, []
    live = live_entries(engine, table, data_manifests(engine, table, pinned.snapshot))
    return pinned.table, [entry for entry in live if entry.bucket >= 0]


def _place(table: TableDefinition, directories: BucketPaths, entry: ManifestEntry) -> dict[str, object]:
    schema, file = table.schema, entry.file
    directory = directories.directory(entry.partition, entry.bucket)
    return {
        "partition": row_text(entry.partition, schema.partition_fields),
        "bucket": entry.bucket,
        "file_path": file.external_path or f"{directory}/{file.file_name}",
        "file_format": file_format(file.file_name),
        "schema_id": file.schema_id,
        "level": file.level,
        "record_count": file.row_count,
        "file_size_in_bytes": file.file_size,
        "min_key": key_text(file.min_key, schema.key_fields),
        "max_key": key_text(file.max_key, schema.key_fields),
    }


def _content(file: DataFileMeta) -> dict[str, object]:
    return {
        "min_sequence_number": file.min_sequence_number,
        "max_sequence_number": file.max_sequence_number,
        "creation_time": file.creation_time_millis,
        "deleteRowCount": file.delete_row_count,
        "file_source": None if file.file_source is None else file.file_source.name,
        "first_row_id": file.first_row_id,
        "write_cols": None if file.write_cols is None else list(file.write_cols),
    }


def _stats(file: DataFileMeta, today: TableSchema, written: TableSchema) -> dict[str, object]:
    fields = {f.name: f for f in today.fields}
    if file.value_stats_cols is None and file.write_cols is not None:
        fields = {name: f for name, f in fields.items() if name in file.write_cols}
    stats = _evolved(file, tuple(fields.values()), written)
    return {
        "null_value_counts": map_text((name, s.null_count) for name, s in stats.items()),
        "min_value_stats": stats_text({name: (s.minimum, fields[name].type) for name, s in stats.items()}),
        "max_value_stats": stats_text({name: (s.maximum, fields[name].type) for name, s in stats.items()}),
    }


def _evolved(file: DataFileMeta, fields: tuple[DataField, ...], written: TableSchema) -> Mapping[str, ColumnStats]:
    """What the file's statistics say of the columns of today."""
    by_name = {f.name: f for f in (*written.fields, *SYSTEM_FIELDS)}
    names = file.value_stats_cols if file.value_stats_cols is not None else file.write_cols
    held = written.fields if names is None else [by_name.get(n) or DataField(-1, n, VariantType()) for n in names]
    known = {f.id: (f, s) for f, s in zip(held, column_stats(file.value_stats, [f.type for f in held]), strict=False)}
    ids = {f.id for f in written.fields}
    found: dict[str, ColumnStats] = {}
    for column in fields:
        if column.id in known:
            found[column.name] = _cast(*known[column.id], column)
        else:
            found[column.name] = ColumnStats(null_count=None if column.id in ids else file.row_count)
    return found


def _cast(held: DataField, stats: ColumnStats, wanted: DataField) -> ColumnStats:
    if held.type.with_nullable(True) == wanted.type.with_nullable(True):
        return stats
    bounds = cast(to_array([stats.minimum, stats.maximum], held.type), held.type, wanted.type)
    low, high = to_values(bounds, wanted.type)
    return ColumnStats(low, high, stats.null_count)
