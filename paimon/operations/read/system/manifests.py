"""Build the system tables about metadata files: `manifests` and `table_indexes`.

Invariant: one row per file that the chosen snapshot names. Source: `ManifestsTable`, `TableIndexesTable`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestFileMeta
from paimon.domain.partition.row_texts import JAVA_TEXTS, RowTexts, format_partition_row
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.metadata.manifests import read_data_manifests, read_index_manifest, read_manifest_list
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.time_travel import pin_snapshot
from paimon.operations.table_context import TableContext

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
_INDEXES = pa.schema(
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
    return pa.Table.from_pylist(rows, schema=_INDEXES)


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
