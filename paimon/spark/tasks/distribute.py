"""Run the tasks of a table on Spark, and encode their results: messages, reports, tables of files, names and counts.

Invariant: `decode_result(encode_result(value))` equals the value. Nothing is pickled, so bytes of a task run no code.
"""

from __future__ import annotations

import json
from collections.abc import Set
from numbers import Integral
from typing import TypeAlias

import pyarrow as pa
from attrs import evolve
from pyspark.sql import SparkSession

from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import decode, encode
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.maintenance.fault import FileReport
from paimon.engines import spark_executor
from paimon.table import Table

TaskResult: TypeAlias = CommitMessage | FileReport | pa.Table | Set[str] | int
_MESSAGE, _REPORT, _TABLE, _NAMES, _COUNT = b"M", b"R", b"T", b"N", b"C"


def distribute_table(table: Table, spark: SparkSession) -> Table:
    """Return the table with an executor that runs its compactions, checks and deletions as Spark tasks.

    The storage of the table must be accessible from the executors.
    """
    executor = spark_executor(spark, encode_result, decode_result, table.definition.table_name)
    return table.with_engine(evolve(table.engine, executor=executor))


def encode_result(result: TaskResult) -> bytes:
    """Return a result as bytes, the first of which names its type; raise `Unsupported` for a result of another type."""
    if isinstance(result, CommitMessage):
        return _MESSAGE + encode([result])
    if isinstance(result, FileReport):
        return _REPORT + result.to_json().encode()
    if isinstance(result, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, result.schema) as writer:
            writer.write_table(result)
        return _TABLE + bytes(sink.getvalue())
    if isinstance(result, Set):
        return _NAMES + json.dumps(sorted(result)).encode()
    if not isinstance(result, Integral):
        hint = "run it without Spark"
        raise Unsupported(f"a task of Spark whose result is of type {type(result).__name__}", hint=hint)
    return _COUNT + str(int(result)).encode()


def decode_result(data: bytes) -> TaskResult:
    """Return the result that a task encoded; raise `CorruptTable` for bytes of an unknown type."""
    kind, content = data[:1], data[1:]
    if kind == _MESSAGE:
        (message,) = decode(content)
        return message
    if kind == _REPORT:
        return FileReport.from_json(content.decode())
    if kind == _TABLE:
        return pa.ipc.open_stream(content).read_all()
    if kind == _NAMES:
        return frozenset(json.loads(content))
    if kind == _COUNT:
        return int(content)
    raise CorruptTable("task result", f"has the unknown type {kind!r}")
