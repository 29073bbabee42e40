"""Run Spark tasks that write files, and return their commit messages, also those of the tasks before a failure.

Invariant: messages travel as bytes in the encoding of commit messages. Files of tasks that failed or ran twice are
orphan files at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TypeAlias

import pyarrow as pa
from attrs import frozen
from pyspark import Accumulator, AccumulatorParam, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from paimon.adapters.executors.spark import SPARK_ERRORS, DistributedTasks, is_remote
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import decode
from paimon.domain.types.arrow_arrays import make_array
from paimon.engines import freeze_objects
from paimon.ports.observer import Observer
from paimon.spark.frame_reads import to_frame_error

WriteTask: TypeAlias = Callable[[Iterator[pa.RecordBatch]], bytes]
"""Writes the rows of one task, and returns its encoded commit messages."""
_MESSAGES = "messages"
_SCHEMA = StructType([StructField(_MESSAGES, BinaryType(), False)])


def run_message_tasks(
    frame: DataFrame | DistributedTasks, write: WriteTask, prepared: Accumulator[tuple[bytes, ...]] | None = None
) -> Iterator[CommitMessage]:
    """Run `write` once for each partition of a frame; it returns the encoded messages of one task.

    Yields the messages of all tasks. If Spark fails, yields those in `prepared` (earlier stages and successful tasks),
    then raises the error. Spark Connect does not return these, so their files become orphan files.
    """
    if prepared is None and not is_remote(frame.sparkSession):
        prepared = collect_prepared(frame.sparkSession)
    try:
        rows = frame.mapInArrow(_Task(write, prepared), _SCHEMA).collect()
    except SPARK_ERRORS as error:
        yield from chain.from_iterable(decode(data) for data in (() if prepared is None else prepared.value))
        raise to_frame_error(frame, error) from error
    yield from chain.from_iterable(decode(bytes(row[_MESSAGES])) for row in rows)


def collect_prepared(spark: SparkSession) -> Accumulator[tuple[bytes, ...]]:
    """Return an accumulator to which tasks add the messages of files that exist once they succeed."""
    return spark.sparkContext.accumulator((), MessageAccumulator())


@frozen(eq=False)
class _Task:
    """The function that each Spark task applies to its rows; the accumulator collects the messages of successes."""

    write: WriteTask
    accumulator: Accumulator[tuple[bytes, ...]] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        data = self.write(batches)
        if self.accumulator is not None:
            self.accumulator.add((data,))
        yield pa.record_batch([make_array([data], pa.binary())], names=[_MESSAGES])
        freeze_objects()


class MessageAccumulator(AccumulatorParam):
    """Accumulator of the messages of successful tasks, which is available even if the job fails."""

    def zero(self, value: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Return the value without messages."""
        return ()

    def addInPlace(self, value1: tuple[bytes, ...], value2: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Return the messages of both values."""
        return value1 + value2


class TaskAccumulator(AccumulatorParam):
    """Accumulator of the numbers of finished tasks; a task that ran twice counts once.

    `report` is called on the driver with the count of finished tasks. It is not pickled for the tasks.
    """

    def __init__(self, report: Callable[[int], None] | None = None) -> None:
        self._report = report

    def zero(self, value: frozenset[int]) -> frozenset[int]:
        """Return no numbers."""
        return frozenset()

    def addInPlace(self, value1: frozenset[int], value2: frozenset[int]) -> frozenset[int]:
        """Return the numbers of both values, and report how many they are if there are more."""
        both = value1 | value2
        if self._report is not None and len(both) > len(value1):
            self._report(len(both))
        return both

    def __reduce__(self) -> tuple[type[TaskAccumulator], tuple[()]]:
        return TaskAccumulator, ()


FinishedTasks: TypeAlias = Accumulator[frozenset[int]] | None


def watch_tasks(spark: SparkSession, observer: Observer, activity: str, total: int) -> FinishedTasks:
    """Return an accumulator for `report_finished_task`, which reports the progress of one stage while it runs.

    None with Spark Connect, which has no accumulators.
    """
    if is_remote(spark):
        return None
    report = partial(observer.progress, activity, total=total)
    return spark.sparkContext.accumulator(frozenset(), TaskAccumulator(report))


def report_finished_task(finished: FinishedTasks) -> None:
    """Report the end of the running task to the accumulator of `watch_tasks`."""
    running = TaskContext.get()
    if finished is not None and running is not None:
        finished.add(frozenset({running.partitionId()}))


Counts: TypeAlias = Mapping[tuple[str, int], tuple[int, ...]]
"""Numbers by the stage and the number of the unit of work that they count."""


class CountAccumulator(AccumulatorParam):
    """Accumulator of the numbers of changed rows. A unit that ran twice is counted once."""

    def zero(self, value: Counts) -> Counts:
        """Return no numbers."""
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:
        """Return the numbers of both values."""
        return {**value1, **value2}


def count_rows(spark: SparkSession) -> Accumulator[Counts]:
    """Return an accumulator for the numbers of rows that tasks change."""
    return spark.sparkContext.accumulator({}, CountAccumulator())


def sum_counts(counts: Accumulator[Counts]) -> tuple[int, ...]:
    """Return the sums over all units of work; empty if no unit ran."""
    return tuple(sum(numbers) for numbers in zip(*counts.value.values(), strict=True))
