"""Write a stream through the data source: `df.writeStream.format("paimon")`.

Invariant: each batch becomes one commit, under a user that the checkpoint determines and the number of the batch. A
batch that Spark runs again is recognized, and its new files are deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.schema.writable import check_rows_writable
from paimon.spark.options import SourceOptions
from paimon.spark.streams.checkpoint import CHECKPOINT_OPTION, Checkpoint, StreamSink
from paimon.spark.writer import EncodedMessages, assign_in_task, decode_messages, write_rows
from paimon.table import Table


class PaimonStreamWriter(DataSourceStreamArrowWriter):
    """Writer of one batch of a stream; Spark makes it again for each batch, and for each commit."""

    def __init__(self, table: Table, options: SourceOptions, overwrite: bool) -> None:
        check_rows_writable(table.definition)
        self._checkpoint = _require_checkpoint(options)
        # Rows are not routed: several tasks share a bucket, and each would compact it.
        self._table = table.with_options({"write-only": True})
        user = Checkpoint.of(self._checkpoint, self._table).find_user()
        builder = self._table.new_batch_write_builder(user)
        self.builder = builder.overwrite({}) if overwrite else builder  # the output mode complete
        self._kind_column = options.kind_column

    def write(self, iterator: Iterator[pa.RecordBatch]) -> EncodedMessages:
        """Write the rows of one task."""
        return EncodedMessages(write_rows(self.builder, assign_in_task(self.builder)(iterator), self._kind_column))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the messages of all tasks on the driver, unless the table has the batch.

        The new files are deleted if the stream and the table do not belong together, or the batch was planned again.
        """
        prepared = decode_messages(messages)
        try:
            sink = StreamSink.open(self._table, self._checkpoint, batchId)
            sink.is_committed()
        except (InvalidRequest, Unsupported):
            self.builder.new_commit().abort(prepared)
            raise
        sink.commit(self.builder, prepared)  # deletes the files if the batch is committed

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the files of all tasks if one of them failed; see `PaimonWriter.abort`."""
        if None in messages:
            self.builder.new_commit().abort(decode_messages(messages), batchId)


def _require_checkpoint(options: SourceOptions) -> str:
    if options.checkpoint is None:
        raise InvalidRequest(
            "A stream into a Paimon table needs its checkpoint, which makes each batch commit once.",
            subject=CHECKPOINT_OPTION,
            hint="set .option('checkpointLocation', …) on the writer; the setting "
            "spark.sql.streaming.checkpointLocation does not reach a Python source",
        )
    return options.checkpoint
