"""Build the system tables about files: `files`, `file_key_ranges`, `file_indexes`, `manifests` and `table_indexes`.

Invariant: one row per live file of the chosen snapshot, also for files of level 0 that batch reads skip, but without
the postponed bucket; or one per metadata file that the snapshot names. Statistics are shown in the current columns; a
column that the file lacks is null.
Source: `FilesTable`, `FileKeyRangesTable`, `FileIndexesTable`, `ManifestsTable`, `TableIndexesTable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from paimon.domain.manifest.entries import FileKind, FileSource, IndexManifestEntry, ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, files_at
from paimon.domain.manifest.file_texts import TEXTS
from paimon.domain.manifest.file_texts_columnar import format_file_columns
from paimon.domain.partition.row_texts import JAVA_TEXTS, RowTexts, format_partition_row
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.arrow_arrays import from_numpy, make_array
from paimon.operations.data_files.file_indexes import read_container
from paimon.operations.data_files.read_data_file import file_format
from paimon.operations.metadata.manifests import (
    read_data_manifests,
    read_index_manifest,
    read_live_columns,
    read_manifest_list,
)
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

_STORED = {
    "schema_id": "_SCHEMA_ID",
    "level": "_LEVEL",
    "record_count": "_ROW_COUNT",
    "file_size_in_bytes": "_FILE_SIZE",
    "min_sequence_number": "_MIN_SEQUENCE_NUMBER",
    "max_sequence_number": "_MAX_SEQUENCE_NUMBER",
    "creation_time": "_CREATION_TIME",
    "deleteRowCount": "_DELETE_ROW_COUNT",
    "first_row_id": "_FIRST_ROW_ID",
    "write_cols": "_WRITE_COLS",
}
"""The columns that show a field of the file records unchanged."""
_SOURCES = make_array([source.name for source in FileSource], pa.string())
_FILES_AT_ONCE = 1 << 16
"""The number of files that are converted together, if the table has few columns."""
_CELLS_AT_ONCE = 1 << 22
"""The number of files times columns that are converted together."""
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
    return _build_table(context, texts, _FILES)


def file_key_ranges_table(context: TableContext, texts: RowTexts = JAVA_TEXTS) -> pa.Table:
    """Return one row per live data file, with its smallest and largest key."""
    return _build_table(context, texts, _KEY_RANGES)


def _build_table(context: TableContext, texts: RowTexts, columns: pa.Schema) -> pa.Table:
    source = _open_source(context, texts)
    return pa.concat_tables([columns.empty_table(), *(_to_rows(source, part, columns) for part in source.parts)])


def file_indexes_table(context: TableContext, texts: RowTexts = JAVA_TEXTS) -> pa.Table:
    """Return one row per file index of a live data file; `.index` files are read up to the end of their heads."""
    source = _open_source(context, texts)
    shared_columns = pa.schema([f for f in _KEY_RANGES if f.name in _INDEXES.names])
    rows: list[dict[str, object]] = []
    for part in source.parts:
        locations = _to_rows(source, part, shared_columns).to_pylist()
        for file, location in zip(files_at(part.files), locations, strict=True):
            container = read_container(context.engine, str(location["file_path"]), file)
            if container is None:
                continue
            shared = location | {
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


@frozen(eq=False)
class _Source:
    """The live files of a table, and the texts and directories of their buckets, each computed once."""

    table: TableDefinition
    parts: Iterable[EntryColumns]
    # those that the files were written with, by id
    schemas: Mapping[int, TableSchema]
    directories: BucketPaths
    texts: RowTexts
    _known: dict[tuple[bytes, int], tuple[str, str]] = field(factory=dict, init=False)

    def find_places(self, part: EntryColumns) -> list[pa.Array]:
        """Return the text of each entry's partition, and the directory of its bucket."""
        pairs, places = np.unique((part.partitions << 32) | part.buckets, return_inverse=True)
        found = [self._find(part.partition_rows[pair >> 32], pair & 0xFFFFFFFF) for pair in pairs.tolist()]
        return [make_array(texts, pa.string()).take(from_numpy(places)) for texts in zip(*found, strict=True)]

    def _find(self, partition: bytes, bucket: int) -> tuple[str, str]:
        key = partition, bucket
        if key not in self._known:
            text = self.texts.format_partition(partition, self.table.schema.partition_fields)
            self._known[key] = text, self.directories.directory(*key)
        return self._known[key]


