"""Change rows of tables without a primary key that a query of Spark finds by their numbers.

Tasks read the rows with their numbers, Spark runs the query, and tasks write the changes of whole files.

Invariant: a task calls the functions that run embedded. No row comes to the driver. Tasks that fail or run twice leave
orphan files at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import cast

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen
from pyspark import Accumulator, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf

from paimon.adapters.executors.spark import distribute_tasks, read_tasks
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import encode
from paimon.domain.types.arrow import arrow_type
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
from paimon.operations.row_level.selected_rows import WrittenChanges
from paimon.spark.options import check_shared_location
from paimon.spark.row_level.removals import RemoveRows, send_removals
from paimon.spark.tasks.message_tasks import Counts, collect_prepared, count_rows, run_message_tasks, sum_counts
from paimon.spark.tasks.shuffle import ROWS_SCHEMA, shuffle_rows
from paimon.spark.tasks.work_units import has_partial_units
from paimon.spark.types import complete_types, to_batch_schema, to_spark_batch, to_spark_schema


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
    found = complete_types(found, [None, *(arrow_type(column.type) for column in change.computed)])
    schema = to_batch_schema(found.schema)
    check_value_types(change.computed, schema)
    if snapshot is None or not change.rows.files:
        return WrittenChanges([], 0)
    old_vectors = read_bucket_vectors(context, snapshot)
    groups = _group_files(change.rows)
    tasks = min(spark.sparkContext.defaultParallelism, len(set(groups.values())))
    job = _NumberedJob(change, schema, count_rows(spark))
    prepared = collect_prepared(spark)
    messages: list[CommitMessage] = []
    with abort_on_failure(context, messages, change.commit_user, snapshot):
        frame = _shuffle_by_file(found, groups, tasks)
        if not has_partial_units(context, old_vectors):
            messages.extend(run_message_tasks(frame, partial(_write_changes, job), prepared))
        else:
            sent = frame.mapInArrow(_SendRemovals(job, tasks, prepared), ROWS_SCHEMA)
            messages.extend(run_message_tasks(shuffle_rows(sent, tasks), RemoveRows(context, old_vectors), prepared))
    return WrittenChanges(messages, sum(sum_counts(job.counts)))


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
        places = np.searchsorted(firsts, numbers.to_numpy(zero_copy_only=False), side="right") - 1
        return pa.array(targets[places])

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
    """A change, as tasks get it; `counts` gets the numbers of changed rows."""

    change: NumberedChange
    schema: pa.Schema
    counts: Accumulator[Counts]

    def read(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
        """Return a reader of the changes of a task."""
        converted = (to_spark_batch(batch, self.schema) for batch in batches)
        return pa.RecordBatchReader.from_batches(self.schema, converted)

    def count(self, rows: int) -> int:
        """Report the changed rows of a task, and return its number."""
        running = TaskContext.get()
        assert running is not None
        number: int = running.partitionId()
        self.counts.add({("changed", number): (rows,)})
        return number


def _write_changes(job: _NumberedJob, batches: Iterator[pa.RecordBatch]) -> bytes:
    written = write_numbered_changes(job.change, job.read(batches))
    job.count(written.rows)
    return encode(written.messages)


@frozen(eq=False)
class _SendRemovals:
    """The task that writes new versions, and sends the rows to remove to the tasks of the partitions."""

    job: _NumberedJob
    tasks: int
    prepared: Accumulator[tuple[bytes, ...]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found, written = write_new_versions(self.job.change, self.job.read(batches))
        number = self.job.count(sum(matches.count for matches in found))
        self.prepared.add((encode(written),))
        yield from send_removals(found, written, self.tasks, number)
