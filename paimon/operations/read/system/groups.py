"""System tables that sum up files: `partitions`, `buckets`.

Law: counts are of all live files, also those that batch reads hide; only buckets show the postponed one; rows are
physical. The last update is when the youngest file was made, also of those that a manifest tells to be gone.
Source: `PartitionsTable`, `BucketsTable`, `PartitionEntry`, `BucketEntry`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import pyarrow as pa
from attrs import define

from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.manifest.merge import live_mask
from paimon.domain.partition.text import plain_text
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.whitespace import is_blank
from paimon.operations.read.manifests import all_columns, data_manifests, entries_at
from paimon.operations.read.system.text import row_text
from paimon.operations.read.time_travel import pin
from paimon.ports.engine import Engine

K = TypeVar("K", bound=Hashable)

_SUMS = [
    ("record_count", pa.int64()),
    ("file_size_in_bytes", pa.int64()),
    ("file_count", pa.int64()),
    ("last_update_time", pa.timestamp("ms")),
]
_WHO = [("created_at", pa.timestamp("ms")), ("created_by", pa.string()), ("updated_by", pa.string())]
_PARTITIONS = pa.schema([("partition", pa.string()), *_SUMS, *_WHO, ("options", pa.string())])
_BUCKETS = pa.schema([("partition", pa.string()), ("bucket", pa.int32()), *_SUMS])


def partitions_table(engine: Engine, table: TableDefinition) -> pa.Table:
    """One row a partition."""
    grouped = _grouped(engine, table, lambda e: e.partition if e.bucket >= 0 else None)
    rows = [
        {"partition": partition_name(table, key), **_sums(found)} for key, found in grouped.items() if key is not None
    ]
    return pa.Table.from_pylist(rows, schema=_PARTITIONS)


def buckets_table(engine: Engine, table: TableDefinition) -> pa.Table:
    """One row a bucket of a partition."""
    fields = table.schema.partition_fields
    grouped = _grouped(engine, table, lambda e: (e.partition, e.bucket))
    rows = [
        {"partition": row_text(partition, fields), "bucket": bucket, **_sums(found)}
        for (partition, bucket), found in grouped.items()
    ]
    return pa.Table.from_pylist(rows, schema=_BUCKETS)


def partition_name(table: TableDefinition, partition: bytes) -> str:
    """A partition as ``k=v/k2=v2``, not escaped."""
    fields, default = table.schema.partition_fields, table.options.partition_default_name
    values = deserialize(partition, [f.type for f in fields]) if fields else ()
    texts = (default if v is None else plain_text(v, f.type) for v, f in zip(values, fields, strict=True))
    return "/".join(f"{f.name}={default if is_blank(t) else t}" for f, t in zip(fields, texts, strict=True))


@define
class _Group:
    """Sums of some live files."""

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


def _grouped(engine: Engine, table: TableDefinition, key: Callable[[ManifestEntry], K]) -> Mapping[K, _Group]:
    snapshot = pin(engine, table).snapshot
    if snapshot is None:
        return {}
    columns = all_columns(engine, table, data_manifests(engine, table, snapshot))
    grouped: dict[K, _Group] = {}
    for entry, live in zip(entries_at(columns), live_mask(columns).tolist(), strict=True):
        grouped.setdefault(key(entry), _Group()).add(entry, live)
    return {k: group for k, group in grouped.items() if group.files}


def _sums(group: _Group) -> dict[str, object]:
    return {
        "record_count": group.rows,
        "file_size_in_bytes": group.size_bytes,
        "file_count": group.files,
        "last_update_time": group.updated_millis,
    }
