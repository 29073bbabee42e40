"""SparkExecutor: an executor that runs each task as one Spark task.

Invariant: driver and executors exchange only bytes. The driver pickles each task, and the given functions encode and
decode results; nothing that lay in storage is unpickled. Spark may run a failed task again; the results are those of
the successful attempts. Many tasks are divided into several jobs that run at once, so that results arrive while other
tasks run. Each job has a task for each core, so no core waits for the end of a job.
"""

from __future__ import annotations

import pickle
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from itertools import count, pairwise
from operator import itemgetter
from typing import Generic, TypeAlias, TypeVar, cast

import pyarrow as pa
from attrs import frozen
from py4j.protocol import Py4JError
from pyspark import SparkContext, cloudpickle, inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from paimon.adapters.cancellation import CallOnStop
from paimon.domain.errors import (
    InvalidRequest,
    PaimonError,
    SnapshotExpired,
    StorageError,
    TableDropped,
    TableReplaced,
    Unsupported,
)
from paimon.ports.cancellation import copy_task_context, has_token

T = TypeVar("T")
R = TypeVar("R")

ArrowFunction: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

SPARK_ERRORS = (PySparkException, Py4JError)
"""What an action raises. PySpark converts only some of Java's errors."""
_STOP_ERRORS = (*SPARK_ERRORS, AttributeError, OSError)
"""What PySpark raises if the session stopped, or if its Java process ended."""
_MOST_JOBS = 20
"""Into how many jobs many tasks are divided: a result may have to wait for the end of its job."""
_MOST_PARTITIONS = 1 << 16
_NUMBERS = count()
_DESCRIPTION = "spark.job.description"
_OWN_DESCRIPTION, _OWN_TAG = "paimon ", "paimon:"
"""How descriptions of jobs, and tags of Spark Connect, begin that `describe_jobs` sets."""
_PAUSE_SECONDS = 0.1
_SENT_WITH_FUNCTION = 512 * 1024
"""How many bytes of tasks travel with the function of a job, of which each task gets all."""
_POSITION, _DATA = "position", "data"
_SCHEMA = StructType([StructField(_POSITION, IntegerType(), False), StructField(_DATA, BinaryType(), False)])
_REQUEST_ERRORS: dict[str, type[InvalidRequest]] = {
    InvalidRequest.__name__: InvalidRequest,
    **{kind.__name__: kind for kind in InvalidRequest.__subclasses__()},
}
_GONE: dict[str, type[TableDropped] | type[TableReplaced]] = {
    kind.__name__: kind for kind in (TableDropped, TableReplaced)
}
_LOST_STATES = (SnapshotExpired.__name__, *_GONE)
"""Errors of a task that misses what it reads."""
_GONE_TABLE = re.compile(r"Table '(.*?)' (?:was dropped|does not exist)")
_TASK_ERROR = re.compile(
    rf"^(?:paimon\.domain\.errors\.(?=\w)|(?={'|'.join(_LOST_STATES)}))"
    rf"({'|'.join((*_REQUEST_ERRORS, *_LOST_STATES))}|Unsupported): "
    r"(.*?)(?=\n\s*(?:at |\n|\tat |SQLSTATE|$)|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""The line of an error of this library, as a traceback of Python ends or, if state was lost, as Java has it."""
CONDITION = re.compile(r"\[([A-Z][A-Z_0-9]+(?:\.[A-Z_0-9]+)*)\] (.*?)(?= SQLSTATE|\n|$)", re.DOTALL)
"""An error condition of Spark with its text, anywhere in a message."""
INTERNAL_CONDITIONS = (
    *("INTERNAL_ERROR", "FAILED_READ_FILE", "TASK_WRITE_FAILED", "STREAM_FAILED", "PYTHON_DATA_SOURCE_ERROR"),
    *("UNSUPPORTED_CALL", "PYTHON_EXCEPTION", "OPERATION_CANCELED", "INVALID_HANDLE", "NO_ACTIVE_SESSION"),
)
"""How conditions begin that the expressions of a data frame do not cause."""
_OTHER_VERSION = re.compile(
    r"^ModuleNotFoundError: No module named 'paimon[.'].*$|^(?:ImportError|AttributeError): [^\n]*'paimon\..*$"
    r"|\[PYTHON_VERSION_MISMATCH\][^\n]*",
    re.MULTILINE,
)
"""What a worker reports whose Python or whose version of this package is not that of this process."""
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^  File "([^"]+)", line \d+', re.MULTILINE)
_RAISED = re.compile(r"^(\w[\w.]*(?:: .*?)?)(?=\n\s*at |\n\n|\n\tat |\s*\Z)", re.MULTILINE | re.DOTALL)
"""The error at the end of a Python traceback."""
_OWN_FILE = re.compile(r"[/\\]paimon[/\\](?:domain|ports|operations|adapters|builders|spark)[/\\]")
_SPARK_FILE = re.compile(r"[/\\]pyspark[/\\]|pyspark\.zip|[/\\]py4j[/\\]")
_OWN_ERRORS = "paimon.domain.errors."
_DEAD_WORKER = re.compile(
    r"Python worker exited unexpectedly|ExecutorLostFailure|SocketException: |java\.io\.EOFException", re.IGNORECASE
)
"""What Spark reports about a worker or an executor that ended in a task."""
_SLOW_START = "Python worker failed to connect back"
_STOPPED = re.compile(
    r"SparkContext was shut down|stopped SparkContext|\[(?:OPERATION_CANCELED|INVALID_HANDLE|NO_ACTIVE_SESSION)|"
    r"cancelled part of cancelled job|Cannot invoke RPC on closed channel"
)
"""What Spark reports about tasks whose session ended before them."""
_RUN_AGAIN = "create another session, and run the call again"
_STORAGE_FAULT = re.compile(r"OSError|IOException|PermissionError|FileNotFoundError|No space left")
_LOOK_FOR_MEMORY = (
    "read the logs of the executors; if memory was short, raise 'spark.executor.memoryOverhead' or the number of tasks"
)
_ARROW = pa.schema([pa.field(_POSITION, pa.int32(), nullable=False), pa.field(_DATA, pa.binary(), nullable=False)])


