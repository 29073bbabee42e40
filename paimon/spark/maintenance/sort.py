"""Sort append tables without buckets on executors: tasks sample keys, send rows to ranges of keys, and sort one each.

Invariant: tasks sample, read and sort with the functions that run embedded. Rows travel as Arrow IPC data, so that they
keep their exact types. Tasks that fail or run twice leave orphan files at most.

Source: `SortCompactAction`, `CompactProcedure` of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import cast

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql import SparkSession

from paimon.adapters.executors.spark import distribute_tasks, get_parallelism, read_tasks
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import encode
from paimon.operations.compact.plan_bucket import BucketWork
from paimon.operations.compact.sort_tasks import (
    FileShare,
    build_removal,
    choose_step,
    divide_into_shares,
    plan_ranges,
    sample_share,
    send_to_ranges,
    write_range,
)
from paimon.operations.table_context import TableContext
from paimon.spark.tasks.message_tasks import FinishedTasks, report_finished_task, run_message_tasks, watch_tasks
from paimon.spark.tasks.shuffle import ROWS_SCHEMA, receive_rows, send_rows, shuffle_rows


class SparkSort:
    """Sorts buckets with Spark tasks, as `compact_bucket` does in one process."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(self, context: TableContext, works: Sequence[BucketWork]) -> Iterator[CommitMessage]:
        """Sort the rows of each bucket into new files.

        Yields the messages of all tasks. If Spark fails, yields those of the successful tasks, then raises the error.
        """
        if not works:
            return
        tasks = get_parallelism(self._spark)
        shares = divide_into_shares(works, tasks)
        sample = partial(sample_share, context, choose_step(context, works, tasks))
        samples = list(context.engine.executor.map(sample, shares))
        bounds = plan_ranges(context, works, shares, samples, tasks)
        starts = [0, *accumulate(len(found) + 1 for found in bounds)]
        owners = [number for number, found in enumerate(bounds) for _ in range(len(found) + 1)]
        observer = context.engine.observer
        finished_reads = watch_tasks(self._spark, observer, "reading files", len(shares))
        finished_writes = watch_tasks(self._spark, observer, "sorting rows", starts[-1])
        read = _Read(context, bounds, starts, finished_reads)
        sent = distribute_tasks(self._spark, shares).mapInArrow(read, ROWS_SCHEMA)
        bare = [evolve(work, packs=(), vectors=None) for work in works]
        write = _Write(context, bare, owners, finished_writes)
        yield from run_message_tasks(shuffle_rows(sent, starts[-1]), write)
        for work in works:
            yield build_removal(context, work)


@frozen(eq=False)
class _Read:
    """The task that reads a share of the files, and sends each row to the task of its range."""

    context: TableContext
    # for each bucket, the bounds of its ranges
    bounds: Sequence[pa.Table]
    # for each bucket, the number of its first range among all
    starts: Sequence[int]
    finished: FinishedTasks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for source, task in read_tasks(batches):
            share = cast(FileShare, task)
            sent = send_to_ranges(self.context, share, self.bounds[share.number])
            for position, (rows, ranges) in enumerate(sent):
                tasks = (ranges + self.starts[share.number]).astype(np.int32)
                yield from send_rows(rows, tasks, source, position)
        report_finished_task(self.finished)


@frozen(eq=False)
class _Write:
    """The task that sorts the rows of one range, and returns its encoded message."""

    context: TableContext
    # the buckets, without their files
    works: Sequence[BucketWork]
    # the bucket of each range
    owners: Sequence[int]
    finished: FinishedTasks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        received = receive_rows(batches)
        first = next(received, None)
        messages: list[CommitMessage] = []
        if first is not None:
            work = self.works[self.owners[first.task]]
            messages.append(write_range(self.context, work, (part.rows for part in chain([first], received))))
        report_finished_task(self.finished)
        return encode(messages)
