"""SparkExecutor: tasks on the executors of a Spark session, one Spark task each.

Law: nothing but bytes passes between driver and executors: a task is pickled by the driver that made it, an answer is
encoded and decoded by the functions given, and nothing is ever unpickled that lay in storage. Spark may run a task
again that failed or whose worker died; the answers are those of the tries that ended well.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from paimon.domain.errors import InvalidRequest, PaimonError, StorageError, Unsupported

T = TypeVar("T")
R = TypeVar("R")

_PLACE, _DATA = "place", "data"
_SCHEMA = f"{_PLACE} INT NOT NULL, {_DATA} BINARY NOT NULL"
_TYPED = re.compile(
    r"^paimon\.domain\.errors\.(InvalidRequest|Unsupported): (.*?)(?=\n\s*(?:at |\n|\tat |SQLSTATE|$)|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""What Python says of an error of ours at the end of a traceback, up to what Java says of it."""
_ARROW = pa.schema([pa.field(_PLACE, pa.int32(), nullable=False), pa.field(_DATA, pa.binary(), nullable=False)])


class SparkExecutor(Generic[R]):
    """See `paimon.ports.executor.Executor`; all tasks run when the first answer is asked for.

    Parameters
    ----------
    session : SparkSession
        Where tasks run.
    encode, decode : callable
        An answer as bytes, and back.
    """

    def __init__(self, session: SparkSession, encode: Callable[[R], bytes], decode: Callable[[bytes], R]) -> None:
        self._session = session
        self._encode = encode
        self._decode = decode

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The answers in the order of the tasks; StorageError where Spark gave a task up."""
        given = [cloudpickle.dumps(task) for task in tasks]
        if not given:
            return
        try:
            answers = self._run(_Runs(function, self._encode), given).collect()
        except PySparkException as error:
            raise StorageError("Spark", f"gave up a task: {_reason(error)}") from error
        for _, data in sorted((row[_PLACE], bytes(row[_DATA])) for row in answers):
            yield self._decode(data)

    def _run(self, runs: _Runs[T, R], given: list[bytes]) -> DataFrame:
        frame = self._session.createDataFrame(list(enumerate(given)), _SCHEMA)
        return frame.repartitionById(len(given), frame[_PLACE]).mapInArrow(runs, _SCHEMA)


class _Runs(Generic[T, R]):
    """What each Spark task does with the tasks that it gets."""

    def __init__(self, function: Callable[[T], R], encode: Callable[[R], bytes]) -> None:
        self._function = function
        self._encode = encode

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place, data in zip(batch[_PLACE], batch[_DATA], strict=True):
                task = cast(T, pickle.loads(data.as_py()))  # made by this job's driver
                answer = {_PLACE: place.as_py(), _DATA: self._encode(self._function(task))}
                yield pa.RecordBatch.from_pylist([answer], schema=_ARROW)


def failure_of(error: Exception) -> PaimonError:
    """The error that a task ended with, where the caller is at fault; else StorageError."""
    found = _TYPED.search(str(error))
    if found is None:
        return StorageError("Spark", f"gave up a task: {_reason(error)}")
    kind, text = found[1], found[2].strip()
    if kind == "InvalidRequest":
        return InvalidRequest(text)
    return Unsupported(text.removeprefix("not supported: "))


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("paimon.") or "Error:" in line or "Exception:" in line]
    return (named or lines or [type(error).__name__])[-1]
