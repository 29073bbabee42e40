"""Write a Spark data frame: route rows to their bucket, write with one task per bucket, and commit on the driver.

Invariant: the function of the embedded writer computes the bucket of a row. The commit is the embedded commit, with the
storage, the catalog and the callbacks of the table, and with the same result and errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from paimon.adapters.executors.spark import describe_jobs, report_stop
from paimon.builders.direct_writes import (
    SCHEMA_ATTEMPTS,
    WriteResult,
    commit_messages,
    publish_planned_schema,
    retry_assignment,
    schema_changed_error,
)
from paimon.builders.write_builder import BatchWriteBuilder
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.errors import InvalidRequest, PaimonError, Unsupported
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.missing_columns import set_missing_columns
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.evolve import CAST, WIDEN, load_at_newest_schema, plan_merged_schema
from paimon.operations.metadata.snapshots import check_unexpired
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import Stopped
from paimon.results import find_own_reads, stamp_messages
from paimon.spark import frame_reads  # noqa: F401  (find_own_reads learns about frames)
from paimon.spark.cross_partition import CrossPartitionWrite
from paimon.spark.options import check_shared_storage
from paimon.spark.session import register
from paimon.spark.streams.checkpoint import CommitName
from paimon.spark.tasks.message_tasks import WriteTask, run_message_tasks
from paimon.spark.tasks.routing import (
    check_writers,
    choose_tasks,
    gather_partitions,
    is_routed,
    route_rows,
    with_task_options,
    write_routed_rows,
)
from paimon.spark.tasks.shuffle import RowReader, read_plain_rows
from paimon.spark.types import fit_frame, to_batch_schema
from paimon.spark.warehouse import open_in_session
from paimon.spark.writer import DYNAMIC_OVERWRITE, assign_in_session, check_columns, follow_overwrite_mode, write_rows
from paimon.table import Table

_OVERWRITE = "overwrite"
_MODES = ("append", _OVERWRITE)


def write(  # noqa: PLR0913  (a public signature)
    frame: DataFrame,
    table: Table | str,
    mode: str = "append",
    *,
    kind_column: str | None = None,
    tasks: int | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
    options: Mapping[str, str] | None = None,
    partition: Mapping[str, object] | None = None,
    merge_schema: bool | str = False,
    missing_columns: str | None = None,
) -> WriteResult:
    """Write a data frame to a table in one commit.

    Parameters
    ----------
    frame : DataFrame
        Rows with the columns of the table. Names match as ``spark.sql.caseSensitive`` of the session says.
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session. As for `read`, tasks get its storage
        and catalog options without secrets.
    mode : str
        ``"append"``, an upsert in a table with a primary key, or ``"overwrite"``, which replaces written partitions, or
        the whole table if the session sets ``spark.sql.sources.partitionOverwriteMode`` to ``static``.
    kind_column : str, optional
        Column with row kinds (``+I``, ``-U``, ``+U``, ``-D``), which is not stored.
    tasks : int, optional
        Number of tasks, by default Spark's default parallelism, or for dynamic buckets the number of assigners.
    commit_user, commit_identifier : str, int, optional
        Name of the job, and number of the commit: with both, repeated calls commit once. In `foreachBatch` of a classic
        session, the name is by default that of the stream. Elsewhere, a number without a name is refused.
    options : mapping of str to str, optional
        Dynamic table options.
    partition : mapping of str to object, optional
        The values that all rows have in some partition columns, as in INSERT … PARTITION. The frame may lack these
        columns. An overwrite replaces these partitions; ``{}`` replaces the whole table.
    merge_schema, missing_columns : bool or str, str, optional
        As in `Table.write`; added columns are nullable. ``"widen"`` also gives columns of numbers a type of the frame
        that holds all their values, such as BIGINT for INT; ``"cast"`` other types, too, such as STRING for INT.

    Returns
    -------
    WriteResult
        As `Table.write` returns it.

    Raises
    ------
    InvalidRequest, StorageError, Unsupported
        The rows do not fit the table, a task failed in all its attempts, or some partitions of a cross-partition table
        are overwritten. Nothing was committed.
    CommitConflict, CommitUncertain, CommitOverwritten
        As `Table.write` raises them.
    """
    _check_arguments(mode, tasks, merge_schema)
    with report_stop(frame.sparkSession):
        opened = _open_for_mode(frame.sparkSession, table, options, mode, missing_columns)
        name = CommitName.of(frame.sparkSession, opened, commit_user, commit_identifier)
    return _WriteCall(frame, opened, mode, kind_column, tasks, partition, name, commit_identifier).run(merge_schema)


def overwrite_partitions(
    frame: DataFrame, table: Table, commit_user: str | None, commit_identifier: int | None
) -> WriteResult:
    """Replace the partitions of the rows, as `write` does, whatever the table and the session set."""
    with report_stop(frame.sparkSession):
        opened = open_target(table, {DYNAMIC_OVERWRITE: True}, register(frame.sparkSession))
        name = CommitName.of(frame.sparkSession, opened, commit_user, commit_identifier)
    return _WriteCall(frame, opened, _OVERWRITE, None, None, None, name, commit_identifier).run(False)


def write_query_rows(
    frame: DataFrame, table: Table, mode: str, partition: Mapping[str, object] | None, state: ReadState | None
) -> WriteResult:
    """Write the rows of a query of a SQL statement, as `write` does, in one attempt.

    `mode` is ``"append"`` or ``"overwrite"``; `state` is the oldest snapshot of the table that the query reads. Raises
    `CommitConflict` if other writers changed rows since that snapshot.
    """
    with report_stop(frame.sparkSession):
        opened = open_target(table, None, register(frame.sparkSession))
        return _WriteCall(frame, opened, mode, None, None, partition, CommitName(None), None, state).write()


def prepare_rows(frame: DataFrame, table: Table, commit_user: str) -> list[CommitMessage]:
    """Write the rows of a frame to files, as `write` does in mode ``"append"``, and return what to commit."""
    call = _WriteCall(frame, table, "append", None, None, None, CommitName(commit_user), None)
    builder = call._make_builder(table.context)
    return call._prepare(builder, fit_frame(frame, table.definition.schema.fields, None))


@frozen(eq=False)
class _WriteCall:
    """The arguments of one call of `write`; `state` is what the frame reads of the table."""

    frame: DataFrame
    table: Table
    mode: str
    kind_column: str | None
    tasks: int | None
    partition: Mapping[str, object] | None
    name: CommitName
    commit_identifier: int | None
    state: ReadState | None = None

    @property
    def _identifier(self) -> int:
        return BATCH_COMMIT_IDENTIFIER if self.commit_identifier is None else self.commit_identifier

    def run(self, merge_schema: bool | str) -> WriteResult:
        """Write and commit the rows, again if other writers changed what the writers of this call were assigned."""
        with report_stop(self.frame.sparkSession):
            return self._run(merge_schema)

    def _run(self, merge_schema: bool | str) -> WriteResult:
        replaces = self.mode == _OVERWRITE or bool(self.table.primary_keys)
        own = find_own_reads(self.table.definition, self.frame) if replaces else None
        call = evolve(self, state=own.state) if own else self
        write_once = partial(call.write_with_new_columns, merge_schema) if merge_schema else call.write
        return write_once() if own else retry_assignment(write_once)

    def write(self) -> WriteResult:
        """Write and commit the rows."""
        builder = self._make_builder(self.table.context)
        messages = self._prepare(builder, fit_frame(self.frame, self.table.definition.schema.fields, self.kind_column))
        return self._commit(builder, messages)

    def write_with_new_columns(self, merge_schema: bool | str) -> WriteResult:
        """Write files of a planned schema, publish it once all rows are written, and commit them.

        Raises `CommitConflict` if other writers changed the schema in each attempt.
        """
        for _ in range(SCHEMA_ATTEMPTS):
            newest = load_at_newest_schema(self.table.context)
            rows, planned = plan_frame_columns(newest, self.frame, self.kind_column, merge_schema)
            builder = self._make_builder(planned)
            messages = self._prepare(builder, rows)
            if planned is newest or publish_planned_schema(builder, messages):
                return self._commit(builder, messages)
        raise schema_changed_error(self.table.name)

    def _make_builder(self, context: TableContext) -> BatchWriteBuilder:
        builder = make_builder(Table(context), self.mode, self.name.user, self.partition)
        _check_overwrite(builder)
        return builder

    def _prepare(self, builder: BatchWriteBuilder, rows: DataFrame) -> list[CommitMessage]:
        builder = check_columns(builder, rows.schema, self.kind_column, self.partition, self.table.table_schema)
        assign = assign_in_session(rows.sparkSession, builder, self.partition)
        return write_in_tasks(rows, builder, self.kind_column, self.tasks, self._identifier, read=assign)

    def _commit(self, builder: BatchWriteBuilder, messages: list[CommitMessage]) -> WriteResult:
        messages = stamp_messages(builder.context.table, messages, self.state, builder.overwrites)
        name = self.name
        return commit_messages(builder.new_commit(), messages, name.properties, self._identifier, name.watermark_millis)


def plan_frame_columns(
    newest: TableContext, frame: DataFrame, kind_column: str | None, merge_schema: bool | str
) -> tuple[DataFrame, TableContext]:
    """Return a frame as the table names its columns, and the table with the columns and types that the frame brings.

    It is `newest` itself if there are none.
    """
    rows = fit_frame(frame, newest.schema.fields, kind_column)
    names = StructType([f for f in rows.schema.fields if f.name != kind_column])
    return rows, plan_merged_schema(newest, to_batch_schema(names), merge_schema)


def _open_for_mode(
    spark: SparkSession, table: Table | str, options: Mapping[str, object] | None, mode: str, missing: str | None
) -> Table:
    opened = open_target(table, options, register(spark))
    opened = follow_overwrite_mode(spark, opened) if mode == _OVERWRITE else opened
    return Table(opened.context.with_table(set_missing_columns(opened.definition, missing)))


def open_target(table: Table | str, options: Mapping[str, object] | None, spark: SparkSession) -> Table:
    """Return the table that a call changes, with dynamic options.

    A string is a path, or a name in the warehouse of the session. Refuses a system table, and a table in the memory of
    this process.
    """
    opened = table.with_options(options or {}) if isinstance(table, Table) else open_in_session(spark, table, options)
    if not isinstance(opened, Table):
        raise InvalidRequest(
            f"Table {opened.name!r} is a system table, which is read-only.",
            subject=opened.name,
            hint="leave out the $ part",
        )
    check_shared_storage(opened)
    return opened


def check_merge_schema(mode: object) -> None:
    """Check the argument `merge_schema` of a write."""
    if not isinstance(mode, bool) and mode not in (WIDEN, CAST):
        hint = f"use True, {WIDEN!r} or {CAST!r}"
        raise InvalidRequest(f"Argument 'merge_schema' is {mode!r}.", subject="merge_schema", hint=hint)


def check_tasks(tasks: int | None) -> None:
    """Check that the argument `tasks` of a write is at least 1."""
    if tasks is not None and tasks < 1:
        raise InvalidRequest(f"Number of tasks must be at least 1, not {tasks}.", subject="tasks")


def _check_arguments(mode: str, tasks: int | None, merge_schema: bool | str) -> None:
    check_merge_schema(merge_schema)
    if mode not in _MODES:
        raise InvalidRequest(f"Mode {mode!r} is unknown.", subject="mode", hint=f"use one of {', '.join(_MODES)}")
    check_tasks(tasks)


def _check_overwrite(builder: BatchWriteBuilder) -> None:
    """Refuse to overwrite some partitions of a cross-partition table: no task has all keys of the new rows."""
    is_cross_partition = builder.context.table.bucket_mode is BucketMode.CROSS_PARTITION
    if is_cross_partition and builder.overwrites and builder.replaced_partitions != {}:
        raise Unsupported(
            f"overwriting partitions of {builder.context.table.table_name!r} on Spark: keys may be in any partition",
            hint="use Table.overwrite, or set 'dynamic-partition-overwrite' to false to replace the whole table",
        )


def make_builder(
    table: Table, mode: str, commit_user: str | None, partition: Mapping[str, object] | None
) -> BatchWriteBuilder:
    """Return the builder of a write in mode ``"append"`` or ``"overwrite"``.

    `commit_user` None means a new user. `partition` selects the partitions that an overwrite replaces.
    """
    builder = table.new_batch_write_builder(commit_user)
    return builder.overwrite(partition) if mode == _OVERWRITE else builder


def prepare_for_tasks(builder: BatchWriteBuilder, tasks: int) -> BatchWriteBuilder:
    """Return the builder as tasks use it; see `list_task_options`."""
    return evolve(builder, context=with_task_options(builder.context, tasks))


def write_in_tasks(
    frame: DataFrame,
    builder: BatchWriteBuilder,
    kind_column: str | None,
    tasks: int | None,
    identifier: int,
    ordered: bool = False,
    read: RowReader = read_plain_rows,
) -> list[CommitMessage]:
    """Send each row to the task that writes its bucket, write all rows, and return the messages of all tasks.

    `ordered` keeps the order of rows within each source task. `read` decodes the batches that Spark passes to a task.
    """
    verb = _OVERWRITE if builder.overwrites else "write"
    with describe_jobs(frame.sparkSession, verb, builder.context.table.table_name):
        return _write_in_tasks(frame, builder, kind_column, tasks, identifier, ordered, read)


def _write_in_tasks(
    frame: DataFrame,
    builder: BatchWriteBuilder,
    kind_column: str | None,
    tasks: int | None,
    identifier: int,
    ordered: bool,
    read: RowReader,
) -> list[CommitMessage]:
    count = choose_tasks(frame.sparkSession, builder.context.table, tasks)
    builder = prepare_for_tasks(builder, count)
    if builder.context.table.bucket_mode is BucketMode.CROSS_PARTITION:
        job = CrossPartitionWrite.start(builder, kind_column, count)
        return _write_across_partitions(job, frame, identifier, read)
    if not is_routed(builder.context.table):
        frame = gather_partitions(frame, builder.context.table, tasks)
        return _run_tasks(frame, builder, partial(_write_rows, builder, kind_column, read), identifier)
    sent = route_rows(frame, builder, count, read, ordered=ordered)
    return _run_tasks(sent, builder, partial(write_routed_rows, builder, kind_column), identifier)


def _write_across_partitions(
    job: CrossPartitionWrite, frame: DataFrame, identifier: int, read: RowReader
) -> list[CommitMessage]:
    """Place the rows by the keys of the newest snapshot, write them, and return the commit messages."""
    with check_unexpired(job.builder.context, job.snapshot, "write the rows again"):
        return _run_tasks(job.assign_rows(frame, read), job.builder, job.write_rows, identifier)


def _write_rows(
    builder: BatchWriteBuilder, kind_column: str | None, read: RowReader, batches: Iterator[pa.RecordBatch]
) -> bytes:
    return write_rows(builder, read(batches), kind_column)


def _run_tasks(frame: DataFrame, builder: BatchWriteBuilder, write: WriteTask, identifier: int) -> list[CommitMessage]:
    """Run the tasks and return their commit messages; if Spark fails, remove the files of successful tasks."""
    messages: list[CommitMessage] = []
    try:
        messages.extend(run_message_tasks(frame, write))
        check_writers(builder.context.table, messages)
    except (PaimonError, Stopped):
        builder.new_commit().abort(messages, identifier)
        raise
    return messages
