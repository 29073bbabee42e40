"""Run Spark tasks that write files, and return their commit messages, also those of the tasks before a failure.

Invariant: messages travel as bytes in the encoding of commit messages. Files of tasks that failed or ran twice are
orphan files at most. Numbers of changed rows travel with the rows, so a task that ran twice is counted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

import pyarrow as pa
from attrs import frozen
from pyspark import Accumulator, AccumulatorParam, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, BinaryType, LongType, StructField, StructType

from paimon.adapters.executors.spark import SPARK_ERRORS, DistributedTasks, is_remote, stoppable_jobs
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import decode
from paimon.domain.errors import PaimonError
from paimon.domain.types.arrow_arrays import make_array
from paimon.engines import freeze_objects
from paimon.ports.cancellation import Stopped
from paimon.ports.observer import Observer
from paimon.spark.frame_reads import to_frame_error
from paimon.spark.tasks.shuffle import receive_counts, send_counts
from paimon.spark.types import map_in_arrow


class Counted(NamedTuple):
    """The encoded commit messages of one task, and the numbers of rows that were changed."""

    messages: bytes
    counts: Sequence[int]


WriteTask: TypeAlias = Callable[[Iterator[pa.RecordBatch]], bytes | Counted]
"""Writes the rows of one task, and returns its encoded commit messages."""
Prepared: TypeAlias = Accumulator[tuple[bytes, ...]] | None
"""Collects the messages of files that exist once their task succeeds; None with Spark Connect."""
_MESSAGES, _COUNTS = "messages", "counts"
_SCHEMA = StructType([
    StructField(_MESSAGES, BinaryType(), False), StructField(_COUNTS, ArrayType(LongType(), False), False),
])  # fmt: skip
_COUNTS_TYPE = pa.list_(pa.field("element", pa.int64(), nullable=False))


def run_message_tasks(
    frame: DataFrame | DistributedTasks,
    write: WriteTask,
    prepared: Prepared = None,
    counts: Counter[int] | None = None,
) -> Iterator[CommitMessage]:
    """Run `write` once for each partition of a frame; it returns the encoded messages of one task.

    Yields the messages of all tasks, and adds the numbers that tasks return or sent to `counts`, by position. If Spark
    fails, yields those in `prepared` (earlier stages and successful tasks), then raises the error. Spark Connect does
    not return these, so their files become orphan files.
    """
    if prepared is None:
        prepared = collect_prepared(frame.sparkSession)
    try:
        with stoppable_jobs(frame.sparkSession):
            task = _Task(write, prepared)
            is_frame = isinstance(frame, DataFrame)
            made = map_in_arrow(frame, task, _SCHEMA) if is_frame else frame.mapInArrow(task, _SCHEMA)
            rows = made.collect()
    except (*SPARK_ERRORS, PaimonError, Stopped) as error:
        yield from chain.from_iterable(decode(data) for data in (() if prepared is None else prepared.value))
        if isinstance(error, PaimonError | Stopped):
            raise
        raise to_frame_error(frame, error) from error
    for row in rows:
        if counts is not None:
            counts.update(dict(enumerate(row[_COUNTS])))
        yield from decode(bytes(row[_MESSAGES]))


def collect_prepared(spark: SparkSession) -> Prepared:
    """Return an accumulator for `add_prepared`; None with Spark Connect, which has no accumulators."""
    return None if is_remote(spark) else spark.sparkContext.accumulator((), MessageAccumulator())


def add_prepared(prepared: Prepared, messages: bytes) -> None:
    """Collect the encoded messages of files that exist once the running task succeeds."""
    if prepared is not None:
        prepared.add((messages,))


@frozen(eq=False)
class CountedWrite:
    """A write task of shuffled rows that also returns the numbers which earlier tasks sent with `send_counts`."""

    write: Callable[[Iterator[pa.RecordBatch]], bytes]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Counted:
        """Write the rows of one task."""
        counts: Counter[int] = Counter()
        messages = self.write(receive_counts(batches, counts))
        return Counted(messages, list_counts(counts))


@frozen(eq=False)
class ForwardCounts:
    """A function between two shuffles that also sends on the numbers which earlier tasks sent with `send_counts`."""

    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the function yields, then the numbers."""
        counts: Counter[int] = Counter()
        yield from self.function(receive_counts(batches, counts))
        yield from send_counts(list_counts(counts))


def list_counts(counts: Counter[int]) -> list[int]:
    """Return numbers in the order of their positions; empty if there are none."""
    return [counts[position] for position in range(max(counts, default=-1) + 1)]


@frozen(eq=False)
class _Task:
    """The function that each Spark task applies to its rows; the accumulator collects the messages of successes."""

    write: WriteTask
    accumulator: Prepared

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = self.write(batches)
        data, counts = written if isinstance(written, Counted) else (written, ())
        add_prepared(self.accumulator, data)
        columns = [make_array([data], pa.binary()), pa.array([list(counts)], _COUNTS_TYPE)]
        yield pa.record_batch(columns, names=[_MESSAGES, _COUNTS])
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
