"""What the tasks of a MERGE share: how rows of the source reach the task that merges their key, and what it does there.

Invariant: rows of the source and of the target with equal keys reach the same task. Rows travel with their exact
Arrow types. The driver gets a few values of each key column, to prune files.
"""

# Both sides of a MERGE meet in the task that has their key. The order in which a task receives rows is the trick: Spark
# sorts them by two numbers that senders choose, (source, position), so these numbers decide what a task knows when.
#
#     source           position    rows
#     -1, -2, ...      0, 1, ...   of the source: partition n of the data frame sends as -1 - n
#     0, 1, ...        -1          none: a unit of work itself, which the driver sends (`send_units`)
#     0, 1, ...        0, 1, ...   of the target: what a task read from this unit, or how this unit changes
#     LAST + n         0, 1, ...   inserted by task n, which come after all changes
#
# 1. Rows of the source have negative numbers, so a task has its whole share of the source before the first row of the
#    target. It indexes or spills the share; then the target streams past it.
# 2. A unit has position -1, which no task uses. So it arrives before all changes of the unit, and the task that writes
#    them knows the splits first.
# 3. Where the ON condition has all columns that decide the bucket (`can_follow_buckets`), the rows of the target are
#    not shuffled: the source goes to the tasks of the buckets, and the driver sends each of these tasks its units to
#    read. Otherwise tasks read the units, and both sides go to the task `hash(key) % tasks`.
#
# A share of the source that is too large is divided into parts, as embedded (see `merge_source` of the operations).
# Each part needs all rows of the target. But a task receives them only once, so `SpilledTarget` stores them; a unit is
# stored as itself, and read again for each part.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import define, field, frozen
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession

from paimon.adapters.executors.spark import SPARK_ERRORS, decode_task, encode_task, stoppable_jobs
from paimon.domain.assignment.hash_ranges import hash_keys
from paimon.domain.assignment.merge_clauses import BoundMerge, MergeAction
from paimon.domain.assignment.merge_columnar import Mask
from paimon.domain.columns.buffers import combine_column
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField, DoubleType, FloatType
from paimon.operations.row_level.merge_match import MergeMatcher, RowChanges
from paimon.operations.row_level.merge_source import (
    KeyValues,
    ReadPart,
    SourceRows,
    convert_keys,
    convert_source,
    index_source,
    part_bytes,
    store_piece,
    store_source,
)
from paimon.operations.table_context import TableContext
from paimon.operations.write.route import Address, assign_task_ids, find_tasks
from paimon.ports.engine import Engine
from paimon.spark.frame_reads import to_frame_error
from paimon.spark.row_level.work_units import WorkUnit
from paimon.spark.tasks.message_tasks import Prepared
from paimon.spark.tasks.shuffle import (
    ROWS_SCHEMA,
    ReceivedRows,
    decode_rows,
    encode_rows,
    receive_rows,
    send_counts,
    send_rows,
)
from paimon.spark.types import map_in_arrow

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
    # Encoded messages of successful tasks
    prepared: Prepared
    # Changed rows by the position of their action
    counts: Counter[int] = field(factory=Counter)


def send_source(frame: DataFrame, job: MergeJob) -> DataFrame:
    """Return the rows of a source in the form that Spark shuffles, each with the number of its task."""
    return map_in_arrow(frame, _SendSource(job), ROWS_SCHEMA)


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
        with stoppable_jobs(sent.sparkSession):
            rows = sent.mapInArrow(_Summarize(job), _SUMMARY).collect()
    except SPARK_ERRORS as error:
        raise to_frame_error(sent, error) from error
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


def to_action_counts(counts: Counter[int]) -> Mapping[MergeAction, int]:
    """Return how many rows each action changed."""
    return {action: counts[position] for position, action in enumerate(MergeAction)}


@frozen(eq=False)
class MergePart:
    """A part of the source of one task, and the target rows among which it finds matches."""

    matcher: MergeMatcher
    # May include rows that match other parts
    target: Iterable[ReceivedRows]
    # For each source row, whether it matched a target row so far; `find_changes` updates it
    matched: Mask

    def find_changes(self, batch: pa.RecordBatch) -> RowChanges:
        """Find the changed rows of a batch of the target, and remember the rows of the source that matched."""
        changes = self.matcher.find_changes(batch)
        self.matched[changes.matched] = True
        return changes


