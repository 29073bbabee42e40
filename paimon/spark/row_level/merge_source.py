"""The source of a MERGE as a data frame: tasks send each row to the task that merges the rows with its key.

Invariant: rows of the source and of the target with equal keys reach the same task. Rows travel with their exact Arrow
types. The driver gets a few values of each key column, to prune files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen
from pyspark import Accumulator, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from paimon.adapters.executors.spark import decode_task, encode_task
from paimon.domain.assignment.hash_ranges import hash_keys
from paimon.domain.assignment.merge_clauses import BoundMerge, MergeAction
from paimon.domain.columns.buffers import combine_column
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField, DoubleType, FloatType
from paimon.engines import translate_spark_error
from paimon.operations.row_level.merge_source import (
    KeyValues,
    convert_keys,
    convert_source,
)
from paimon.operations.table_context import TableContext
from paimon.operations.write.route import Address, assign_task_ids, find_tasks
from paimon.spark.tasks.message_tasks import Counts, sum_counts
from paimon.spark.tasks.shuffle import ROWS_SCHEMA, ReceivedRows, decode_rows, encode_rows, receive_rows, send_rows
from paimon.spark.tasks.work_units import WorkUnit

_VALUES, _DATA = "values", "data"
CONTENT, UNIT = b"content", b"unit"
"""The entry of the metadata of sent rows that says what they are, and its value for a unit of work."""
_UNIT_POSITION = -1
"""The position of units, which only the driver sends; tasks send rows at positions from 0."""
_SUMMARY = "row_count BIGINT NOT NULL, complete ARRAY<BOOLEAN> NOT NULL, keys ARRAY<BINARY> NOT NULL"


@frozen(eq=False)
class MergeJob:
    """A MERGE as its tasks receive it."""

    context: TableContext
    merge: BoundMerge
    fields: tuple[DataField, ...]
    # Number of tasks that merge; 1 if the condition has no equality between source and target columns
    tasks: int
    # Whether the keys decide the bucket: a task reads its buckets itself, only the source is shuffled
    follows_buckets: bool = False

    def find_tasks(self, keys: Sequence[pa.Array], row_count: int) -> npt.NDArray[np.int32]:
        """Return for each row the task that merges its key. `keys` are columns in the types of the target."""
        if not keys or self.tasks == 1:
            return np.zeros(row_count, np.int32)
        if self.follows_buckets:
            return self._find_bucket_tasks(keys, row_count)
        types = [self.context.schema.field_of(target).type for target, _ in self.merge.on.pairs]
        return (hash_keys(keys, types) % self.tasks).astype(np.int32)

    def _find_bucket_tasks(self, keys: Sequence[pa.Array], row_count: int) -> npt.NDArray[np.int32]:
        """Return the task of the bucket that has rows with each key; null is in no bucket, because it never matches."""
        names = [target for target, _ in self.merge.on.pairs]
        rows = pa.table(dict(zip(names, keys, strict=True)))
        has_bucket = np.ones(row_count, np.bool_)
        for name in list_bucket_columns(self.context):
            has_bucket &= rows[name].is_valid().to_numpy()
        tasks = np.zeros(row_count, np.int32)
        whole = rows.filter(pa.array(has_bucket))
        tasks[has_bucket] = np.asarray(assign_task_ids(self.context.table, whole, self.tasks))
        return tasks

    def make_empty_source(self) -> pa.RecordBatch:
        """Return the columns of the source without rows."""
        return pa.RecordBatch.from_pylist([], schema=arrow_schema(self.fields))


def list_bucket_columns(context: TableContext) -> tuple[str, ...]:
    """Return the columns that decide the partition and the bucket of a row."""
    return (*context.schema.partition_keys, *context.schema.bucket_keys)


def can_follow_buckets(context: TableContext, merge: BoundMerge) -> bool:
    """Return whether rows of a source can only match rows of one bucket, which their keys decide."""
    if context.table.bucket_mode is not BucketMode.FIXED:
        return False
    paired, columns = {target for target, _ in merge.on.pairs}, list_bucket_columns(context)
    # Values of FLOAT and DOUBLE that a merge takes as equal can have different hashes.
    floats = any(isinstance(context.schema.field_of(name).type, FloatType | DoubleType) for name in columns)
    return paired.issuperset(columns) and not floats


def send_units(run: MergeRun, units: Sequence[WorkUnit], tasks: Sequence[int]) -> DataFrame:
    """Return units as sent rows for `receive_unit`; there is at least one unit.

    The number of a unit is its sender number. A unit arrives before all rows that tasks send under this number.
    """
    batches: list[pa.RecordBatch] = []
    for number, (unit, task) in enumerate(zip(units, tasks, strict=True)):
        data = pa.table({_DATA: pa.array([encode_task(unit)], pa.binary())})
        rows = data.replace_schema_metadata({CONTENT: UNIT})
        batches += send_rows(rows, np.full(1, task, np.int32), number, _UNIT_POSITION)
    return run.spark.createDataFrame(pa.Table.from_batches(batches), ROWS_SCHEMA)


def is_unit(received: ReceivedRows) -> bool:
    """Return whether received rows are a unit."""
    # The metadata of a table's rows may come from a file, the position cannot.
    return received.position == _UNIT_POSITION


def receive_unit(received: ReceivedRows) -> WorkUnit | None:
    """Return the unit in received rows; None if they are rows of a table."""
    return None if not is_unit(received) else cast(WorkUnit, decode_task(received.rows[_DATA][0].as_py()))


def find_bucket_tasks(units: Sequence[WorkUnit], tasks: int) -> list[int]:
    """Return for each unit the number of the task that has its bucket."""
    return [int(task) for task in find_tasks([Address(*unit.key) for unit in units], tasks)]


@frozen(eq=False)
class MergeRun:
    """One run of a MERGE in Spark."""

    spark: SparkSession
    job: MergeJob
    # Rows in the form that `send_source` returns
    source: DataFrame
    commit_user: str
    # Changed rows by unit of work and action
    counts: Accumulator[Counts]
    # Encoded messages of successful tasks
    prepared: Accumulator[tuple[bytes, ...]]


def send_source(frame: DataFrame, job: MergeJob) -> DataFrame:
    """Return the rows of a source in the form that Spark shuffles, each with the number of its task."""
    return frame.mapInArrow(_SendSource(job), ROWS_SCHEMA)


@frozen(eq=False)
class _SendSource:
    """The task that sends rows of the source; their sender has a negative number, so they arrive first."""

    job: MergeJob

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        running = TaskContext.get()
        source = -1 if running is None else -1 - running.partitionId()
        for position, batch in enumerate(batches):
            rows = convert_source(pa.Table.from_batches([batch]), self.job.fields)
            keys = convert_keys(self.job.context, self.job.merge.on, rows)
            tasks = self.job.find_tasks(keys, rows.num_rows)
            yield from send_rows(pa.Table.from_batches([rows]), tasks, source, position)


def send_source_again(run: MergeRun, job: MergeJob) -> DataFrame:
    """Return the rows of a source that were sent already, for a job that chooses tasks in another way.

    The frame of the caller is not computed again: it may have other rows then.
    """
    return run.source.mapInArrow(_SendAgain(job), ROWS_SCHEMA)


@frozen(eq=False)
class _SendAgain:
    """The task that sends rows of the source again."""

    job: MergeJob

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for received in receive_rows(batches):
            rows = convert_source(received.rows, self.job.fields)
            tasks = self.job.find_tasks(convert_keys(self.job.context, self.job.merge.on, rows), rows.num_rows)
            yield from send_rows(received.rows, tasks, received.source, received.position)


class SourceSummary(NamedTuple):
    """The number of rows of a source, and the values of each key column."""

    rows: int
    keys: list[KeyValues]


def summarize_source(sent: DataFrame, job: MergeJob) -> SourceSummary:
    """Run a job that counts the rows of `send_source`, and finds the values of each key column.

    If a key column has many values, the summary has only the smallest and the largest one.
    """
    try:
        rows = sent.mapInArrow(_Summarize(job), _SUMMARY).collect()
    except PySparkException as error:
        raise translate_spark_error(error) from error
    return _join_summaries([_decode_summary(row) for row in rows], job)


def _join_summaries(parts: Sequence[SourceSummary], job: MergeJob) -> SourceSummary:
    if not parts:
        empty = convert_keys(job.context, job.merge.on, job.make_empty_source())
        return SourceSummary(0, [KeyValues.of(key) for key in empty])
    keys = [KeyValues.of_parts(column) for column in zip(*(part.keys for part in parts), strict=True)]
    return SourceSummary(sum(part.rows for part in parts), keys)


@frozen(eq=False)
class _Summarize:
    """The task that summarizes a partition of sent rows."""

    job: MergeJob

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts: list[SourceSummary] = []
        for received in receive_rows(batches):
            for rows in received.rows.combine_chunks().to_batches():
                keys = convert_keys(self.job.context, self.job.merge.on, rows)
                parts.append(SourceSummary(rows.num_rows, [KeyValues.of(key) for key in keys]))
                parts = [_join_summaries(parts, self.job)]
        if parts:
            yield _encode_summary(parts[0])


def _encode_summary(summary: SourceSummary) -> pa.RecordBatch:
    columns = {
        "row_count": pa.array([summary.rows], pa.int64()),
        "complete": pa.array([[keys.is_complete for keys in summary.keys]], pa.list_(pa.bool_())),
        "keys": pa.array(
            [[encode_rows(pa.table({_VALUES: keys.values})).to_pybytes() for keys in summary.keys]],
            pa.list_(pa.binary()),
        ),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _decode_summary(row: Row) -> SourceSummary:
    values = [combine_column(decode_rows(pa.py_buffer(bytes(data)))[_VALUES]) for data in row["keys"]]
    return SourceSummary(row["row_count"], [KeyValues(*pair) for pair in zip(values, row["complete"], strict=True)])


def to_action_counts(counts: Accumulator[Counts]) -> Mapping[MergeAction, int]:
    """Return how many rows each action changed."""
    return dict(zip(MergeAction, sum_counts(counts), strict=False))
