"""Build the system tables `partitions` and `buckets`, which sum up the files of each partition and bucket.

Invariant: counts include all live files, also those that batch reads skip; only `buckets` shows the postponed bucket.
Rows are counted as stored, before merges and deletion vectors. The last update is the newest creation time of a file,
also of deleted files.
Source: `PartitionsTable`, `BucketsTable`, `PartitionEntry`, `BucketEntry`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from attrs import define

from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.manifest.merge_entries import mark_live
from paimon.domain.partition.partition_text import format_plain_text
from paimon.domain.partition.row_texts import JAVA_TEXTS, RowTexts
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataField
from paimon.domain.whitespace import is_blank
from paimon.operations.metadata.manifests import read_data_manifests, read_entry_columns, to_entries
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.time_travel import pin_snapshot
from paimon.operations.table_context import TableContext

K = TypeVar("K", bound=Hashable)

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
    grouped = _group_entries(context, lambda e: e.partition if e.bucket >= 0 else None)
    keys = sorted((key for key in grouped if key is not None), key=lambda key: _order_partition(key, fields))
    rows = [{"partition": format_partition_name(context.table, key), **_to_columns(grouped[key])} for key in keys]
    return pa.Table.from_pylist(rows, schema=_PARTITIONS)


def buckets_table(context: TableContext, texts: RowTexts = JAVA_TEXTS) -> pa.Table:
    """Return one row per bucket of a partition, ordered by the values of its columns and the bucket."""
    fields = context.schema.partition_fields
    grouped = _group_entries(context, lambda e: (e.partition, e.bucket))
    rows = [
        {"partition": texts.format_partition(partition, fields), "bucket": bucket, **_to_columns(found)}
        for (partition, bucket), found in sorted(
            grouped.items(), key=lambda item: (_order_partition(item[0][0], fields), item[0][1])
        )
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


@define
class _Group:
    """Sums over the files of a group."""

    rows: int = 0
    size_bytes: int = 0
    files: int = 0
    updated_millis: int | None = None

    def add(self, entry: ManifestEntry, live: bool) -> None:
        """Count one entry of a manifest."""
        millis = entry.file.creation_time_millis
        if millis is not None:
            self.updated_millis = max(self.updated_millis or millis, millis)
        if live:
            self.rows += entry.file.row_count
            self.size_bytes += entry.file.file_size
            self.files += 1


def _group_entries(context: TableContext, key: Callable[[ManifestEntry], K]) -> Mapping[K, _Group]:
    snapshot = pin_snapshot(context).snapshot
    if snapshot is None:
        return {}
    with report_expired(context, snapshot.id):
        columns = read_entry_columns(context, read_data_manifests(context, snapshot))
    grouped: dict[K, _Group] = {}
    for entry, live in zip(to_entries(columns), mark_live(columns).tolist(), strict=True):
        grouped.setdefault(key(entry), _Group()).add(entry, live)
    return {k: group for k, group in grouped.items() if group.files}


def _to_columns(group: _Group) -> dict[str, object]:
    return {
        "record_count": group.rows,
        "file_size_in_bytes": group.size_bytes,
        "file_count": group.files,
        "last_update_time": group.updated_millis,
    }