class SparkExecutor(Generic[R]):
    """See `paimon.ports.executor.Executor`. All tasks start when the first result is requested.

    `encode` and `decode` convert a result to bytes and back. `finish_task` runs at the end of a task, in its process.
    Jobs are described as maintenance of `table_name`, unless their caller describes them.
    """

    def __init__(
        self,
        session: SparkSession,
        encode: Callable[[R], bytes],
        decode: Callable[[bytes], R],
        finish_task: Callable[[], None] | None = None,
        table_name: str = "",
    ) -> None:
        self._session = session
        self._table_name = table_name
        self._encode = encode
        self._decode = decode
        self._finish_task = finish_task

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], discard: Callable[[R], object] | None = None
    ) -> Iterator[R]:
        """Yield the results in the order of the tasks.

        A task that fails more often than Spark retries it raises StorageError.
        """
        shares = _divide_tasks(self._session, list(tasks))
        runner = _TaskRunner(function, self._encode, self._finish_task)
        if len(shares) < 2:
            for share in shares:
                yield from self._decode_rows(_run_tasks(self._session, share, runner, self._table_name), discard)
            return
        waiting: deque[Future[list[bytes]]] = deque()
        try:
            with _start_jobs(self._session, shares, runner, self._table_name) as jobs:
                waiting.extend(jobs)
                while waiting:
                    rows = waiting[0].result()
                    waiting.popleft()
                    yield from self._decode_rows(rows, discard)
        finally:
            for job in waiting:
                if not job.cancelled() and job.exception() is None:
                    self._discard_rows(job.result(), discard)

    def _decode_rows(self, rows: list[bytes], discard: Callable[[R], object] | None) -> Iterator[R]:
        left = deque(rows)
        try:
            while left:
                yield self._decode(left.popleft())
        finally:
            self._discard_rows(left, discard)

    def _discard_rows(self, rows: Iterable[bytes], discard: Callable[[R], object] | None) -> None:
        if discard is not None:
            for row in rows:
                discard(self._decode(row))


