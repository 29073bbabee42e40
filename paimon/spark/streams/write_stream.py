"""Write a stream of data frames: each micro-batch is routed to its buckets, and becomes one commit.

Invariant: a batch is committed exactly once, under a user that the checkpoint determines and the number of the batch.
The table is opened again for each batch, so changes of its schema or of its buckets apply from the next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve, field, frozen
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from paimon.adapters.executors.spark import SPARK_ERRORS, find_slow_start
from paimon.builders.direct_writes import (
    SCHEMA_ATTEMPTS,
    WriteResult,
    publish_planned_schema,
    retry_assignment,
    schema_changed_error,
)
from paimon.builders.write_builder import BatchWriteBuilder
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.schema.missing_columns import MISSING_COLUMNS
from paimon.domain.schema.writable import check_rows_writable
from paimon.domain.text_checks import check_mapping
from paimon.operations.evolve import load_at_newest_schema
from paimon.spark.session import register
from paimon.spark.streams.checkpoint import CHECKPOINT_OPTION, Checkpoint, StreamSink
from paimon.spark.types import fit_frame
from paimon.spark.write import (
    check_merge_schema,
    check_tasks,
    make_builder,
    open_target,
    plan_frame_columns,
    write_in_tasks,
)
from paimon.spark.writer import assign_in_session, check_columns
from paimon.table import Table

_DEFAULT_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_OUTPUT_MODES = ("append", "complete", "update")
_TRIGGERS = ("processingTime", "availableNow", "once")


def write_stream(  # noqa: PLR0913  (a public signature)
    frame: DataFrame,
    table: Table | str,
    checkpoint: str | None = None,
    *,
    trigger: Mapping[str, Any] | None = None,
    output_mode: str = "append",
    kind_column: str | None = None,
    tasks: int | None = None,
    merge_schema: bool | str = False,
    query_name: str | None = None,
    options: Mapping[str, object] | None = None,
    on_batch: Callable[[int, WriteResult], None] | None = None,
) -> StreamingQuery:
    """Start a query that writes a stream to a table; each micro-batch is committed exactly once.

    Rows are routed to their buckets, so all kinds of tables can be written. Rows that a task of the stream returns for
    one key are written in their order. A batch is recognized by the checkpoint, and committed once also after a kill.

    Parameters
    ----------
    frame : DataFrame
        A streaming data frame with the columns of the table. Names match as ``spark.sql.caseSensitive`` says.
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    checkpoint : str, optional
        Directory or URL of the checkpoint, by default ``spark.sql.streaming.checkpointLocation`` and the query's name.
    trigger : mapping of str to object, optional
        The arguments of `DataStreamWriter.trigger`, such as ``{"availableNow": True}``.
    output_mode : str
        ``"append"``, ``"complete"``, which replaces the whole table in each batch, or ``"update"``, which updates the
        rows of a table with a primary key.
    kind_column, tasks, merge_schema : str, int, bool or str, optional
        As in `write`. Columns are added, and types changed, with the first batch that has them.
    query_name, options : str, mapping of str to object, optional
        Name of the query, and dynamic table options.
    on_batch : callable, optional
        Is called on the driver after the commit of each batch, with its number and result; after a stop in between,
        again at the next start. An error of it ends the query. If the snapshots expired, the result names none.

    Returns
    -------
    StreamingQuery
        The running query. A failed batch ends it, and the next start continues with this batch.

    Raises
    ------
    InvalidRequest
        An argument does not fit, the checkpoint is not known, or it belongs to another table.
    Unsupported, StorageError
        The table cannot be written by Spark. The process of Python that writes batches did not start in time.
    """
    _check_arguments(frame, trigger, output_mode, tasks)
    location = checkpoint or _find_default_checkpoint(frame, query_name)
    calls = (kind_column, tasks, merge_schema, on_batch)
    commit = CommitBatch(table, options, location, output_mode == "complete", *calls)
    commit = check_target(frame, commit, output_mode)
    writer = frame.writeStream.outputMode(output_mode).option(CHECKPOINT_OPTION, location).foreachBatch(commit)
    named = writer if query_name is None else writer.queryName(query_name)
    return _start(named if trigger is None else named.trigger(**trigger))


def _start(writer: DataStreamWriter) -> StreamingQuery:
    try:
        return writer.start()
    except SPARK_ERRORS as error:
        slow = find_slow_start(str(error))
        if slow is None:
            raise
        raise slow from error


def check_target(frame: DataFrame, commit: CommitBatch, output_mode: str) -> CommitBatch:
    """Refuse a table that cannot take the rows, or that is not the table of the checkpoint.

    Where the frame has all columns now, batches may lack those that the table gets later.
    """
    check_merge_schema(commit.merge_schema)
    opened = open_target(commit.table, commit.options, register(frame.sparkSession))
    check_rows_writable(opened.definition)
    if output_mode == "update" and not opened.primary_keys:
        raise InvalidRequest(
            f"Output mode 'update' would add the updated rows to {opened.name!r}, which has no primary key.",
            subject="output_mode",
            hint="use 'complete', or a table with a primary key",
        )
    target, rows = opened, fit_frame(frame, opened.definition.schema.fields, commit.kind_column)
    if commit.merge_schema:
        newest = load_at_newest_schema(opened.context)
        rows, merged = plan_frame_columns(newest, frame, commit.kind_column, commit.merge_schema)
        target = Table(merged)
    builder = check_columns(make_builder(target, "append", None, None), rows.schema, commit.kind_column)
    Checkpoint.of(commit.checkpoint, opened).find_first_batch(opened)
    missing = {MISSING_COLUMNS: builder.context.options.missing_columns}
    return evolve(commit, options={**(commit.options or {}), **missing})


def _check_arguments(frame: DataFrame, trigger: Mapping[str, Any] | None, output_mode: str, tasks: int | None) -> None:
    if not frame.isStreaming:
        raise InvalidRequest(
            "The data frame is not a stream.", subject="frame", hint="write it with paimon.spark.write(df, table)"
        )
    if output_mode not in _OUTPUT_MODES:
        hint = f"use one of {', '.join(_OUTPUT_MODES)}"
        raise InvalidRequest(f"Output mode {output_mode!r} is unknown.", subject="output_mode", hint=hint)
    for name in check_mapping(trigger, "trigger"):
        if name not in _TRIGGERS:
            hint = did_you_mean(name, _TRIGGERS) or f"use one of {', '.join(_TRIGGERS)}"
            raise InvalidRequest(f"Trigger {name!r} is unknown, or has no batches.", subject="trigger", hint=hint)
    check_tasks(tasks)


def _find_default_checkpoint(frame: DataFrame, query_name: str | None) -> str:
    folder = frame.sparkSession.conf.get(_DEFAULT_CHECKPOINTS, None)
    if not folder or not query_name:
        raise InvalidRequest(
            "A stream into a Paimon table needs its checkpoint, which makes each batch commit once.",
            subject="checkpoint",
            hint=f"pass checkpoint='…', or set {_DEFAULT_CHECKPOINTS} and pass query_name='…'",
        )
    return f"{folder.rstrip('/')}/{query_name}"


@frozen(eq=False)
class CommitBatch:
    """The function that Spark calls on the driver for each batch."""

    table: Table | str
    options: Mapping[str, object] | None
    checkpoint: str
    # Whether each batch replaces the whole table
    replaces: bool
    kind_column: str | None
    # Number of writing tasks
    tasks: int | None
    # How columns that only the batch has, and its types, change the table; see `write`
    merge_schema: bool | str
    # Called after each commit
    on_batch: Callable[[int, WriteResult], None] | None
    __name__: str = field(default="commit_batch", init=False)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write and commit a batch, unless the table has it."""
        opened = self._open(batch)
        sink = StreamSink.open(opened, self.checkpoint, number)
        if sink.is_committed():
            # calls callbacks, and shows rows, where the first attempt was killed
            sink.commit(self._make_builder(opened, sink.commit_user), ())
            done = sink.describe_commit()
        else:
            write = self._write_with_new_columns if self.merge_schema else self._write
            done = retry_assignment(lambda: write(batch, sink))
        if self.on_batch is not None:
            self.on_batch(number, done)

    def _write(self, batch: DataFrame, sink: StreamSink) -> WriteResult:
        builder = self._make_builder(sink.table, sink.commit_user)
        rows = fit_frame(batch, sink.table.definition.schema.fields, self.kind_column)
        return sink.commit(builder, self._write_files(rows, builder, sink))

    def _write_with_new_columns(self, batch: DataFrame, sink: StreamSink) -> WriteResult:
        """Write files of a planned schema, publish it once all rows are written, and commit them.

        Raises `CommitConflict` if other writers changed the schema in each attempt.
        """
        for _ in range(SCHEMA_ATTEMPTS):
            newest = load_at_newest_schema(sink.table.context)
            rows, planned = plan_frame_columns(newest, batch, self.kind_column, self.merge_schema)
            builder = self._make_builder(Table(planned), sink.commit_user)
            messages = self._write_files(rows, builder, sink)
            if planned is newest or publish_planned_schema(builder, messages):
                return sink.commit(builder, messages)
        raise schema_changed_error(sink.table.name)

    def _write_files(self, rows: DataFrame, builder: BatchWriteBuilder, sink: StreamSink) -> list[CommitMessage]:
        read = assign_in_session(rows.sparkSession, builder)
        number = sink.batch.number
        return write_in_tasks(rows, builder, self.kind_column, self.tasks, number, ordered=True, read=read)

    def _open(self, batch: DataFrame) -> Table:
        """Return the table at its newest schema."""
        opened = open_target(self.table, self.options, batch.sparkSession)
        return Table(load_at_newest_schema(opened.context))

    def _make_builder(self, table: Table, commit_user: str) -> BatchWriteBuilder:
        if self.replaces:
            return make_builder(table, "overwrite", commit_user, {})
        return make_builder(table, "append", commit_user, None)
