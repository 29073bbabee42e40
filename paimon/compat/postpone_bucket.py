"""Plans of the buckets of postponed tables, and the writers that follow them, by the names of pypaimon.

A coordinator plans the number of buckets of each partition once, and writers of several processes follow the plan.
Source: `pypaimon.write.postpone_bucket`, `pypaimon.write.postpone_batch_table_write`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve

from paimon.builders.write_builder import BatchWriteBuilder as PaimonBatchWriteBuilder
from paimon.compat.data_types import to_paimon_field
from paimon.compat.stored_table import BucketMode, StoredTable
from paimon.compat.system_tables import PeerTexts, read_values
from paimon.compat.write import BatchTableWrite, BatchWriteBuilder
from paimon.domain.bucket.postponed import MAX_BUCKETS, compute_written_buckets
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.row_hash_columnar import count_row_bytes
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.system_table import open_system_table, read_with_texts

Partition = tuple[Any, ...]
_DEFAULT_SIZE = "1 gb"


class PostponeBucketPlan:
    """The numbers of buckets by the values of partitions."""

    def __init__(self, num_buckets: Mapping[Partition, int]) -> None:
        self._num_buckets = {tuple(partition): count for partition, count in num_buckets.items()}

    def to_arrow(self, table: StoredTable) -> pa.RecordBatch:
        """Return the plan as rows: the partition columns, and ``total_buckets``."""
        schema = table.inner.arrow_schema
        fields = [schema.field(name) for name in table.partition_keys]
        if any(len(partition) != len(fields) for partition in self._num_buckets):
            raise ValueError("Bucket plan partition arity does not match the table schema")
        counts = list(self._num_buckets.values())
        if any(isinstance(n, bool) or not isinstance(n, int) or not 0 < n <= MAX_BUCKETS for n in counts):
            raise ValueError("Bucket plan total_buckets must be a positive 32-bit integer")
        columns = [pa.array([p[i] for p in self._num_buckets], column.type) for i, column in enumerate(fields)]
        total = pa.field("total_buckets", pa.int32(), nullable=False)
        return pa.RecordBatch.from_arrays([*columns, pa.array(counts, pa.int32())], schema=pa.schema([*fields, total]))

    def contains(self, partition: Partition) -> bool:
        """Return whether a partition is planned."""
        return tuple(partition) in self._num_buckets

    def num_buckets(self, partition: Partition) -> int:
        """Return the number of buckets of a partition."""
        if tuple(partition) not in self._num_buckets:
            raise ValueError(f"Missing bucket plan for partition {tuple(partition)}")
        return self._num_buckets[tuple(partition)]

    def as_dict(self) -> dict[Partition, int]:
        """Return the numbers of buckets by partition."""
        return dict(self._num_buckets)


class PostponeBucketPlanner:
    """Plan the numbers of buckets of new partitions, by the rows and bytes that are written to them."""

    def __init__(
        self,
        table: StoredTable,
        known_num_buckets: Mapping[Partition, int] | None = None,
        postpone_row_counts: Mapping[Partition, int] | None = None,
    ) -> None:
        if table.bucket_mode() is not BucketMode.POSTPONE_MODE:
            raise ValueError(f"Postpone fixed bucket writes require bucket = -2, got {table.total_buckets}")
        self._table = table
        self._fields = {column.name: to_paimon_field(column) for column in table.fields}
        options = TableOptions.of(table.inner.options)
        if options.postpone_target_rows_per_bucket is None and options.postpone_target_bytes_per_bucket is None:
            options = options.with_values({"postpone.target-size-per-bucket": _DEFAULT_SIZE})
        self._options = options
        self._known = dict(self._read_known() if known_num_buckets is None else known_num_buckets)
        loads = known_num_buckets is None and postpone_row_counts is None
        self._postponed = self._read_postponed() if loads else dict(postpone_row_counts or {})

    def current_plan(self) -> PostponeBucketPlan:
        """Return the plan of the partitions that are known so far."""
        return PostponeBucketPlan(self._known)

    def input_partition_stats(self, data: pa.Table | pa.RecordBatch) -> dict[Partition, tuple[int, int]]:
        """Return the rows, and their bytes as stored rows, of each partition that is not known."""
        table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        fields = [self._fields[name] for name in table.column_names]
        columns = [column.combine_chunks() for column in table.columns]
        sizes = count_row_bytes(columns, [column.type for column in fields]) if len(table) else np.empty(0, np.int64)
        keys = self._table.partition_keys
        if not keys:
            return {} if () in self._known or not len(table) else {(): (len(table), int(sizes.sum()))}
        names = [f"key_{place}" for place in range(len(keys))]
        measured = table.select(keys).rename_columns(names).append_column("size", pa.array(sizes))
        grouped = measured.group_by(names).aggregate([("size", "count"), ("size", "sum")])
        *partitions, counts, sums = (grouped[name].to_pylist() for name in (*names, "size_count", "size_sum"))
        found = dict(zip(zip(*partitions, strict=True), zip(counts, sums, strict=True), strict=True))
        return {partition: stats for partition, stats in found.items() if partition not in self._known}

    def plan(
        self, partition_stats: Mapping[Partition, tuple[int, int]], include_postpone_rows: bool = True
    ) -> PostponeBucketPlan:
        """Plan the partitions of these rows and bytes; their postponed rows count, too, unless they are replaced."""
        for partition, (rows, size_bytes) in partition_stats.items():
            postponed = self._postponed.get(tuple(partition), 0) if include_postpone_rows else 0
            total = -(-size_bytes * (rows + postponed) // rows) if rows else size_bytes
            self._known.setdefault(tuple(partition), compute_written_buckets(self._options, rows + postponed, total))
        return self.current_plan()

    def _read_known(self) -> dict[Partition, int]:
        """Return the number of buckets of each partition that has real buckets."""
        hidden = self._table.inner.context.with_hidden_rows()
        whole = type(self._table)(evolve(self._table.inner, context=hidden), self._table.identifier)
        splits = whole.new_read_builder().new_scan().plan().splits()
        return {tuple(s.partition.values): s.total_buckets for s in splits if s.bucket >= 0 and s.total_buckets > 0}

    def _read_postponed(self) -> dict[Partition, int]:
        """Return the number of postponed rows of each partition that has some."""
        context = self._table.inner.context
        fields = context.schema.partition_fields
        rows = read_with_texts(open_system_table(context, "buckets"), PeerTexts()).to_pylist()
        return {
            tuple(read_values(bytes.fromhex(row["partition"]), fields)): row["record_count"]
            for row in rows
            if row["bucket"] == POSTPONED
        }


class PostponeFixedBucketBatchTableWrite(BatchTableWrite):
    """Write the rows of a postponed table into real buckets, by a plan if there is one."""

    def __init__(
        self,
        table: StoredTable,
        commit_user: str,
        static_partition: Mapping[str, Any] | None = None,
        bucket_plan: PostponeBucketPlan | None = None,
    ) -> None:
        self._plan = bucket_plan
        super().__init__(table, commit_user, static_partition)

    def write_arrow(self, table: pa.Table | pa.RecordBatch, bucket: int | None = None) -> None:
        """Write an Arrow table or batch; the name of the parameter is that of pypaimon."""
        super().write_arrow(table, bucket)

    def _build(self, static_partition: Mapping[str, Any] | None) -> PaimonBatchWriteBuilder:
        builder = super()._build(static_partition)
        return builder if self._plan is None else builder.with_bucket_plan(self._plan.as_dict())


class PostponeFixedBucketWriteBuilder(BatchWriteBuilder):
    """Make writers that put the rows of a postponed table into real buckets at once."""

    def __init__(self, table: StoredTable) -> None:
        if table.bucket_mode() is not BucketMode.POSTPONE_MODE:
            raise ValueError("Only tables with the option 'bucket' = '-2' have postponed buckets.")
        super().__init__(table.copy({"postpone.batch-write-fixed-bucket": "true"}))
        self._bucket_plan: PostponeBucketPlan | None = None

    def with_bucket_plan(self, bucket_plan: PostponeBucketPlan) -> PostponeFixedBucketWriteBuilder:
        """Use the numbers of buckets of a plan."""
        self._bucket_plan = bucket_plan
        return self

    def new_write(self) -> PostponeFixedBucketBatchTableWrite:
        """Return a writer."""
        return PostponeFixedBucketBatchTableWrite(
            self.table, self.commit_user, self.static_partition, self._bucket_plan
        )