def is_remote(session: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect, which has no Java objects in this process."""
    return not hasattr(session, "_jsparkSession")


def get_parallelism(session: SparkSession) -> int:
    """Return Spark's default parallelism. A session of Spark Connect runs a small job to find it."""
    if not is_remote(session):
        return int(session.sparkContext.defaultParallelism)
    # A range has as many partitions as the default parallelism of the server.
    numbers = session.range(_MOST_PARTITIONS).selectExpr("spark_partition_id() AS number")
    return int(numbers.selectExpr("max(number)").collect()[0][0]) + 1


@contextmanager
def describe_jobs(session: SparkSession, verb: str, table_name: str) -> Iterator[None]:
    """Describe the jobs that this thread starts in the block by verb and table; an outer block of this function wins.

    The description of the caller is restored; the group of the jobs stays that of the caller.
    """
    if is_remote(session):
        with _tag_operations(session, f"{_OWN_TAG}{verb}:{table_name}".replace(",", "_")):
            yield
        return
    context = session.sparkContext
    with report_stop(session):
        earlier = context.getLocalProperty(_DESCRIPTION)
        if earlier is not None and earlier.startswith(_OWN_DESCRIPTION):
            yield
            return
        context.setLocalProperty(_DESCRIPTION, f"{_OWN_DESCRIPTION}{verb} {table_name}")
        try:
            yield
        finally:
            with suppress(*_STOP_ERRORS):  # the call may have committed
                context.setLocalProperty(_DESCRIPTION, earlier)


@contextmanager
def report_stop(session: SparkSession) -> Iterator[None]:
    """Raise StorageError if PySpark fails in the block because the session stopped."""
    try:
        yield
    except PaimonError:
        raise
    except _STOP_ERRORS as error:
        if is_stopped(session):
            raise _make_stop_error() from error
        raise


def is_stopped(session: SparkSession) -> bool:
    """Return whether a session stopped, or its Java process ended."""
    if is_remote(session):
        return bool(session.is_stopped)
    try:
        return session.sparkContext._jsc is None or bool(session.sparkContext._jsc.sc().isStopped())
    except _STOP_ERRORS:
        return True


def drop_cached_rows(frame: DataFrame) -> None:
    """Let Spark forget the rows that a frame persists; a session that stopped has none."""
    with suppress(*_STOP_ERRORS):
        frame.unpersist()


@contextmanager
def stoppable_jobs(session: SparkSession) -> Iterator[None]:
    """Cancel the jobs of a block once a token of the caller is stopped, and raise Stopped; see also `report_stop`."""
    with report_stop(session):
        if not has_token():
            yield
            return
        tag = f"paimon-stop-{next(_NUMBERS)}"
        _tag_jobs(session, tag)
        try:
            with CallOnStop(lambda: _cancel_tag(session, tag)):
                yield
        finally:
            with suppress(*_STOP_ERRORS):
                (session.removeTag if is_remote(session) else session.sparkContext.removeJobTag)(tag)


@contextmanager
def _tag_operations(session: SparkSession, tag: str) -> Iterator[None]:
    """Tag what a session of Spark Connect runs in the block; it has no descriptions."""
    if any(known.startswith(_OWN_TAG) for known in session.getTags()):
        yield
        return
    session.addTag(tag)
    try:
        yield
    finally:
        session.removeTag(tag)


def _divide_tasks(session: SparkSession, tasks: list[T]) -> list[list[T]]:
    """Divide tasks into those of each job, of which each has a task for each core."""
    if len(tasks) < 2:
        return [tasks] if tasks else []
    size = max(get_parallelism(session), -(-len(tasks) // _MOST_JOBS))
    jobs = max(1, len(tasks) // size)
    bounds = [len(tasks) * number // jobs for number in range(jobs + 1)]
    return [tasks[first:last] for first, last in pairwise(bounds)]


@contextmanager
def _start_jobs(
    session: SparkSession, shares: Sequence[list[T]], runner: _TaskRunner[T, R], table_name: str
) -> Iterator[list[Future[list[bytes]]]]:
    """Start one job for each share of the tasks, in order; at the end of the block, cancel those that still run."""
    tag = f"paimon-tasks-{next(_NUMBERS)}"

    def run_share(share: list[T]) -> list[bytes]:
        _tag_jobs(session, tag)
        return _run_tasks(session, share, runner, table_name)

    with ThreadPoolExecutor(len(shares), "paimon-spark-job") as threads:
        # Threads inherit the local properties of the caller: its scheduler pool, and the group by which streams stop.
        start = copy_task_context  # and the tokens of the caller
        jobs = [threads.submit(start().run, inheritable_thread_target(session)(run_share), share) for share in shares]
        try:
            yield jobs
        finally:
            if not all(job.done() for job in jobs):
                _cancel_jobs(session, tag, jobs)


def _tag_jobs(session: SparkSession, tag: str) -> None:
    """Tag the jobs of this thread."""
    (session.addTag if is_remote(session) else session.sparkContext.addJobTag)(tag)


def _cancel_jobs(session: SparkSession, tag: str, jobs: Sequence[Future[list[bytes]]]) -> None:
    """Cancel jobs until all have ended: one may be about to start."""
    for job in jobs:
        job.cancel()
    while wait(jobs, _PAUSE_SECONDS).not_done:
        _cancel_tag(session, tag)


def _cancel_tag(session: SparkSession, tag: str) -> None:
    """Cancel the running jobs of a tag."""
    (session.interruptTag if is_remote(session) else session.sparkContext.cancelJobsWithTag)(tag)


def _run_tasks(session: SparkSession, tasks: list[T], runner: _TaskRunner[T, R], table_name: str) -> list[bytes]:
    """Run one job, and return the encoded results in the order of the tasks."""
    try:
        described = describe_jobs(session, "maintain", table_name) if table_name else nullcontext()
        with described, stoppable_jobs(session):
            rows = distribute_tasks(session, tasks).mapInArrow(runner, _SCHEMA).collect()
    except SPARK_ERRORS as error:
        raise _to_task_error(str(error) or type(error).__name__) from error
    return [bytes(row[_DATA]) for row in sorted(rows, key=itemgetter(_POSITION))]


class _TaskRunner(Generic[T, R]):
    """Runs the tasks of one partition on a Spark executor."""

    def __init__(
        self, function: Callable[[T], R], encode: Callable[[R], bytes], finish_task: Callable[[], None] | None
    ) -> None:
        self._function = function
        self._encode = encode
        self._finish_task = finish_task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for position, task in read_tasks(batches):
            row = {_POSITION: position, _DATA: self._encode(self._function(cast(T, task)))}
            yield pa.RecordBatch.from_pylist([row], schema=_ARROW)
        if self._finish_task is not None:
            self._finish_task()


@frozen(eq=False)
class DistributedTasks:
    """Tasks of a session, of which each becomes a Spark task. A function runs on them as on a data frame.

    Invariant: a few small tasks travel with the function, so that Spark runs one stage without a shuffle.
    """

    sparkSession: SparkSession
    _tasks: tuple[bytes, ...]

    def mapInArrow(self, function: ArrowFunction, schema: StructType | str) -> DataFrame:
        """Return the frame of the rows that `function` makes of the tasks, which it reads with `read_tasks`."""
        session, count = self.sparkSession, len(self._tasks)
        if sum(map(len, self._tasks)) <= _SENT_WITH_FUNCTION:
            return session.range(0, count, 1, count).mapInArrow(_WithTasks(self._tasks, function), schema)
        frame = session.createDataFrame(list(enumerate(self._tasks)), _SCHEMA)
        return frame.repartitionById(count, frame[_POSITION]).mapInArrow(function, schema)


@frozen(eq=False)
class _WithTasks:
    """A function with its tasks: it gets those whose numbers are the rows of the frame."""

    tasks: tuple[bytes, ...]
    function: ArrowFunction

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return iter(self.function(map(self._select, batches)))

    def _select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        numbers = batch.column(0)
        data = pa.array([self.tasks[number] for number in numbers.to_pylist()], pa.binary())
        return pa.RecordBatch.from_arrays([numbers.cast(pa.int32()), data], schema=_ARROW)


def distribute_tasks(session: SparkSession, tasks: Sequence[object]) -> DistributedTasks:
    """Pickle tasks, so that Spark runs each of them as a task. The function that runs on them calls `read_tasks`."""
    return DistributedTasks(session, tuple(map(encode_task, tasks)))


def encode_task(task: object) -> bytes:
    """Return a task as bytes, which only `decode_task` in a task of the same job may read."""
    return bytes(cloudpickle.dumps(task))


def decode_task(data: bytes) -> object:
    """Return a task that the driver of this job encoded; never call it with bytes of another origin."""
    return pickle.loads(data)


def read_tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, object]]:
    """Yield the tasks that `distribute_tasks` sent to a Spark executor, each after its position among all tasks."""
    for batch in batches:
        for position, data in zip(batch[_POSITION], batch[_DATA], strict=True):
            yield position.as_py(), decode_task(data.as_py())


def to_paimon_error(error: Exception) -> PaimonError:
    """Convert an exception of Spark to the error of the task.

    The result is the InvalidRequest (or subclass), Unsupported or SnapshotExpired at the end of the traceback, or an
    InvalidRequest for a function or an expression of the data frame that failed, else a StorageError. A table that was
    dropped while it is read is a TableDropped or a TableReplaced.
    """
    text = str(error) or type(error).__name__
    found = _TASK_ERROR.search(text)
    if found is None:
        return _to_version_error(text) or _to_function_error(text) or _to_value_error(text) or _to_task_error(text)
    kind, message = found[1], found[2].strip()
    if kind in _REQUEST_ERRORS:
        return _REQUEST_ERRORS[kind](message)
    if kind in _LOST_STATES:
        table = _GONE_TABLE.match(message)
        if table is not None:
            return _GONE[kind](table[1])
        message, hint = _split_hint(message)
        return SnapshotExpired(message, hint=hint)
    return Unsupported(message.removeprefix("Not supported: "))


def _split_hint(text: str) -> tuple[str, str]:
    """Return the sentences of an error of this library without the last one, which is its hint, and this one."""
    message, _, hint = text.removesuffix(".").rpartition(". ")
    return message, hint


def _to_version_error(text: str) -> InvalidRequest | None:
    """Return the error of workers that lack this package or have another version; None for other errors."""
    found = _OTHER_VERSION.search(text)
    if found is None:
        return None
    return InvalidRequest(
        f"Spark's workers have no version of this package that fits this process: {found[0].strip()}.",
        subject="paimon",
        hint="install the same version for the Python of the server and its workers, and start them again",
    )


def _to_function_error(text: str) -> InvalidRequest | None:
    """Return the error of a Python function that the user gave to Spark; None if no such function failed."""
    _, _, traceback = text.rpartition(_TRACEBACK)
    files = _FRAME.findall(traceback)
    failed = _RAISED.search(traceback)
    if failed is None or any(_OWN_FILE.search(file) for file in files) or all(map(_SPARK_FILE.search, files)):
        return None
    return InvalidRequest(
        f"A function of the data frame failed in a task: {failed[1].strip()}.",
        subject="frame",
        hint="correct the function; the cause of this error has its traceback",
    )


def _to_value_error(text: str) -> InvalidRequest | None:
    """Return the error of an expression that Spark cannot compute; None if Spark reports no such condition."""
    found = CONDITION.search(text)
    if found is None or found[1].startswith(INTERNAL_CONDITIONS) or _OWN_ERRORS in text or _DEAD_WORKER.search(text):
        return None
    sentence = " ".join(found[2].split()).rstrip(".:")
    reason = "Could not convert a value" if found[1] == "CAST_INVALID_INPUT" else found[1]
    return InvalidRequest(f"Spark cannot compute the data frame: {reason}: {sentence}.", subject="frame")


def _to_task_error(text: str) -> StorageError:
    """Return the error of a task that failed for a reason outside the rows and the request."""
    reason = _reason(text)
    if _STOPPED.search(text):
        return _make_stop_error()
    slow = find_slow_start(text)
    if slow is not None:
        return slow
    if _DEAD_WORKER.search(text):
        return StorageError("Spark", f"a process of a task died ({reason})", hint=_LOOK_FOR_MEMORY)
    hint = None if _STORAGE_FAULT.search(reason) else "the cause of this error has the report of Spark"
    if reason.startswith(_OWN_ERRORS):
        reason, hint = _split_hint(reason.removeprefix(_OWN_ERRORS))
    return StorageError("Spark", f"a task failed: {reason}", hint=hint)


def find_stop(text: str) -> StorageError | None:
    """Return the error for an internal error of Spark after the application of this process stopped; None for others.

    Spark reports the loss of its own state, and not that it stopped.
    """
    context = SparkContext._active_spark_context
    is_internal = "[INTERNAL_ERROR]" in text
    if not is_internal or (context is not None and context._jsc is not None and not context._jsc.sc().isStopped()):
        return None
    return _make_stop_error()


def find_slow_start(text: str) -> StorageError | None:
    """Return the error for a Python process that Spark did not wait for any longer; None for other errors."""
    if _SLOW_START not in text:
        return None
    hint = "run the call again with fewer cores for Spark, or on a machine with less load"
    return StorageError("Spark", "a Python process did not start within the 10 s that Spark waits for it", hint=hint)


def _make_stop_error() -> StorageError:
    return StorageError("Spark", "the session stopped, or its jobs were canceled", hint=_RUN_AGAIN)


def _reason(text: str) -> str:
    """Return the line of a traceback that names the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    error_lines = [line for line in lines if line.startswith("paimon.") or "Error:" in line or "Exception:" in line]
    return (error_lines or lines)[-1].removeprefix("Caused by: ")
