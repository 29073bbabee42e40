"""Decide which Spark task writes which rows, so that each bucket has one writer, and send rows to these tasks.

Invariant: the function of the embedded writer computes the bucket of a row. Ordered rows that one source task returns
for a key are written in this order: a stream reads the changes of a key in one task, so the newest change wins. Spark
shuffles Arrow data instead of rows, which it would convert twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import evolve, field, frozen
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from paimon.adapters.executors.spark import get_parallelism
from paimon.builders.write_builder import BatchWriteBuilder
from paimon.domain.bucket.postponed import compute_parallel_buckets
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import encode
from paimon.domain.errors import HashIndexConflict, InvalidRequest
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.engines import freeze_objects
from paimon.operations.table_context import TableContext
from paimon.operations.write.postponed import read_bucket_counts
from paimon.operations.write.route import TaskRouter
from paimon.spark.tasks.shuffle import (
    ROWS_SCHEMA,
    RowReader,
    receive_rows,
    send_rows,
    shuffle_rows,
)
from paimon.spark.types import map_in_arrow, quote_column

DISTRIBUTION = "spark.paimon.write-distribution"
"""The setting of a session that selects whether rows of append tables are shuffled by partition before a write."""
_BY_PARTITION, _NONE = "partition", "none"
_SENT_BYTES = 16 * 1024 * 1024
"""How many bytes are divided among the tasks at once: each part has fixed costs, and parts are held in memory."""


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


def gather_partitions(frame: DataFrame, table: TableDefinition, tasks: int | None) -> DataFrame:
    """Shuffle the rows of an append table so that few tasks write each partition; each task writes a file in each.

    Adaptive execution divides large partitions and joins small ones, unless the caller chose the number of tasks. A
    column that the frame lacks has one value.
    """
    names = [name for name in table.schema.partition_keys if name in frame.columns]
    if not names or table.bucket_mode is not BucketMode.UNAWARE or not _is_distributed(frame.sparkSession):
        return frame
    columns = [F.col(quote_column(name)) for name in names]
    if tasks is not None:
        return frame.repartition(tasks, *columns)
    adapts = str(frame.sparkSession.conf.get("spark.sql.adaptive.enabled", "true")).lower() == "true"
    return frame.hint("rebalance", *columns) if adapts else frame.repartition(*columns)


def _is_distributed(spark: SparkSession) -> bool:
    chosen = str(spark.conf.get(DISTRIBUTION, _BY_PARTITION))
    if chosen not in (_BY_PARTITION, _NONE):
        hint = f"set it to {_BY_PARTITION} or {_NONE}"
        raise InvalidRequest(f"Setting {DISTRIBUTION!r} is {chosen!r}.", subject=DISTRIBUTION, hint=hint)
    return chosen == _BY_PARTITION


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


def route_rows(
    frame: DataFrame, builder: BatchWriteBuilder, tasks: int, read: RowReader, *, ordered: bool
) -> DataFrame:
    """Shuffle rows, encoded by `send_rows`, to the tasks that write them with `write_routed_rows`.

    `read` decodes the batches that Spark passes to a task. `ordered` keeps the order of rows within each source task.
    """
    send = _SendRows(builder, tasks, read_task_bucket_counts(builder.context), read)
    sent = map_in_arrow(frame, send, ROWS_SCHEMA)
    return shuffle_rows(sent, tasks) if ordered else sent.repartitionById(tasks, sent["task"])


def write_routed_rows(builder: BatchWriteBuilder, kind_column: str | None, batches: Iterator[pa.RecordBatch]) -> bytes:
    """Write the rows that one task received, and return its encoded commit messages."""
    with builder.new_write() as writer:
        for received in receive_rows(batches):
            writer.write(received.rows, kind_column)
        return encode(writer.prepare_commit())


@frozen(eq=False)
class _SendRows:
    """The task that finds the writer of each row."""

    builder: BatchWriteBuilder
    tasks: int
    counts: Mapping[bytes, int] | None
    read: RowReader

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        running = TaskContext.get()
        source = 0 if running is None else running.partitionId()
        router = TaskRouter(
            self.builder.context, self.tasks, ignore_previous=self.builder.overwrites, counts=self.counts
        )
        for position, rows in enumerate(gather_rows(self.read(batches), _SENT_BYTES)):
            yield from send_rows(rows, to_numpy(router.assign_task_ids(rows)), source, position)
        freeze_objects()


def gather_rows(parts: Iterable[pa.Table], size_bytes: int) -> Iterator[pa.Table]:
    """Concatenate adjacent tables of the same schema, in order, until a table has at least `size_bytes` bytes."""
    gathered: list[pa.Table] = []
    held_bytes = 0
    for part in parts:
        if gathered and (held_bytes >= size_bytes or not part.schema.equals(gathered[0].schema, check_metadata=True)):
            yield pa.concat_tables(gathered)
            gathered, held_bytes = [], 0
        gathered.append(part)
        held_bytes += part.nbytes
    if gathered:
        yield pa.concat_tables(gathered)


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
        key = (message.partition, message.bucket)
        if key in seen:
            raise InvalidRequest(
                f"Bucket {message.bucket} of one partition was written by two tasks.",
                hint="write with paimon.spark.write(df, table)",
            )
        seen.add(key)
