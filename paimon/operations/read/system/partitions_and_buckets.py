"""Build the system tables `partitions` and `buckets`, which sum up the files of each partition and bucket.

Invariant: counts include all live files, also those that batch reads skip; only `buckets` shows the postponed bucket.
Rows are counted as stored, before merges and deletion vectors. The last update is the newest creation time of a file,
also of deleted files.
Source: `PartitionsTable`, `BucketsTable`, `PartitionEntry`, `BucketEntry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.manifest.merge_entries import mark_live
from paimon.domain.partition.partition_text import format_plain_text
from paimon.domain.partition.row_texts import JAVA_TEXTS, RowTexts
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataField
from paimon.domain.whitespace import is_blank
from paimon.operations.metadata.manifests import read_data_manifests, read_entry_columns
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.time_travel import pin_snapshot
from paimon.operations.table_context import TableContext

_UNKNOWN = np.iinfo(np.int64).min

_SUMS = [
    ("record_count", pa.int64()),
    ("file_size_in_bytes", pa.int64()),
    ("file_count", pa.int64()),
    ("last_update_time", pa.timestamp("ms")),
]
_CREATION = [("created_at", pa.timestamp("ms")), ("created_by", pa.string()), ("updated_by", pa.string())]
_PARTITIONS = pa.schema([("partition", pa.string()), *_SUMS, *_CREATION, ("options", pa.string())])
_BUCKETS = pa.schema([("partition", pa.string()), ("bucket", pa.int32()), *_SUMS])


def partitions_table(context: TableContext) -> pa.Table:
    """Return one row per partition, ordered by the values of its columns.

    `created_at`, `created_by`, `updated_by` and `options` are null, because no catalog here records them.
    """
    fields = context.schema.partition_fields
    groups = sorted(_sum_groups(context, by_bucket=False), key=lambda group: _order_partition(group.partition, fields))
    rows = [{"partition": format_partition_name(context.table, g.partition), **g.to_columns()} for g in groups]
    return pa.Table.from_pylist(rows, schema=_PARTITIONS)


def buckets_table(context: TableContext, texts: RowTexts = JAVA_TEXTS) -> pa.Table:
    """Return one row per bucket of a partition, ordered by the values of its columns and the bucket."""
    fields = context.schema.partition_fields
    groups = _sum_groups(context, by_bucket=True)
    groups.sort(key=lambda group: (_order_partition(group.partition, fields), group.bucket))
    rows = [
        {"partition": texts.format_partition(g.partition, fields), "bucket": g.bucket, **g.to_columns()} for g in groups
    ]
    return pa.Table.from_pylist(rows, schema=_BUCKETS)


def _order_partition(partition: bytes, fields: Sequence[DataField]) -> list[tuple[bool, Any]]:
    """Return the key by which partitions are ordered: values by their type; null and blank texts last."""
    values = deserialize(partition, [f.type for f in fields]) if fields else ()
    missing = [v is None or (isinstance(v, str) and is_blank(v)) for v in values]
    return [(m, 0 if m else v) for m, v in zip(missing, values, strict=True)]


def format_partition_name(table: TableDefinition, partition: bytes) -> str:
    """Format a partition as ``k=v/k2=v2``, not escaped."""
    fields, default = table.schema.partition_fields, table.options.partition_default_name
    values = deserialize(partition, [f.type for f in fields]) if fields else ()
    texts = (default if v is None else format_plain_text(v, f.type) for v, f in zip(values, fields, strict=True))
    return "/".join(f"{f.name}={default if is_blank(t) else t}" for f, t in zip(fields, texts, strict=True))


@frozen
class _Group:
    """Sums over the live files of a partition, or of a bucket of it."""

    partition: bytes
    bucket: int
    rows: int
    size_bytes: int
    files: int
    # the newest creation time of a file, also of a deleted one
    updated_millis: int | None

    def to_columns(self) -> dict[str, object]:
        """Return the sums by column."""
        return {
            "record_count": self.rows,
            "file_size_in_bytes": self.size_bytes,
            "file_count": self.files,
            "last_update_time": self.updated_millis,
        }


def _sum_groups(context: TableContext, by_bucket: bool) -> list[_Group]:
    """Sum up the files of each bucket, or of the real buckets of each partition."""
    snapshot = pin_snapshot(context).snapshot
    if snapshot is None:
        return []
    with report_expired(context, snapshot.id):
        entries = read_entry_columns(context, read_data_manifests(context, snapshot))
    live = mark_live(entries)
    if not by_bucket:
        entries, live = entries.filter(entries.buckets >= 0), live[entries.buckets >= 0]
    keys = entries.partitions * (1 << 32) + (entries.buckets if by_bucket else 0)
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    sums = [np.zeros(len(first), np.int64) for _ in range(3)]
    for found, name in zip(sums, ("_ROW_COUNT", "_FILE_SIZE"), strict=False):
        np.add.at(found, places[live], entries.number(name)[live])
    np.add.at(sums[2], places[live], 1)
    updated = np.full(len(first), _UNKNOWN)
    np.maximum.at(updated, places, entries.number("_CREATION_TIME", missing=_UNKNOWN))
    partitions = [entries.partition_rows[number] for number in entries.partitions[first].tolist()]
    times = [None if millis == _UNKNOWN else millis for millis in updated.tolist()]
    columns = (partitions, entries.buckets[first].tolist(), *(found.tolist() for found in sums), times)
    return [group for group in map(_Group, *columns) if group.files]
