"""The comfortable way to write: rows are routed to their bucket on the executors, one writer a bucket, one atomic
commit on the driver.

Law: the bucket of a row is computed by the same function that the embedded writer uses, and the commit is the embedded
one: with the table's own storage, catalog and callbacks, its result and its errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from attrs import frozen
from pyspark import AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from paimon.builders import BatchWriteBuilder
from paimon.domain.commit.codec import decode
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.engines import open_table, spark_failure
from paimon.operations.write.route import task_ids
from paimon.spark.session import register
from paimon.spark.writer import check_columns, write_rows
from paimon.table import Table, WriteResult, commit_messages

ROUTE_COLUMN = "__paimon_route"
"""Helper column that says to which task a row goes; never stored."""

_MODES = ("append", "overwrite")
_MESSAGES = "messages"


def write(
    frame: DataFrame,
    table: Table | str,
    mode: str = "append",
    *,
    kind_column: str | None = None,
    tasks: int | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
    options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Write a data frame in one commit.

    Parameters
    ----------
    frame : DataFrame
        Rows with the table's columns.
    table : Table or str
        A table, or the path of one. Its storage and catalog options go to the tasks, but for secrets: there
        credentials come from the environment, or from the function that the storage option ``login`` names.
    mode : str
        ``"append"`` (upsert, where there is a primary key) or ``"overwrite"`` (the partitions that are written).
    kind_column : str
        A column that holds row kinds and is not stored.
    tasks : int
        Into how many tasks rows are routed; Spark's default parallelism by default.
    commit_user, commit_identifier
        With both given the commit happens once, however often it is tried.
    options : mapping
        Dynamic table options.

    Returns
    -------
    WriteResult
        As of `Table.write`.

    Raises
    ------
    InvalidRequest
        The rows do not fit the table; nothing was committed. Wrong columns are refused before a job starts.
    CommitConflict, CommitUncertain, CommitOverwritten
        As of `Table.write`.
    StorageError
        Spark gave up a task, or the storage refused; nothing was committed.
    """
    if mode not in _MODES:
        raise InvalidRequest(f"mode {mode!r} is unknown", subject="mode", hint=f"known are {', '.join(_MODES)}")
    if tasks is not None and tasks < 1:
        raise InvalidRequest(f"tasks is {tasks}", subject="tasks", hint="give a whole number, at least 1")
    register(frame.sparkSession)
    opened = table.with_options(options or {}) if isinstance(table, Table) else open_table(table, options)
    if not isinstance(opened, Table):
        raise InvalidRequest(f"{opened.name} is a system table, which nobody writes", subject=opened.name)
    builder = _builder(opened, mode, commit_user)
    check_columns(builder, frame.schema, kind_column)
    routed = _routed(frame, opened, frame.sparkSession.sparkContext.defaultParallelism if tasks is None else tasks)
    identifier = BATCH_COMMIT_IDENTIFIER if commit_identifier is None else commit_identifier
    messages = _written(routed, _builder(_for_tasks(opened), mode, builder.commit_user), kind_column, identifier)
    return commit_messages(builder.new_commit(), messages, identifier=identifier)


def _builder(table: Table, mode: str, commit_user: str | None) -> BatchWriteBuilder:
    builder = table.new_batch_write_builder(commit_user)
    return builder.overwrite() if mode == "overwrite" else builder


def _for_tasks(table: Table) -> Table:
    """Where rows are not routed several tasks share a bucket, and each would compact it."""
    return table if _is_routed(table) else table.with_options({"write-only": True})


def _is_routed(table: Table) -> bool:
    return table.definition.options.bucket >= 1


def _routed(frame: DataFrame, table: Table, tasks: int) -> DataFrame:
    if not _is_routed(table):
        return frame
    definition = table.definition
    schema = StructType([*frame.schema.fields, StructField(ROUTE_COLUMN, IntegerType(), False)])

    def with_route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            routes = task_ids(definition, pa.Table.from_batches([batch]), tasks)
            yield batch.append_column(ROUTE_COLUMN, routes)

    return frame.mapInArrow(with_route, schema).repartitionById(tasks, ROUTE_COLUMN)


def _written(
    frame: DataFrame, builder: BatchWriteBuilder, kind_column: str | None, identifier: int
) -> list[CommitMessage]:
    """What the tasks wrote; where Spark gives up, the files of those that ended well are removed."""
    ended = frame.sparkSession.sparkContext.accumulator((), _Ended())
    try:
        rows = frame.mapInArrow(_Task(builder, kind_column, ended), f"{_MESSAGES} BINARY NOT NULL").collect()
    except PySparkException as error:
        builder.new_commit().abort(_decoded(ended.value), identifier)
        raise spark_failure(error) from error
    messages = _decoded([bytes(row[_MESSAGES]) for row in rows])
    if builder.table.schema.primary_keys:
        check_one_writer_a_bucket(messages)
    return messages


@frozen(eq=False)
class _Task:
    """What each Spark task does with the rows that it gets."""

    builder: BatchWriteBuilder
    kind_column: str | None
    ended: object

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        data = write_rows(self.builder, map(_without_route, batches), self.kind_column)
        self.ended.add((data,))  # type: ignore[attr-defined]
        yield pa.record_batch([pa.array([data], pa.binary())], names=[_MESSAGES])


class _Ended(AccumulatorParam):
    """The messages of the tasks that ended well, also where the job does not."""

    def zero(self, value: tuple[bytes, ...]) -> tuple[bytes, ...]:
        return ()

    def addInPlace(self, value1: tuple[bytes, ...], value2: tuple[bytes, ...]) -> tuple[bytes, ...]:
        return value1 + value2


def _without_route(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.drop_columns([ROUTE_COLUMN]) if ROUTE_COLUMN in batch.schema.names else batch


def _decoded(encoded: Sequence[bytes]) -> list[CommitMessage]:
    return [message for data in encoded for message in decode(data)]


def check_one_writer_a_bucket(messages: Sequence[CommitMessage]) -> None:
    """InvalidRequest where two tasks wrote one bucket: their sequence numbers would tie."""
    seen: set[tuple[bytes, int]] = set()
    for message in messages:
        place = (message.partition, message.bucket)
        if place in seen:
            raise InvalidRequest(
                f"two tasks wrote bucket {message.bucket} of one partition",
                hint="write with paimon.spark.write(df, table)",
            )
        seen.add(place)
