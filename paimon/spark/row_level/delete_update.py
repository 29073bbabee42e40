"""DELETE and UPDATE with Spark tasks: tasks find and write the rows, and the driver plans and commits.

Invariant: the rules, the commit and the errors are those of `Table.delete` and `Table.update`; a task calls the
functions that run embedded. No row comes to the driver. Tasks that fail or run twice leave orphan files at most.
"""

# Two routes. By a predicate (`delete`, `update`), tasks find the rows in their splits, and change them:
#
#     primary key, fixed buckets     _ChangeBuckets    a task has whole buckets
#     primary key, other buckets     _SendChanges      rows go to the tasks that write their buckets
#     append                         _ChangeFiles      the task removes its own old rows
#     append, partial units          _ChangeSplits     positions of old rows go to `RemoveRows` (see `work_units`)
#
# By a query (`read_numbered_rows`, `write_changed_rows`), SQL returns the numbers of the rows (see `numbered_rows`):
#
#     whole units                    _write_changes    the task removes its own old rows
#     partial units                  _SendRemovals     positions of old rows go to `RemoveRows`

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, cast

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf

from paimon.adapters.executors.spark import describe_jobs, distribute_tasks, get_parallelism, read_tasks
from paimon.builders.direct_writes import WriteResult, delete_where, update_where
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import encode
from paimon.domain.predicate.expression import Predicate
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.types.arrow import arrow_type
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.prepared_files import abort_on_failure
from paimon.operations.data_files.deletion_vectors import read_bucket_vectors
from paimon.operations.row_level.numbered_rows import (
    NumberedChange,
    NumberedFile,
    NumberedRows,
    check_value_types,
    write_new_versions,
    write_numbered_changes,
)
from paimon.operations.row_level.selected_rows import (
    BucketMatches,
    SelectedChange,
    WrittenChanges,
    build_removal_message,
    find_in_split,
    open_append_writer,
    read_keyed_changes,
    write_new_rows,
)
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter
from paimon.spark.options import check_shared_location
from paimon.spark.row_level.keyed_write import ChangedRowSender, KeyedWrite
from paimon.spark.row_level.work_units import RemoveRows, WorkUnit, has_partial_units, plan_units, send_removals
from paimon.spark.session import get_session
from paimon.spark.tasks.message_tasks import (
    Counted,
    CountedWrite,
    Prepared,
    add_prepared,
    collect_prepared,
    run_message_tasks,
)
from paimon.spark.tasks.routing import check_writers, choose_tasks
from paimon.spark.tasks.shuffle import ROWS_SCHEMA, send_counts, shuffle_rows
from paimon.spark.types import complete_types, to_batch_schema, to_spark_batch, to_spark_schema
from paimon.spark.write import open_target
from paimon.table import Table


def delete(
    table: Table | str,
    where: str | Predicate,
    *,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
    properties: Mapping[str, str] | None = None,
) -> WriteResult:
    """Delete the rows where `where` is true, with one Spark task per split or bucket, in one commit.

    Parameters
    ----------
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    where : str or Predicate
        The rows to delete, as in `Table.delete`.
    spark : SparkSession, optional
        The session; by default the active one, or a new local one.
    options : mapping of str to object, optional
        Dynamic table options.
    properties : mapping of str to str, optional
        Text to store in the snapshot.

    Returns
    -------
    WriteResult
        As `Table.delete` returns it.

    Raises
    ------
    InvalidRequest, Unsupported, CommitConflict
        As `Table.delete` raises them. Nothing was deleted.
    StorageError
        A Spark task failed in all its attempts. Nothing was deleted.
    """
    running = get_session(spark)
    opened = open_target(table, options, running)
    return delete_where(opened.context, where, properties, SparkRowChanges(running))


def update(
    table: Table | str,
    set: Mapping[str, Any],
    where: str | Predicate,
    *,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
    properties: Mapping[str, str] | None = None,
) -> WriteResult:
    """Set columns of the rows where `where` is true, with one Spark task per split or bucket, in one commit.

    Parameters
    ----------
    table : Table or str
        As in `delete`.
    set : mapping of str to object
        By column: SQL text over the row before the update, or a Python value that is not text; see `Table.update`.
    where : str or Predicate
        The rows to change.
    spark, options, properties : SparkSession, mapping of str to object, mapping of str to str
        As in `delete`.

    Returns
    -------
    WriteResult
        As `Table.update` returns it.

    Raises
    ------
    InvalidRequest, Unsupported, CommitConflict
        As `Table.update` raises them. Nothing was updated.
    StorageError
        A Spark task failed in all its attempts. Nothing was updated.
    """
    running = get_session(spark)
    opened = open_target(table, options, running)
    return update_where(opened.context, set, where, properties, SparkRowChanges(running))


