"""Write a stream through the data source: `df.writeStream.format("paimon")`.

Invariant: each batch becomes one commit, under a user that the checkpoint determines and the number of the batch. A
batch that Spark runs again is recognized, and its new files are deleted.
"""

# Spark gives a Python sink no shuffle, so several tasks write one bucket. In a table with a primary key, the sequence
# numbers of their rows must differ, because the merge takes the row with the largest one. So each task leaves numbers
# free for the tasks before it, and the driver joins the messages of a bucket:
#
#     bucket 0, largest number 10      task 0 writes 11 … 30      task 1 writes 11 + 2^24 …      task 2: 11 + 2^25 …
#
# Where the numbers overlap nevertheless (a task has more rows, or other writers committed between the starts of two
# tasks), the driver writes the files of the later task again. 2^63 numbers last for 2.7 billion batches of 200 tasks.
# A task keeps the order of its rows; rows of one key in two tasks have no order in Spark either.

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from paimon.builders.table_write import TableWrite
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.writable import check_rows_writable
from paimon.operations.write.commit_rows import join_messages, must_show_rows
from paimon.spark.options import SourceOptions
from paimon.spark.streams.checkpoint import CHECKPOINT_OPTION, Checkpoint, StreamSink
from paimon.spark.writer import EncodedMessages, assign_in_task, decode_messages, write_rows, writes_postponed_rows
from paimon.table import Table

_NUMBERS_OF_TASK = 1 << 24


class PaimonStreamWriter(DataSourceStreamArrowWriter):
    """Writer of one batch of a stream; Spark makes it again for each batch, and for each commit."""

    def __init__(self, table: Table, options: SourceOptions, overwrite: bool) -> None:
        check_rows_writable(table.definition)
        _check_sink(table)
        self._checkpoint = _require_checkpoint(options)
        # Rows are not routed: several tasks share a bucket, and each would compact it.
        self._table = table.with_options({"write-only": True})
        user = Checkpoint.of(self._checkpoint, self._table).find_user()
        builder = self._table.new_batch_write_builder(user)
        self.builder = builder.overwrite({}) if overwrite else builder  # the output mode complete
        self._kind_column = options.kind_column

    def write(self, iterator: Iterator[pa.RecordBatch]) -> EncodedMessages:
        """Write the rows of one task."""
        builder, running = self.builder, TaskContext.get()
        gap = 0 if running is None or not self._shares_keys else running.partitionId() * _NUMBERS_OF_TASK
        writer = TableWrite(
            builder.context,
            builder.commit_user,
            ignore_previous=builder.overwrites,
            replaced=builder.replaced_partitions,
            number_gap=gap,
        )
        return EncodedMessages(write_rows(builder, assign_in_task(builder)(iterator), self._kind_column, writer))

    @property
    def _shares_keys(self) -> bool:
        """Whether several tasks can write rows of one key to one bucket."""
        table = self._table.definition
        return bool(table.schema.primary_keys) and table.bucket_mode is not BucketMode.POSTPONED

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the messages of all tasks on the driver, unless the table has the batch.

        The new files are deleted if the stream and the table do not belong together, or the batch was planned again.
        """
        prepared = decode_messages(messages)
        try:
            sink = StreamSink.open(self._table, self._checkpoint, batchId)
            is_new = not sink.is_committed()
        except (InvalidRequest, Unsupported):
            self.builder.new_commit().abort(prepared)
            raise
        if is_new and self._shares_keys:
            prepared = join_messages(self.builder.context, prepared)
        sink.commit(self.builder, prepared)  # deletes the files if the batch is committed

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the files of all tasks if one of them failed; see `PaimonWriter.abort`."""
        if None in messages:
            self.builder.new_commit().abort(decode_messages(messages), batchId)


def _check_sink(table: Table) -> None:
    """Refuse tables whose rows a task alone cannot place in a bucket, or which reads show after a compaction only."""
    definition = table.definition
    if not table.primary_keys or writes_postponed_rows(definition):
        return
    hint = "write it with paimon.spark.write_stream(df, table, checkpoint=…)"
    if definition.bucket_mode is not BucketMode.FIXED:
        what = f"writeStream.format('paimon') into {table.name!r}, whose tasks must agree about the bucket of a key"
        raise Unsupported(what, hint=hint)
    if must_show_rows(definition):
        what = f"writeStream.format('paimon') into {table.name!r}, whose rows are visible after a compaction"
        raise Unsupported(what, hint=hint)


def _require_checkpoint(options: SourceOptions) -> str:
    if options.checkpoint is None:
        raise InvalidRequest(
            "A stream into a Paimon table needs its checkpoint, which makes each batch commit once.",
            subject=CHECKPOINT_OPTION,
            hint="set .option('checkpointLocation', …) on the writer; the setting "
            "spark.sql.streaming.checkpointLocation does not reach a Python source",
        )
    return options.checkpoint
