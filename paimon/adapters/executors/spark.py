"""SparkExecutor: an executor that runs each task as one Spark task.

Invariant: driver and executors exchange only bytes. The driver pickles each task, and the given functions encode and
decode results; nothing that lay in storage is unpickled. Spark may run a failed task again; the results are those of
the successful attempts.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from paimon.domain.errors import InvalidRequest, PaimonError, StorageError, Unsupported

T = TypeVar("T")
R = TypeVar("R")

_POSITION, _DATA = "position", "data"
_SCHEMA = f"{_POSITION} INT NOT NULL, {_DATA} BINARY NOT NULL"
_TASK_ERROR = re.compile(
    r"^paimon\.domain\.errors\.(InvalidRequest|Unsupported): (.*?)(?=\n\s*(?:at |\n|\tat |SQLSTATE|$)|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""The line of an error of this library at the end of a Python traceback, before the text that Java appends."""
_ARROW = pa.schema([pa.field(_POSITION, pa.int32(), nullable=False), pa.field(_DATA, pa.binary(), nullable=False)])


class SparkExecutor(Generic[R]):
    """See `paimon.ports.executor.Executor`. All tasks run when the first result is requested.

    Parameters
    ----------
    session : SparkSession
        The session that runs the tasks.
    encode, decode : callable
        Convert a result to bytes, and back.
    """

    def __init__(self, session: SparkSession, encode: Callable[[R], bytes], decode: Callable[[bytes], R]) -> None:
        self._session = session
        self._encode = encode
        self._decode = decode

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results in the order of the tasks.

        Raises
        ------
        StorageError
            A task failed more often than Spark retries it.
        """
        tasks = list(tasks)
        if not tasks:
            return
        try:
            frame = distribute_tasks(self._session, tasks)
            rows = frame.mapInArrow(_TaskRunner(function, self._encode), _SCHEMA).collect()
        except PySparkException as error:
            raise StorageError("Spark", f"a task failed: {_reason(error)}") from error
        for _, data in sorted((row[_POSITION], bytes(row[_DATA])) for row in rows):
            yield self._decode(data)


class _TaskRunner(Generic[T, R]):
    """Runs the tasks of one partition on a Spark executor."""

    def __init__(self, function: Callable[[T], R], encode: Callable[[R], bytes]) -> None:
        self._function = function
        self._encode = encode

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for position, task in read_tasks(batches):
            row = {_POSITION: position, _DATA: self._encode(self._function(cast(T, task)))}
            yield pa.RecordBatch.from_pylist([row], schema=_ARROW)


def distribute_tasks(session: SparkSession, tasks: Sequence[object]) -> DataFrame:
    """Create a data frame with one partition per task.

    Parameters
    ----------
    session : SparkSession
        The session that runs the tasks.
    tasks : sequence of object
        One or more tasks, which the driver pickles.

    Returns
    -------
    DataFrame
        The frame. A function that runs on it reads its tasks with `read_tasks`.
    """
    frame = session.createDataFrame([(n, encode_task(task)) for n, task in enumerate(tasks)], _SCHEMA)
    return frame.repartitionById(len(tasks), frame[_POSITION])


def encode_task(task: object) -> bytes:
    """Return a task as bytes, which only `decode_task` in a task of the same job may read."""
    return bytes(cloudpickle.dumps(task))


def decode_task(data: bytes) -> object:
    """Return a task that the driver of this job encoded; never call it with bytes of another origin."""
    return pickle.loads(data)


def read_tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, object]]:
    """Read the tasks that `distribute_tasks` sent to a Spark executor.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Batches of the data frame.

    Yields
    ------
    tuple of (int, object)
        The position of a task among all tasks, and the task.
    """
    for batch in batches:
        for position, data in zip(batch[_POSITION], batch[_DATA], strict=True):
            yield position.as_py(), decode_task(data.as_py())


def to_paimon_error(error: Exception) -> PaimonError:
    """Convert an exception of Spark to the error of the task.

    Returns
    -------
    PaimonError
        InvalidRequest or Unsupported if the traceback ends with one of them, otherwise StorageError.
    """
    found = _TASK_ERROR.search(str(error))
    if found is None:
        return StorageError("Spark", f"a task failed: {_reason(error)}")
    kind, text = found[1], found[2].strip()
    if kind == "InvalidRequest":
        return InvalidRequest(text)
    return Unsupported(text.removeprefix("Not supported: "))


def _reason(error: Exception) -> str:
    """Return the line of a traceback that names the error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    error_lines = [line for line in lines if line.startswith("paimon.") or "Error:" in line or "Exception:" in line]
    return (error_lines or lines or [type(error).__name__])[-1]