class SparkRowChanges:
    """Writes the changes of selected rows with Spark tasks.

    See `paimon.operations.row_level.delete_update.WriteChanges`.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(self, context: TableContext, change: SelectedChange) -> WrittenChanges:
        """Write the changes with Spark tasks; refuse a table in the memory of this process."""
        check_shared_location(context.table.location)
        job, counts = _SelectedJob(context, change, collect_prepared(self._spark)), Counter[int]()
        messages: list[CommitMessage] = []
        verb = "update" if change.assignments else "delete"
        with (
            abort_on_failure(context, messages, change.commit_user, change.snapshot),
            describe_jobs(self._spark, verb, context.table.table_name),
        ):
            run = self._change_keyed_rows if context.schema.primary_keys else self._change_append_rows
            messages.extend(run(job, counts))
            check_writers(context.table, messages)
        return WrittenChanges(messages, counts.total())

    def _change_keyed_rows(self, job: _SelectedJob, counts: Counter[int]) -> Iterator[CommitMessage]:
        context, change = job.context, job.change
        units = plan_units(context.with_hidden_rows(), change.snapshot, change.predicate)
        if not units:
            return
        distributed = distribute_tasks(self._spark, units)
        if context.table.bucket_mode is BucketMode.FIXED:  # a task has a whole bucket, and no row leaves it
            yield from run_message_tasks(distributed, _ChangeBuckets(job), job.prepared, counts)
            return
        write = KeyedWrite.start(context, change.commit_user, choose_tasks(self._spark, context.table))
        sent = distributed.mapInArrow(_SendChanges(job, write.sender), ROWS_SCHEMA)
        yield from write.run(sent, job.prepared, counts)

    def _change_append_rows(self, job: _SelectedJob, counts: Counter[int]) -> Iterator[CommitMessage]:
        context, change = job.context, job.change
        old_vectors = read_bucket_vectors(context, change.snapshot)
        units = plan_units(context, change.snapshot, change.predicate, old_vectors)
        if not units:
            return
        distributed = distribute_tasks(self._spark, units)
        if not has_partial_units(context, old_vectors):
            yield from run_message_tasks(distributed, _ChangeFiles(job), job.prepared, counts)
            return
        tasks = min(get_parallelism(self._spark), len({unit.key for unit in units}))
        sent = distributed.mapInArrow(_ChangeSplits(job, tasks), ROWS_SCHEMA)
        remove = CountedWrite(RemoveRows(context, old_vectors))
        yield from run_message_tasks(shuffle_rows(sent, tasks), remove, job.prepared, counts)


@frozen(eq=False)
class _SelectedJob:
    """A delete or an update, as tasks get it."""

    context: TableContext
    change: SelectedChange
    prepared: Prepared


@frozen(eq=False)
class _ChangeBuckets:
    """The task that changes the rows of whole buckets of a primary-key table."""

    job: _SelectedJob

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Counted:
        context, change = self.job.context, self.job.change
        writer, rows = TableWriter(context, change.commit_user), 0
        with undo_on_failure(writer.abort):
            for _, unit in read_tasks(batches):
                for split in cast(WorkUnit, unit).splits:
                    for changed, kinds in read_keyed_changes(context, split, change):
                        writer.write(changed, kinds)
                        rows += changed.num_rows
            return Counted(encode(writer.prepare_commit()), [rows])


@frozen(eq=False)
class _SendChanges:
    """The task that reads the rows to change, and sends them to the tasks that write their buckets."""

    job: _SelectedJob
    sender: ChangedRowSender

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self.job
        for number, unit in read_tasks(batches):
            output, position, rows = self.sender.open(number), 0, 0
            for split in cast(WorkUnit, unit).splits:
                for changed, kinds in read_keyed_changes(job.context, split, job.change):
                    yield from output.send(changed, kinds, position)
                    position, rows = position + 1, rows + changed.num_rows
            yield from send_counts([rows])


def _find_and_write(job: _SelectedJob, unit: WorkUnit) -> tuple[list[BucketMatches], list[CommitMessage]]:
    """Find the rows of a unit, write their new versions, and return what to remove and the new files."""
    found: list[BucketMatches] = []
    context, change = job.context, job.change
    writer = open_append_writer(context, change.commit_user)
    with undo_on_failure(writer.abort):
        for split in unit.splits:
            matches = BucketMatches(split, find_in_split(context, change.predicate, split))
            if matches.files:
                found.append(matches)
                write_new_rows(context, writer, matches, change.assignments)
        return found, writer.prepare_commit()


@frozen(eq=False)
class _ChangeFiles:
    """The task that changes files of an append table, and removes the old rows itself."""

    job: _SelectedJob

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Counted:
        context, rows = self.job.context, 0
        messages: list[CommitMessage] = []
        for _, task in read_tasks(batches):
            unit = cast(WorkUnit, task)
            found, written = _find_and_write(self.job, unit)
            messages += written
            rows += sum(matches.count for matches in found)
            files = [match for matches in found for match in matches.files]
            if files:
                messages.append(build_removal_message(context, unit.splits[0], files, unit.vectors))
        return Counted(encode(messages), [rows])


@frozen(eq=False)
class _ChangeSplits:
    """The task that changes splits of an append table, and sends the positions to remove to those of the partitions."""

    job: _SelectedJob
    tasks: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, task in read_tasks(batches):
            found, written = _find_and_write(self.job, cast(WorkUnit, task))
            add_prepared(self.job.prepared, encode(written))
            yield from send_removals(found, written, self.tasks, number)
            yield from send_counts([sum(matches.count for matches in found)])


def read_numbered_rows(spark: SparkSession, rows: NumberedRows) -> DataFrame:
    """Return rows and their numbers as a lazy frame, with one partition for each split."""
    schema = to_spark_schema(rows.arrow_schema)
    if not rows.files:
        return spark.createDataFrame([], schema)
    check_shared_location(rows.context.table.location)
    frame = distribute_tasks(spark, [tuple(files) for files in _split_files(rows)])
    return frame.mapInArrow(_ReadFiles(evolve(rows, files=()), to_batch_schema(schema)), schema)


def write_changed_rows(found: DataFrame, change: NumberedChange) -> WrittenChanges:
    """Write the files and the deletion vectors of a change with tasks, and return what to commit.

    The first column of `found` has the number of each row to change, the others its new values.
    """
    spark, context, snapshot = found.sparkSession, change.context, change.rows.snapshot
    types = [arrow_type(column.type) for column in change.computed]
    found = complete_types(found, [*([None] * change.first_value), *types])
    schema = to_batch_schema(found.schema)
    check_value_types(change, schema)
    if snapshot is None or not change.rows.files:
        return WrittenChanges([], 0)
    old_vectors = read_bucket_vectors(context, snapshot)
    groups = _group_files(change.rows)
    tasks = min(get_parallelism(spark), len(set(groups.values())))
    job, counts = _NumberedJob(change, schema, collect_prepared(spark)), Counter[int]()
    messages: list[CommitMessage] = []
    verb = "update" if change.columns else "delete"
    with (
        abort_on_failure(context, messages, change.commit_user, snapshot),
        describe_jobs(spark, verb, context.table.table_name),
    ):
        frame = _shuffle_by_file(found, groups, tasks)
        if not has_partial_units(context, old_vectors):
            messages.extend(run_message_tasks(frame, partial(_write_changes, job), job.prepared, counts))
        else:
            sent = shuffle_rows(frame.mapInArrow(_SendRemovals(job, tasks), ROWS_SCHEMA), tasks)
            remove = CountedWrite(RemoveRows(context, old_vectors))
            messages.extend(run_message_tasks(sent, remove, job.prepared, counts))
    return WrittenChanges(messages, counts.total())


def _split_files(rows: NumberedRows) -> Iterator[Sequence[NumberedFile]]:
    for _, files in groupby(rows.files, key=lambda file: id(file.split)):
        yield list(files)


def _group_files(rows: NumberedRows) -> dict[int, int]:
    """Return by the first number of each split the group of its files: a bucket, or the split in unbucketed tables."""
    groups: dict[object, int] = {}
    found = {}
    for files in _split_files(rows):
        split, first = files[0].split, files[0].first
        key = (split.partition, split.bucket) if rows.context.table.is_bucketed else first
        found[first] = groups.setdefault(key, len(groups))
    return found


def _shuffle_by_file(found: DataFrame, groups: dict[int, int], tasks: int) -> DataFrame:
    """Return the changes with all rows of a group in one partition, in the order of their numbers."""
    firsts = np.fromiter(groups, np.int64)
    targets = np.fromiter((group % tasks for group in groups.values()), np.int32)
    number = found[_quote(found.columns[0])]

    def find_task(numbers: pa.Array) -> pa.Array:
        positions = np.searchsorted(firsts, numbers.to_numpy(zero_copy_only=False), side="right") - 1
        return pa.array(targets[positions])

    task = arrow_udf(find_task, "int")(number)
    return found.repartitionById(tasks, task).sortWithinPartitions(number)


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@frozen(eq=False)
class _ReadFiles:
    """The task that reads the rows of a split with their numbers."""

    rows: NumberedRows
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, files in read_tasks(batches):
            rows = evolve(self.rows, files=cast(tuple[NumberedFile, ...], files))
            for batch in rows.to_batches():
                yield to_spark_batch(batch, self.schema)


@frozen(eq=False)
class _NumberedJob:
    """A change, as tasks get it."""

    change: NumberedChange
    schema: pa.Schema
    prepared: Prepared

    def read(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
        """Return a reader of the changes of a task."""
        converted = (to_spark_batch(batch, self.schema) for batch in batches)
        return pa.RecordBatchReader.from_batches(self.schema, converted)


def _write_changes(job: _NumberedJob, batches: Iterator[pa.RecordBatch]) -> Counted:
    written = write_numbered_changes(job.change, job.read(batches))
    return Counted(encode(written.messages), [written.rows])


@frozen(eq=False)
class _SendRemovals:
    """The task that writes new versions, and sends the positions to remove to those of the partitions."""

    job: _NumberedJob
    tasks: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found, written = write_new_versions(self.job.change, self.job.read(batches))
        running = TaskContext.get()
        assert running is not None
        add_prepared(self.job.prepared, encode(written))
        yield from send_removals(found, written, self.tasks, running.partitionId())
        yield from send_counts([sum(matches.count for matches in found)])
