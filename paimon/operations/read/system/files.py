"""Build the system tables about data files: `files`, `file_key_ranges` and `file_indexes`.

Invariant: one row per live file of the chosen snapshot, also for files of level 0 that batch reads skip, but without
the postponed bucket. Statistics are shown in the current columns; a column that the file lacks is null. Source:
`FilesTable`, `FileKeyRangesTable`, `FileIndexesTable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from paimon.domain.columns.cast import cast_column
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.manifest.entry_columns import EntryColumns
from paimon.domain.partition.row_texts import JAVA_TEXTS, RowTexts
from paimon.domain.row.values import to_array, to_values
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.stats.stats_codec import from_simple_stats
from paimon.domain.types.data_types import DataField, VariantType
from paimon.domain.types.system_columns import SYSTEM_FIELDS
from paimon.operations.data_files.file_indexes import read_container
from paimon.operations.data_files.read_data_file import file_format
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns, to_entries
from paimon.operations.metadata.schemas import load_schemas
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.time_travel import pin_snapshot
from paimon.operations.table_context import TableContext

_LOCATION = [
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
_KEY_RANGES = pa.schema([*_LOCATION, ("first_row_id", pa.int64())])
_FILES = pa.schema(
    [
        *_LOCATION,
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

_FILES_AT_ONCE = 1 << 16
"""The number of files whose rows are objects at the same time."""
_INDEXES = pa.schema(
    [
        ("partition", pa.string()),
        ("bucket", pa.int32()),
        ("file_path", pa.string()),
        ("file_size_in_bytes", pa.int64()),
        ("record_count", pa.int64()),
        ("schema_id", pa.int64()),
        ("column_name", pa.string()),
        ("index_type", pa.string()),
        ("storage_type", pa.string()),
        ("index_file_path", pa.string()),
        ("index_size_in_bytes", pa.int64()),
        ("index_container_size_in_bytes", pa.int64()),
        ("is_empty", pa.bool_()),
    ]
)


def files_table(context: TableContext, texts: RowTexts = JAVA_TEXTS) -> pa.Table:
    """Return one row per live data file, with its statistics."""
    now, parts, schemas = _read_entries(context)
    places = _Places(now, BucketPaths.of(now), texts)
    tables = [_FILES.empty_table()]
    for entries in parts:
        rows = [
            {
                **_to_location(places, e, schemas[e.file.schema_id]),
                **_to_content(e.file),
                **_to_stats(e.file, now.schema, schemas[e.file.schema_id], texts),
            }
            for e in entries
        ]
        tables.append(pa.Table.from_pylist(rows, schema=_FILES))
    return pa.concat_tables(tables)


def file_key_ranges_table(context: TableContext, texts: RowTexts = JAVA_TEXTS) -> pa.Table:
    """Return one row per live data file, with its smallest and largest key."""
    now, parts, schemas = _read_entries(context)
    places = _Places(now, BucketPaths.of(now), texts)
    tables = [_KEY_RANGES.empty_table()]
    for entries in parts:
        rows = [
            {**_to_location(places, e, schemas[e.file.schema_id]), "first_row_id": e.file.first_row_id} for e in entries
        ]
        tables.append(pa.Table.from_pylist(rows, schema=_KEY_RANGES))
    return pa.concat_tables(tables)


def file_indexes_table(context: TableContext, texts: RowTexts = JAVA_TEXTS) -> pa.Table:
    """Return one row per file index of a live data file; `.index` files are read up to the end of their heads."""
    now, parts, schemas = _read_entries(context)
    places = _Places(now, BucketPaths.of(now), texts)
    rows: list[dict[str, object]] = []
    for entry in chain.from_iterable(parts):
        location = _to_location(places, entry, schemas[entry.file.schema_id])
        container = read_container(context.engine, str(location["file_path"]), entry.file)
        if container is None:
            continue
        shared = {name: location[name] for name in _INDEXES.names if name in location} | {
            "storage_type": "EMBEDDED" if container.path is None else "FILE",
            "index_file_path": container.path,
            "index_container_size_in_bytes": container.size_bytes,
        }
        rows += [
            {**shared, "column_name": e.column, "index_type": e.kind, "index_size_in_bytes": e.length,
             "is_empty": e.is_empty}
            for e in container.entries
        ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=_INDEXES)


def _read_entries(
    context: TableContext,
) -> tuple[TableDefinition, Iterator[list[ManifestEntry]], Mapping[int, TableSchema]]:
    """Return the table, its live files in parts, and the schemas that they were written with, by id."""
    pinned = pin_snapshot(context)
    if pinned.snapshot is None:
        return pinned.table, iter(()), {}
    with report_expired(context, pinned.snapshot.id):
        live = read_live_columns(context, read_data_manifests(context, pinned.snapshot))
    live, own = live.filter(live.buckets >= 0), pinned.table.schema
    ids = set(np.unique(live.number("_SCHEMA_ID")).tolist())
    return pinned.table, _iterate_parts(live), {own.id: own, **load_schemas(context, ids - {own.id})}


def _iterate_parts(live: EntryColumns) -> Iterator[list[ManifestEntry]]:
    rows = np.arange(len(live))
    for start in range(0, len(live), _FILES_AT_ONCE):
        yield to_entries(live.filter((rows >= start) & (rows < start + _FILES_AT_ONCE)))


@frozen(eq=False)
class _Places:
    """The texts and directories of buckets, each computed once."""

    table: TableDefinition
    directories: BucketPaths
    texts: RowTexts
    _known: dict[tuple[bytes, int], tuple[str, str]] = field(factory=dict, init=False)

    def find(self, entry: ManifestEntry) -> tuple[str, str]:
        """Return the text of the entry's partition, and the directory of its bucket."""
        key = entry.partition, entry.bucket
        if key not in self._known:
            text = self.texts.format_partition(entry.partition, self.table.schema.partition_fields)
            self._known[key] = text, self.directories.directory(*key)
        return self._known[key]


