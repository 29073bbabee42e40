"""Move postponed rows on executors: tasks read each postponed file once, and send its rows to the tasks of the buckets.

Invariant: the rows of a bucket arrive in the order in which they were committed. A task writes and compacts buckets
with the function that runs embedded. Tasks that fail or run twice leave orphan files at most.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import cast

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql import SparkSession

from paimon.adapters.executors.spark import distribute_tasks, get_parallelism, read_tasks
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import encode
from paimon.domain.manifest.entries import DataFileMeta
from paimon.operations.table_context import TableContext
from paimon.operations.write.compact_table import PartitionWork, compact_buckets, read_postponed_rows
from paimon.operations.write.route import Address, Routing, find_tasks
from paimon.spark.tasks.message_tasks import FinishedTasks, report_finished_task, run_message_tasks, watch_tasks
from paimon.spark.tasks.shuffle import ROWS_SCHEMA, ReceivedRows, receive_rows, send_rows, shuffle_rows, start_tasks


class SparkPostponedCompaction:
    """Compacts partitions with Spark tasks, as `compact_partitions` does in one process."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(
        self, context: TableContext, commit_user: str, partitions: Sequence[PartitionWork]
    ) -> Iterator[CommitMessage]:
        """Move postponed rows to their real buckets, and compact these buckets.

        Yields the messages of all tasks. If Spark fails, yields those of the successful tasks, then raises the error.
        """
        if not partitions:
            return
        parallelism = get_parallelism(self._spark)
        tasks = min(parallelism, sum(work.total_buckets for work in partitions))
        starts = [0, *accumulate(len(work.files) for work in partitions)][:-1]
        shares = _share_files(partitions, starts, -(-parallelism // len(partitions)))
        observer = context.engine.observer
        finished_reads = watch_tasks(self._spark, observer, "reading postponed rows", len(shares))
        finished_writes = watch_tasks(self._spark, observer, "compacting postponed rows", tasks)
        sent = distribute_tasks(self._spark, shares).mapInArrow(_Read(context, tasks, finished_reads), ROWS_SCHEMA)
        requested = [tuple(work.requested_buckets) for work in partitions]
        works = [evolve(work, files=()) for work in partitions]
        write = _Write(context, commit_user, works, requested, starts, tasks, finished_writes)
        yield from run_message_tasks(shuffle_rows(sent, tasks), write)


@frozen
class _FileShare:
    """Some adjacent postponed files of a partition; `first` is the number of the first one among all partitions."""

    work: PartitionWork
    files: tuple[DataFileMeta, ...]
    first: int


def _share_files(partitions: Sequence[PartitionWork], starts: Sequence[int], tasks: int) -> list[_FileShare]:
    """Return about so many shares for each partition, at least one."""
    shares: list[_FileShare] = []
    for work, start in zip(partitions, starts, strict=True):
        size = max(1, -(-len(work.files) // tasks))
        bare = evolve(work, files=())
        for first in range(0, max(1, len(work.files)), size):
            shares.append(_FileShare(bare, work.files[first : first + size], start + first))
    return shares


@frozen(eq=False)
class _Read:
    """The task that reads a share of the files, and sends each row to the task of its bucket."""

    context: TableContext
    tasks: int
    finished: FinishedTasks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, task in read_tasks(batches):
            if number == 0:
                yield start_tasks(self.tasks)
            share = cast(_FileShare, task)
            for source, file in enumerate(share.files, share.first):
                for position, batch in enumerate(read_postponed_rows(self.context, share.work, [file])):
                    yield from self._send(share.work, batch, source, position)
        report_finished_task(self.finished)

    def _send(self, work: PartitionWork, batch: pa.RecordBatch, source: int, position: int) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches([batch])
        routing = Routing.of(self.context.schema, work.total_buckets, self.context.options.bucket_function)
        buckets, codes = np.unique(routing.compute_buckets(rows, work.total_buckets), return_inverse=True)
        tasks = find_tasks([Address(work.partition, bucket) for bucket in buckets.tolist()], self.tasks)
        yield from send_rows(rows, tasks[codes], source, position)


@frozen(eq=False)
class _Write:
    """The task that writes and compacts its buckets of each partition."""

    context: TableContext
    commit_user: str
    # All partitions, without their postponed files
    partitions: Sequence[PartitionWork]
    # For each partition, the buckets to compact even if they receive no rows
    requested: Sequence[Sequence[int]]
    # For each partition, the number of its first postponed file among the files of all partitions
    starts: Sequence[int]
    tasks: int
    finished: FinishedTasks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        data = encode(self._compact(batches))
        report_finished_task(self.finished)
        return data

    def _compact(self, batches: Iterator[pa.RecordBatch]) -> list[CommitMessage]:
        received = receive_rows(batches)
        start = next(received, None)
        messages: list[CommitMessage] = []
        if start is None:
            return messages
        groups = groupby(received, key=lambda item: bisect_right(self.starts, item.source) - 1)
        current = next(groups, None)
        for number, work in enumerate(self.partitions):
            buckets = self._select_buckets(number, start.task)
            if current is not None and current[0] == number:
                messages += compact_buckets(self.context, self.commit_user, work, buckets, _to_batches(current[1]))
                current = next(groups, None)
            elif buckets:
                messages += compact_buckets(self.context, self.commit_user, work, buckets, ())
        return messages

    def _select_buckets(self, number: int, task: int) -> list[int]:
        """Return the requested buckets of a partition that this task writes."""
        requested, partition = self.requested[number], self.partitions[number].partition
        tasks = find_tasks([Address(partition, bucket) for bucket in requested], self.tasks)
        return [bucket for bucket, own in zip(requested, tasks.tolist(), strict=True) if own == task]


def _to_batches(received: Iterator[ReceivedRows]) -> Iterator[pa.RecordBatch]:
    return (batch for item in received for batch in item.rows.combine_chunks().to_batches())
