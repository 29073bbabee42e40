"""Route rows to dynamic buckets by the hash of their key.

Invariant: rows with equal keys get the same address. Source: `DynamicBucketRow`, `RowKeyExtractor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import evolve

from paimon.domain.bucket.hash_index import MAX_DYNAMIC_BUCKETS
from paimon.domain.bucket.key_hashes import Hashes
from paimon.domain.columns.buffers import combine_column
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.row_hash_columnar import hash_rows
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.operations.buckets.bucket_assigner import BucketAssigner
from paimon.operations.table_context import TableContext
from paimon.operations.write.route import (
    Address,
    Codes,
    assign_task_ids,
    encode_partitions,
    select_columns,
    to_dense_codes,
)


class DynamicRouting:
    """Route rows to the buckets that an assigner chooses."""

    def __init__(self, context: TableContext, assigner: BucketAssigner) -> None:
        self._partition_fields = context.schema.partition_fields
        self._key_fields = context.schema.key_fields
        self._assigner = assigner

    def route(self, table: pa.Table) -> tuple[list[Address], Codes]:
        """Compute the addresses of rows; see `Routing.route`."""
        partitions, codes = encode_partitions(table, self._partition_fields)
        buckets = _map_partitions(partitions, codes, self._hash_keys(table), self._assigner.assign)
        values, codes = to_dense_codes(codes * MAX_DYNAMIC_BUCKETS + buckets)
        pairs = (divmod(value, MAX_DYNAMIC_BUCKETS) for value in values.tolist())
        return [Address(partitions[partition], bucket) for partition, bucket in pairs], codes

    def assign_task_ids(self, table: pa.Table) -> pa.Int32Array:
        """Assign each conformed row to a parallel task, numbered below `dynamic-bucket.assigner-parallelism`."""
        partitions, codes = encode_partitions(table, self._partition_fields)
        tasks = _map_partitions(partitions, codes, self._hash_keys(table), self._assigner.find_tasks)
        return from_numpy(tasks.astype(np.int32))

    def _hash_keys(self, table: pa.Table) -> Hashes:
        keys = [combine_column(table[f.name]) for f in self._key_fields]
        return hash_rows(keys, [f.type for f in self._key_fields])


def _map_partitions(
    partitions: Sequence[bytes],
    codes: Codes,
    hashes: Hashes,
    function: Callable[[bytes, Hashes], npt.NDArray[np.int16] | npt.NDArray[np.int64]],
) -> Codes:
    """Call a function with each partition and the hashes of its rows; return its numbers in the order of the rows."""
    if len(partitions) == 1:
        return function(partitions[0], hashes).astype(np.int64)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(partitions)))
    found = np.empty(len(codes), np.int64)
    for partition, rows in zip(partitions, np.split(order, ends[:-1]), strict=True):
        found[rows] = function(partition, hashes[rows])
    return found


class TaskRouter:
    """Route rows to parallel tasks so that each bucket has one task; each process may have its own router.

    With `ignore_previous`, for overwrites, existing keys have no bucket. `counts` is for postponed tables, as in
    `assign_task_ids`.
    """

    def __init__(
        self,
        context: TableContext,
        tasks: int,
        *,
        ignore_previous: bool,
        counts: Mapping[bytes, int] | None = None,
    ) -> None:
        self._table = context.table
        self._counts = counts
        self._tasks = tasks
        self._dynamic: DynamicRouting | None = None
        if context.table.bucket_mode is BucketMode.DYNAMIC:
            shared = evolve(context.table, options=with_assigners(context.options, tasks))
            assigner = BucketAssigner(context.with_table(shared), ignore_previous=ignore_previous)
            self._dynamic = DynamicRouting(context, assigner)

    def assign_task_ids(self, rows: pa.Table) -> pa.Int32Array:
        """Assign each row to a task; rows have at least the partition columns and the key."""
        if self._dynamic is None:
            return assign_task_ids(self._table, rows, self._tasks, self._counts)
        schema = self._table.schema
        fields = (*schema.partition_fields, *schema.key_fields)
        return self._dynamic.assign_task_ids(select_columns(rows, fields, self._table.table_name))


def with_assigners(options: TableOptions, tasks: int) -> TableOptions:
    """Return the options for writers that share the dynamic buckets of each partition among so many tasks."""
    return options.with_values({"dynamic-bucket.assigner-parallelism": str(tasks)})
