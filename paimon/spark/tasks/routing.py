"""Decide which Spark task writes which rows, so that each bucket has one writer.

Invariant: the function of the embedded writer computes the bucket of a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import evolve, field, frozen
from pyspark.sql import SparkSession

from paimon.adapters.executors.spark import get_parallelism
from paimon.domain.bucket.postponed import compute_parallel_buckets
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import HashIndexConflict, InvalidRequest
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.operations.table_context import TableContext
from paimon.operations.write.postponed import read_bucket_counts
from paimon.operations.write.route import TaskRouter


def choose_tasks(spark: SparkSession, table: TableDefinition, tasks: int | None = None) -> int:
    """Return the number of tasks that write a table: `tasks` if given, else the option of dynamic-bucket tables.

    Without either, it is Spark's default parallelism.
    """
    is_dynamic = table.bucket_mode in (BucketMode.DYNAMIC, BucketMode.CROSS_PARTITION)
    chosen = table.options.dynamic_bucket_assigner_parallelism if is_dynamic else None
    return tasks or chosen or get_parallelism(spark)


def list_task_options(table: TableDefinition, tasks: int) -> dict[str, str]:
    """Return the options with which tasks write a table.

    Tasks that write dynamic buckets share those of each partition. Partitions of postponed tables get a bucket for each
    task. If rows are not routed, several tasks share a bucket, and each would compact it, so compaction is disabled.
    """
    if table.bucket_mode is BucketMode.DYNAMIC:
        return {"dynamic-bucket.assigner-parallelism": str(tasks)}
    if not is_routed(table):
        return {"write-only": "true"}
    if table.bucket_mode is BucketMode.POSTPONED:
        return {"postpone.default-bucket-num": str(compute_parallel_buckets(table.options, tasks))}
    return {}


def with_task_options(context: TableContext, tasks: int) -> TableContext:
    """Return the table as tasks write it; see `list_task_options`."""
    options = context.options.with_values(list_task_options(context.table, tasks))
    return context.with_table(evolve(context.table, options=options))


def is_routed(table: TableDefinition) -> bool:
    """Return whether each row has a task that writes its bucket."""
    mode = table.bucket_mode
    if mode is BucketMode.POSTPONED:
        return table.options.postpone_batch_write_fixed_bucket
    return mode is not BucketMode.UNAWARE


def read_task_bucket_counts(context: TableContext) -> Mapping[bytes, int] | None:
    """Return the number of buckets of each partition of a postponed table; None for other tables."""
    return read_bucket_counts(context) if context.table.bucket_mode is BucketMode.POSTPONED else None


@frozen(eq=False)
class RowRouting:
    """Which task writes a row; a picklable value, from which each task opens a router."""

    # The table with the options of the writing tasks
    context: TableContext
    tasks: int
    # Number of buckets by partition, for postponed tables only
    counts: Mapping[bytes, int] | None = None

    @classmethod
    def of(cls, context: TableContext, tasks: int) -> RowRouting:
        """Return the routing to so many tasks."""
        return cls(with_task_options(context, tasks), tasks, read_task_bucket_counts(context))

    def open(self, own_number: int) -> RowRouter:
        """Return the router of the task with a number; it writes rows that belong to no bucket itself."""
        if not is_routed(self.context.table):
            return RowRouter(None, own_number % self.tasks)
        return RowRouter(TaskRouter(self.context, self.tasks, ignore_previous=False, counts=self.counts), 0)


@frozen(eq=False)
class RowRouter:
    """Finds the task of each row of one sender."""

    _router: TaskRouter | None = field(alias="router")
    _task: int = field(alias="task")

    def find_tasks(self, rows: pa.Table) -> npt.NDArray[np.int32]:
        """Return for each row the number of the task that writes it."""
        if self._router is None:
            return np.full(rows.num_rows, self._task, np.int32)
        return to_numpy(self._router.assign_task_ids(rows))


def check_writers(table: TableDefinition, messages: Sequence[CommitMessage]) -> None:
    """Check that each bucket of a primary-key table was written by one task.

    Raises `HashIndexConflict`, after which the caller retries: another commit changed the hash index between the tasks.
    """
    if not table.schema.primary_keys:
        return
    try:
        check_one_writer_per_bucket(messages)
    except InvalidRequest as error:
        if table.bucket_mode is not BucketMode.DYNAMIC:
            raise
        raise HashIndexConflict(error.message) from error


def check_one_writer_per_bucket(messages: Sequence[CommitMessage]) -> None:
    """Check that no two tasks wrote the same bucket, because their sequence numbers would be equal.

    Postponed rows have no sequence numbers, so any number of tasks may write them.
    """
    seen: set[tuple[bytes, int]] = set()
    for message in (m for m in messages if m.bucket != POSTPONED):
        place = (message.partition, message.bucket)
        if place in seen:
            raise InvalidRequest(
                f"Bucket {message.bucket} of one partition was written by two tasks.",
                hint="write with paimon.spark.write(df, table)",
            )
        seen.add(place)
