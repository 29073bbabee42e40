"""Compact on executors: one task per bucket, and one commit by the driver.

Invariant: a task runs the function that compacts a bucket in an embedded program, and returns its commit messages in
the encoding of commit messages. Tasks that fail or run twice leave orphan files at most.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve
from pyspark.sql import SparkSession

from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import decode, encode
from paimon.domain.predicate.expression import Predicate
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.engines import spark_executor
from paimon.operations.compact.compact import CompactResult
from paimon.operations.write.compact_postponed import compact_postponed
from paimon.references import run_after_commit
from paimon.scan import condition_of
from paimon.spark.maintenance.postponed import SparkPostponedCompaction
from paimon.spark.session import get_session
from paimon.spark.write import open_target
from paimon.table import Table
from paimon.table_write import commit_user_of


def compact(
    table: Table | str,
    full: bool = False,
    where: str | Predicate | None = None,
    *,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
) -> CompactResult:
    """Compact a table once, with one Spark task per bucket.

    Parameters
    ----------
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    full : bool
        Compact each bucket into one sorted run, not only what the table options require now.
    where : str or Predicate, optional
        A condition on partition columns; only these partitions are compacted.
    spark : SparkSession, optional
        The session; by default the active one, or a new local one.
    options : mapping of str to object, optional
        Dynamic table options.

    Returns
    -------
    CompactResult
        The snapshot of the compaction, if there was anything to do, and counts of buckets, files and records.

    Raises
    ------
    CommitConflict
        Another compaction or an overwrite replaced the same files during the call. Compact again.
    InvalidRequest
        The table is a system table.
    StorageError
        A Spark task failed in all its attempts. Nothing was committed.
    """
    running = get_session(spark)
    opened = open_target(table, options, running)
    if opened.definition.options.bucket == POSTPONED:
        return _compact_postponed(opened, full, where, running)
    executor = spark_executor(running, _encode_message, _decode_message)
    return opened.with_engine(evolve(opened.engine, executor=executor)).compact(full, where)


def _compact_postponed(table: Table, full: bool, where: str | Predicate | None, running: SparkSession) -> CompactResult:
    """Move postponed rows on executors, and commit on the driver as `Table.compact` does."""
    predicate = None if where is None else condition_of(where)
    context = table.context
    done = compact_postponed(context, commit_user_of(context, None), full, predicate, SparkPostponedCompaction(running))
    run_after_commit(table.with_options({"write-only": False}).context, done.snapshot_ids)
    return done


def _encode_message(message: CommitMessage) -> bytes:
    return encode([message])


def _decode_message(data: bytes) -> CommitMessage:
    (message,) = decode(data)
    return message
