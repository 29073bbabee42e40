"""Compaction on executors: one task a bucket, one commit by the driver.

Law: a task runs the very function that compacts a bucket in an embedded program, and answers its commit message in the
typed encoding of commit messages. Tasks that fail, or run twice, leave at most orphan files.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve
from pyspark.sql import SparkSession

from paimon.domain.commit.codec import decode, encode
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import Predicate
from paimon.engines import open_table, spark_executor
from paimon.operations.maintain.compact import CompactResult
from paimon.spark.session import session
from paimon.table import Table


def compact(
    table: Table | str,
    full: bool = False,
    where: str | Predicate | None = None,
    *,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
) -> CompactResult:
    """Compact a table once, its buckets as tasks of Spark.

    Parameters
    ----------
    table : Table or str
        A table, or the path of one.
    full : bool
        Everything into one sorted run a bucket, rather than what the table's options ask for now.
    where : str or Predicate
        Over partition columns: these partitions alone.
    spark : SparkSession
        The active session by default, or a local one where there is none.
    options : mapping
        Dynamic table options.

    Raises
    ------
    CommitConflict
        Another compaction, or an overwrite, replaced the same files meanwhile; compact again.
    StorageError
        Spark gave up a task; nothing was committed.
    """
    opened = open_table(table) if isinstance(table, str) else table
    if not isinstance(opened, Table):
        raise InvalidRequest(f"{table} is a system table", hint="name the table itself")
    running = SparkSession.getActiveSession() if spark is None else spark
    running = session() if running is None else running
    engine = evolve(opened.engine, executor=spark_executor(running, _bytes_of, _message_of))
    return evolve(opened.with_options(options or {}), engine=engine).compact(full, where)


def _bytes_of(message: CommitMessage) -> bytes:
    return encode([message])


def _message_of(data: bytes) -> CommitMessage:
    (message,) = decode(data)
    return message