def _to_location(places: _Places, entry: ManifestEntry, written: TableSchema) -> dict[str, object]:
    file, texts = entry.file, places.texts
    bounds = places.table.get_bound_fields(file.level, written)
    partition, directory = places.find(entry)
    return {
        "partition": partition,
        "bucket": entry.bucket,
        "file_path": file.path_in(directory),
        "file_format": file_format(file.file_name),
        "schema_id": file.schema_id,
        "level": file.level,
        "record_count": file.row_count,
        "file_size_in_bytes": file.file_size,
        "min_key": texts.format_key(file.min_key, bounds),
        "max_key": texts.format_key(file.max_key, bounds),
    }


def _to_content(file: DataFileMeta) -> dict[str, object]:
    return {
        "min_sequence_number": file.min_sequence_number,
        "max_sequence_number": file.max_sequence_number,
        "creation_time": file.creation_time_millis,
        "deleteRowCount": file.delete_row_count,
        "file_source": None if file.file_source is None else file.file_source.name,
        "first_row_id": file.first_row_id,
        "write_cols": None if file.write_cols is None else list(file.write_cols),
    }


def _to_stats(file: DataFileMeta, today: TableSchema, written: TableSchema, texts: RowTexts) -> dict[str, object]:
    fields = {f.name: f for f in today.fields}
    if file.value_stats_cols is None and file.write_cols is not None:
        fields = {name: f for name, f in fields.items() if name in file.write_cols}
    stats = _evolve_stats(file, tuple(fields.values()), written)
    return {
        "null_value_counts": texts.format_counts({name: s.null_count for name, s in stats.items()}),
        "min_value_stats": texts.format_stats({name: (s.minimum, fields[name].type) for name, s in stats.items()}),
        "max_value_stats": texts.format_stats({name: (s.maximum, fields[name].type) for name, s in stats.items()}),
    }


def _evolve_stats(file: DataFileMeta, fields: tuple[DataField, ...], written: TableSchema) -> Mapping[str, ColumnStats]:
    """Convert the statistics of a file to the current columns."""
    by_name = {f.name: f for f in (*written.fields, *SYSTEM_FIELDS)}
    names = file.value_stats_cols if file.value_stats_cols is not None else file.write_cols
    held = written.fields if names is None else [by_name.get(n) or DataField(-1, n, VariantType()) for n in names]
    known = {
        f.id: (f, s) for f, s in zip(held, from_simple_stats(file.value_stats, [f.type for f in held]), strict=False)
    }
    ids = {f.id for f in written.fields}
    found: dict[str, ColumnStats] = {}
    for column in fields:
        if column.id in known:
            found[column.name] = _cast_stats(*known[column.id], column)
        else:
            found[column.name] = ColumnStats(null_count=None if column.id in ids else file.row_count)
    return found


def _cast_stats(held: DataField, stats: ColumnStats, wanted: DataField) -> ColumnStats:
    if held.type.with_nullable(True) == wanted.type.with_nullable(True):
        return stats
    try:
        bounds = cast_column(to_array([stats.minimum, stats.maximum], held.type), held.type, wanted.type)
    except (InvalidRequest, Unsupported):  # a read of the file fails there, too
        return ColumnStats(null_count=stats.null_count)
    low, high = to_values(bounds, wanted.type)
    return ColumnStats(low, high, stats.null_count)
