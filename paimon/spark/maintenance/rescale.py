"""Rescale on executors: one task per source bucket, one shuffle of the rows, and one commit by the driver.

Invariant: a task reads a bucket, or writes new files, with the functions that run embedded. Rows travel as Arrow IPC
data, so that they keep their exact types, and their order per source bucket. Tasks that fail or run twice leave orphan
files at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
from attrs import frozen
from pyspark.sql import SparkSession

from paimon.adapters.executors.spark import describe_jobs, distribute_tasks, get_parallelism, read_tasks
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import encode
from paimon.domain.maintenance.rescale import PartitionSources, SourceBucket
from paimon.domain.predicate.expression import Predicate
from paimon.domain.undo import undo_on_failure
from paimon.operations.maintenance.after_commit import run_after_commit
from paimon.operations.rescale.rescale import (
    RescaleResult,
    open_writer,
    read_source_rows,
    with_bucket_count,
    write_rows,
)
from paimon.operations.rescale.rescale import rescale as run_rescale
from paimon.operations.table_context import TableContext, commit_user_of
from paimon.operations.write.route import assign_task_ids
from paimon.scan import condition_of
from paimon.spark.session import get_session
from paimon.spark.tasks.message_tasks import FinishedTasks, report_finished_task, run_message_tasks, watch_tasks
from paimon.spark.tasks.shuffle import ROWS_SCHEMA, receive_rows, send_rows, shuffle_rows
from paimon.spark.write import open_target
from paimon.table import Table


def rescale(
    table: Table | str,
    buckets: int,
    where: str | Predicate | None = None,
    *,
    dry_run: bool = False,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
) -> RescaleResult:
    """Rewrite partitions to another number of buckets in one commit, with one Spark task per source bucket.

    Parameters
    ----------
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    buckets : int
        The new number of buckets of each partition.
    where : str or Predicate, optional
        A condition on partition columns; only these partitions are rewritten.
    dry_run : bool
        Write nothing, and return what would be rewritten. No Spark task runs.
    spark : SparkSession, optional
        The session; by default the active one, or a new local one.
    options : mapping of str to object, optional
        Dynamic table options.

    Returns
    -------
    RescaleResult
        The snapshot, and how many partitions, files and rows were rewritten.

    Raises
    ------
    InvalidRequest
        The table is a system table or has no fixed number of buckets, or the number is out of range.
    CommitConflict
        Other writers changed the same partitions again and again; nothing was changed.
    StorageError
        A Spark task failed in all its attempts. Nothing was committed.
    """
    running = get_session(spark)
    opened = open_target(table, options, running)
    if dry_run:
        return opened.rescale(buckets, where, dry_run=True)
    context = opened.context
    predicate = None if where is None else condition_of(where)
    with describe_jobs(running, "rescale", context.table.table_name):
        done = run_rescale(context, buckets, commit_user_of(context, None), predicate, SparkRewrite(running))
    run_after_commit(context, done.snapshot_ids)
    return done


class SparkRewrite:
    """Rewrites partitions with Spark tasks, as `rewrite_partitions` does in one process."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(
        self, context: TableContext, partitions: Sequence[PartitionSources], total_buckets: int, commit_user: str
    ) -> Iterator[CommitMessage]:
        """Rewrite partitions with `total_buckets` buckets each.

        Yields the messages of all tasks. If Spark fails, yields those of the successful tasks, then raises the error.
        """
        sources = [source for partition in partitions for source in partition.buckets]
        if not sources:
            return
        target = with_bucket_count(context, total_buckets)
        tasks = min(get_parallelism(self._spark), total_buckets * len(partitions))
        observer = context.engine.observer
        finished_reads = watch_tasks(self._spark, observer, "reading buckets", len(sources))
        finished_writes = watch_tasks(self._spark, observer, "writing new buckets", tasks)
        routed = distribute_tasks(self._spark, sources).mapInArrow(
            _Read(context, target, tasks, finished_reads), ROWS_SCHEMA
        )
        yield from run_message_tasks(shuffle_rows(routed, tasks), _Write(target, commit_user, finished_writes))


@frozen(eq=False)
class _Read:
    """The task that reads source buckets, and routes each row to the task that writes its new bucket."""

    context: TableContext
    target: TableContext
    tasks: int
    finished: FinishedTasks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, source in read_tasks(batches):
            for position, rows in enumerate(read_source_rows(self.context, cast(SourceBucket, source))):
                task_ids = np.asarray(assign_task_ids(self.target.table, rows, self.tasks))
                yield from send_rows(rows, task_ids, number, position)
        report_finished_task(self.finished)


@frozen(eq=False)
class _Write:
    """The task that writes new files, and returns their encoded messages."""

    target: TableContext
    commit_user: str
    finished: FinishedTasks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        writer = open_writer(self.target, self.commit_user)
        with undo_on_failure(writer.abort):
            for received in receive_rows(batches):
                write_rows(writer, self.target, received.rows)
            data = encode(writer.prepare_commit())
        report_finished_task(self.finished)
        return data
