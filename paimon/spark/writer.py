"""Write on executors, and commit on the driver.

Invariant: a task writes and compacts with the writer of embedded code, and returns encoded commit messages. One commit
publishes all of them. An abort deletes no file that a snapshot can reference. Failed and repeated tasks leave orphan
files at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from attrs import evolve
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon.builders.direct_writes import commit_messages
from paimon.builders.table_write import TableWrite
from paimon.builders.write_builder import BatchWriteBuilder
from paimon.domain.assignment.store_assignment import StoreAssignment
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import decode, encode
from paimon.domain.partition.partition_text import parse_partition_spec
from paimon.domain.schema.missing_columns import find_needed_columns, missing_error, set_missing_columns
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.schema.writable import check_rows_writable
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.table_context import missing_user_error
from paimon.spark.options import DYNAMIC, STATIC, SourceOptions
from paimon.spark.types import to_batch_schema
from paimon.spark.warehouse import TIME_ZONE
from paimon.table import Table

_ANY_ZONE = "UTC"
"""Where there are no rows, the time zone has no effect."""


OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
DYNAMIC_OVERWRITE = "dynamic-partition-overwrite"


class EncodedMessages(WriterCommitMessage):
    """The commit messages of one task, as bytes.

    `is_dynamic` is whether an overwrite replaces only the partitions that are written: a task knows the settings of
    the session, and the process that commits does not.
    """

    def __init__(self, data: bytes, is_dynamic: bool = False) -> None:
        self.data = data
        self.is_dynamic = is_dynamic


def follow_overwrite_mode(spark: SparkSession, table: Table) -> Table:
    """Return the table with the overwrite mode that the session sets, unless a dynamic option of the table says it."""
    mode = spark.conf.get(OVERWRITE_MODE, None)
    if mode is None or _find_given_mode(table) is not None:
        return table
    return table.with_options({DYNAMIC_OVERWRITE: mode.lower() == DYNAMIC})


def _find_given_mode(table: Table) -> str | None:
    """Return the overwrite mode of a dynamic option; None if the table has the option as it is stored."""
    options = table.definition.options
    if options.values.get(DYNAMIC_OVERWRITE) == table.table_schema.options.get(DYNAMIC_OVERWRITE):
        return None
    return DYNAMIC if options.dynamic_partition_overwrite else STATIC


class PaimonWriter(DataSourceArrowWriter):
    """Writer of one job of `df.write`; its commit user is chosen once and pickled with it."""

    def __init__(self, table: Table, options: SourceOptions, overwrite: bool) -> None:
        check_rows_writable(table.definition)  # on the driver, where the caller sees the error
        # Rows are not routed: several tasks share a bucket, and each would compact it.
        write_only = table.with_options({"write-only": True, DYNAMIC_OVERWRITE: True})
        builder = write_only.new_batch_write_builder(options.commit_user)
        self.builder = builder.overwrite() if overwrite else builder
        self._mode = options.overwrite_mode or _find_given_mode(table)
        self._kind_column = options.kind_column
        given = options.commit_identifier
        if given is not None and options.commit_user is None:
            raise missing_user_error("commit-identifier")
        self._identifier = BATCH_COMMIT_IDENTIFIER if given is None else given

    def write(self, iterator: Iterator[pa.RecordBatch]) -> EncodedMessages:
        """Write the rows of one task."""
        is_dynamic = (self._mode or _get_setting(OVERWRITE_MODE) or "").lower() == DYNAMIC
        builder = self._choose_partitions(is_dynamic)
        data = write_rows(builder, assign_in_task(builder)(iterator), self._kind_column)
        return EncodedMessages(data, is_dynamic)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the messages of all tasks on the driver."""
        is_dynamic = any(isinstance(m, EncodedMessages) and m.is_dynamic for m in messages)
        commit = self._choose_partitions(is_dynamic).new_commit()
        commit_messages(commit, decode_messages(messages), identifier=self._identifier)

    def _choose_partitions(self, is_dynamic: bool) -> BatchWriteBuilder:
        """Return the builder for an overwrite of the partitions that are written, or else of the whole table."""
        builder = self.builder
        return builder.overwrite(None if is_dynamic else {}) if builder.overwrites else builder

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove the files of all tasks if one of them failed.

        Spark also calls this method if all tasks succeeded and `commit` failed. A refused commit has removed the files
        itself. After an uncertain commit, the table may reference them.
        """
        if None not in messages:
            return
        self.builder.new_commit().abort(decode_messages(messages), self._identifier)


def check_columns(
    builder: BatchWriteBuilder,
    schema: StructType,
    kind_column: str | None,
    partition: Mapping[str, object] | None = None,
    opened: TableSchema | None = None,
) -> BatchWriteBuilder:
    """Refuse columns that do not fit the table, by a write of no rows, and return the builder for the tasks.

    Columns newer than `opened`, the schema that the caller saw, may be missing. The returned builder checks for missing
    columns only where row kinds decide whether a row needs them.
    """
    with builder.new_write() as writer:
        rows = pa.Table.from_batches([], to_batch_schema(schema))
        rows = _assign(builder, _ANY_ZONE, partition).assign_rows(rows)
        writer.write(rows, kind_column)
    table = builder.context.table
    missing = [name for name in find_needed_columns(table, opened) if name not in rows.column_names]
    if missing and not (kind_column or table.options.rowkind_field):
        raise missing_error(table, missing)
    allowing = builder.context.with_table(set_missing_columns(table, "null"))
    return builder if missing else evolve(builder, context=allowing)


def assign_in_session(
    spark: SparkSession, builder: BatchWriteBuilder, partition: Mapping[str, object] | None = None
) -> StoreAssignment:
    """Return the function with which tasks read Spark rows, and cast them as INSERT does.

    Dates are those of the session's time zone.
    """
    return _assign(builder, str(spark.conf.get(TIME_ZONE)), partition)


def assign_in_task(builder: BatchWriteBuilder) -> StoreAssignment:
    """Return the function of `assign_in_session` in a task, which has the settings of its session."""
    return _assign(builder, _get_setting(TIME_ZONE) or "")


def _get_setting(name: str) -> str | None:
    """Return a setting that the session of the running task sets."""
    running = TaskContext.get()
    return None if running is None else running.getLocalProperty(name)


def _assign(builder: BatchWriteBuilder, zone: str, partition: Mapping[str, object] | None = None) -> StoreAssignment:
    context = builder.context
    fields = context.schema.partition_fields
    constants = parse_partition_spec(partition or {}, fields, context.options.partition_default_name)
    return StoreAssignment(context.schema.fields, zone, constants)


def write_rows(
    builder: BatchWriteBuilder,
    batches: Iterator[pa.RecordBatch | pa.Table],
    kind_column: str | None,
    opened: TableWrite | None = None,
) -> bytes:
    """Write the rows of one task, by default with a new writer, and return its encoded commit messages."""
    with opened or builder.new_write() as writer:
        for batch in batches:
            writer.write(batch, kind_column)
        return encode(writer.prepare_commit())


def writes_postponed_rows(table: TableDefinition) -> bool:
    """Return whether rows need no route to a bucket, because a compaction moves them later."""
    return table.options.bucket == POSTPONED and not table.options.postpone_batch_write_fixed_bucket


def decode_messages(messages: Sequence[WriterCommitMessage | None]) -> list[CommitMessage]:
    """Return the commit messages of the tasks that succeeded."""
    encoded = [m.data for m in messages if isinstance(m, EncodedMessages)]
    return [message for data in encoded for message in decode(data)]