def _open_source(context: TableContext, texts: RowTexts) -> _Source:
    pinned = pin_snapshot(context)
    directories, own = BucketPaths.of(pinned.table), pinned.table.schema
    if pinned.snapshot is None:
        return _Source(pinned.table, (), {}, directories, texts)
    with report_expired(context, pinned.snapshot.id):
        live = read_live_columns(context, read_data_manifests(context, pinned.snapshot))
    live = live.filter(live.buckets >= 0)
    ids = set(np.unique(live.number("_SCHEMA_ID")).tolist())
    schemas = {own.id: own, **load_schemas(context, ids - {own.id})}
    step = max(1, min(_FILES_AT_ONCE, _CELLS_AT_ONCE // max(len(own.fields), 1)))
    return _Source(pinned.table, live.split(step), schemas, directories, texts)


def _to_rows(source: _Source, part: EntryColumns, columns: pa.Schema) -> pa.Table:
    """Return the rows of entries, with these columns."""
    records = part.files.records()
    partitions, directories = source.find_places(part)
    made = {
        "partition": partitions,
        "bucket": from_numpy(part.buckets),
        "file_path": _join_paths(directories, records),
        "file_format": _find_formats(records.field("_FILE_NAME")),
        "file_source": _SOURCES.take(records.field("_FILE_SOURCE")),
    }
    if any(name in TEXTS.names for name in columns.names):
        texts = format_file_columns(records, source.table, source.schemas, source.texts)
        made |= {name: texts[name] for name in TEXTS.names}
    found = [made[f.name] if f.name in made else records.field(_STORED[f.name]) for f in columns]
    return pa.table([array.cast(f.type) for array, f in zip(found, columns, strict=True)], schema=columns)


def _join_paths(directories: pa.Array, records: pa.StructArray) -> pa.Array:
    """Return the paths of files, as `DataFileMeta.path_in` does."""
    own = pc.binary_join_element_wise(directories, records.field("_FILE_NAME"), "/")
    external = records.field("_EXTERNAL_PATH")
    return pc.if_else(pc.equal(pc.binary_length(external).fill_null(0), 0), own, external)


def _find_formats(names: pa.Array) -> pa.Array:
    """Return the formats in file names, of which only the parts after the first dot differ by format."""
    endings = pc.replace_substring_regex(names, r"^[^.]*\.", "x.").dictionary_encode()
    formats = [file_format(name) for name in endings.dictionary.to_pylist()]
    return make_array(formats, pa.string()).take(endings.indices)


_MANIFESTS = pa.schema(
    [
        ("file_name", pa.string()),
        ("file_size", pa.int64()),
        ("num_added_files", pa.int64()),
        ("num_deleted_files", pa.int64()),
        ("schema_id", pa.int64()),
        ("min_partition_stats", pa.string()),
        ("max_partition_stats", pa.string()),
        ("min_row_id", pa.int64()),
        ("max_row_id", pa.int64()),
    ]
)

_RANGE = pa.struct([("f0", pa.string()), ("f1", pa.int32()), ("f2", pa.int32()), ("_CARDINALITY", pa.int64())])
_TABLE_INDEXES = pa.schema(
    [
        ("partition", pa.string()),
        ("bucket", pa.int32()),
        ("index_type", pa.string()),
        ("file_name", pa.string()),
        ("file_size", pa.int64()),
        ("row_count", pa.int64()),
        ("dv_ranges", pa.list_(_RANGE)),
    ]
)


def manifests_table(context: TableContext) -> pa.Table:
    """Return one row per manifest of the base list, the delta list and the changelog list."""
    snapshot = pin_snapshot(context).snapshot
    named: tuple[ManifestFileMeta, ...] = ()
    if snapshot is not None:
        changelog = snapshot.changelog_manifest_list
        with report_expired(context, snapshot.id):
            named = read_data_manifests(context, snapshot)
            named += () if changelog is None else read_manifest_list(context, changelog)
    return pa.Table.from_pylist([_to_manifest_row(context.table, manifest) for manifest in named], schema=_MANIFESTS)


def _to_manifest_row(table: TableDefinition, manifest: ManifestFileMeta) -> dict[str, object]:
    fields, stats = table.schema.partition_fields, manifest.partition_stats
    return {
        "file_name": manifest.file_name,
        "file_size": manifest.file_size,
        "num_added_files": manifest.num_added_files,
        "num_deleted_files": manifest.num_deleted_files,
        "schema_id": manifest.schema_id,
        "min_partition_stats": format_partition_row(stats.min_values, fields),
        "max_partition_stats": format_partition_row(stats.max_values, fields),
        "min_row_id": manifest.min_row_id,
        "max_row_id": manifest.max_row_id,
    }


def table_indexes_table(context: TableContext, texts: RowTexts = JAVA_TEXTS) -> pa.Table:
    """Return one row per index file: hash indexes and deletion vectors."""
    snapshot = pin_snapshot(context).snapshot
    entries: Sequence[IndexManifestEntry] = ()
    if snapshot is not None and snapshot.index_manifest is not None:
        with report_expired(context, snapshot.id):
            entries = read_index_manifest(context, snapshot.index_manifest)
    rows = [_to_index_row(context.table, entry, texts) for entry in entries if entry.kind is FileKind.ADD]
    return pa.Table.from_pylist(rows, schema=_TABLE_INDEXES)


def _to_index_row(table: TableDefinition, entry: IndexManifestEntry, texts: RowTexts) -> dict[str, object]:
    vectors = entry.deletion_vectors
    names = _RANGE.names
    return {
        "partition": texts.format_partition(entry.partition, table.schema.partition_fields),
        "bucket": entry.bucket,
        "index_type": entry.index_type,
        "file_name": entry.file_name,
        "file_size": entry.file_size,
        "row_count": entry.row_count,
        "dv_ranges": None
        if vectors is None
        else [dict(zip(names, (v.data_file, v.offset, v.length, v.cardinality), strict=True)) for v in vectors],
    }