@frozen(eq=False)
class TaskShare:
    """The share of a MERGE that one task computes."""

    number: int
    job: MergeJob
    # Received source rows, in memory or spilled
    source: SourceRows
    target: Iterator[ReceivedRows]
    # Changed rows by action so far; the task updates it
    counts: Counter[MergeAction] = field(factory=Counter)

    @classmethod
    def receive(cls, job: MergeJob, batches: Iterable[pa.RecordBatch]) -> TaskShare | None:
        """Receive the source rows, which arrive before the target rows; None if nothing was sent to this task."""
        received = receive_rows(batches)
        first = next(received, None)
        if first is None:
            return None
        target: list[ReceivedRows] = []
        tables = _take_source(chain([first], received), target)
        source = store_source(job.context, job.merge.on, job.fields, tables)
        return cls(first.task, job, source, chain(target, received))

    def parts(self) -> Iterator[MergePart]:
        """Yield the parts one after another; only the current one is in memory.

        Raises `InvalidRequest` if a part does not fit the memory budget. Deletes the spilled rows at the end.
        """
        reads, engine = self.source.parts(), self.job.context.engine
        target = self.target if len(reads) == 1 else SpilledTarget(engine)
        try:
            if isinstance(target, SpilledTarget):
                target.fill(self.target)
            for read in reads:
                yield self._open_part(read, target)
        finally:
            self.source.drop()
            if isinstance(target, SpilledTarget):
                target.drop()

    def _open_part(self, read: ReadPart, target: Iterable[ReceivedRows]) -> MergePart:
        matcher = index_source(self.job.context, self.job.merge, read(), is_share=True)
        return MergePart(matcher, target, np.zeros(matcher.source.num_rows, np.bool_))

    def send_counts(self) -> Iterator[pa.RecordBatch]:
        """Send how many rows the task changed."""
        yield from send_counts([self.counts[action] for action in MergeAction])


def _take_source(received: Iterator[ReceivedRows], target: list[ReceivedRows]) -> Iterator[pa.Table]:
    """Yield the rows of the source; the first item of the target, which ends them, is added to `target`."""
    for item in received:
        if item.source >= 0:
            target.append(item)
            return
        yield item.rows


@frozen(eq=False)
class _StoredRows:
    """Received rows that are a batch of a piece, or a unit, which stays in memory."""

    item: ReceivedRows
    handle: str = ""
    batch: int = 0


@define(eq=False)
class SpilledTarget:
    """A state machine: the received rows of the target in pieces on local disk; each iteration reads them."""

    engine: Engine
    stored: list[_StoredRows] = field(factory=list)
    handles: list[str] = field(factory=list)

    def fill(self, received: Iterable[ReceivedRows]) -> None:
        """Store all rows; memory holds one piece."""
        piece: list[tuple[ReceivedRows, pa.RecordBatch]] = []
        size = 0
        for item in received:
            if is_unit(item):
                self.stored.append(_StoredRows(item))
                continue
            for batch in item.rows.combine_chunks().to_batches():
                if piece and (size > part_bytes(self.engine) or not piece[0][1].schema.equals(batch.schema)):
                    self._store(piece)
                    piece, size = [], 0
                piece.append((item, batch))
                size += batch.nbytes
        self._store(piece)

    def _store(self, piece: list[tuple[ReceivedRows, pa.RecordBatch]]) -> None:
        if not piece:
            return
        handle = store_piece(self.engine.temp, [batch for _, batch in piece])
        self.handles.append(handle)
        for number, (item, _) in enumerate(piece):
            empty = item._replace(rows=pa.Table.from_batches([], item.rows.schema))
            self.stored.append(_StoredRows(empty, handle, number))

    def __iter__(self) -> Iterator[ReceivedRows]:
        for handle, group in groupby(self.stored, key=lambda stored: stored.handle):
            batches = self.engine.temp.map_batches(handle) if handle else ()
            for stored in group:
                if not batches:
                    yield stored.item
                    continue
                batch = batches[stored.batch].replace_schema_metadata(stored.item.rows.schema.metadata)
                yield stored.item._replace(rows=pa.Table.from_batches([batch]))

    def drop(self) -> None:
        """Delete the pieces."""
        for handle in self.handles:
            self.engine.temp.drop(handle)
