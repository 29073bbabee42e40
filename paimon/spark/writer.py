"""Writing on executors, committing on the driver.

Law: a task writes, and compacts, with the same writer as embedded code and answers encoded commit messages; one commit
publishes them all. An abort deletes nothing that a snapshot may hold. Failed and repeated tasks leave at most orphan
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon.builders import BatchWriteBuilder
from paimon.domain.commit.codec import decode, encode
from paimon.domain.commit.message import CommitMessage
from paimon.domain.schema.writable import check_rows_writable
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.spark.options import SourceOptions
from paimon.spark.types import arrow_schema_of
from paimon.table import Table, commit_messages


class EncodedMessages(WriterCommitMessage):
    """The commit messages of one task, as bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class PaimonWriter(DataSourceArrowWriter):
    """One Spark write job by `df.write`: its commit user is made once and travels with it."""

    def __init__(self, table: Table, options: SourceOptions, overwrite: bool) -> None:
        check_rows_writable(table.definition)  # here, rather than in a task far from the caller
        # Rows are not routed: several tasks share a bucket, and each would compact it.
        alone = table.with_options({"write-only": True})
        builder = alone.new_batch_write_builder(options.commit_user)
        self.builder = builder.overwrite() if overwrite else builder
        self._kind_column = options.kind_column
        given = options.commit_identifier
        self._identifier = BATCH_COMMIT_IDENTIFIER if given is None else given

    def write(self, iterator: Iterator[pa.RecordBatch]) -> EncodedMessages:
        return EncodedMessages(write_rows(self.builder, iterator, self._kind_column))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commit_messages(self.builder.new_commit(), _decoded(messages), identifier=self._identifier)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what the tasks wrote, where one of them failed.

        Where none did, Spark calls this because `commit` failed, in another process. `commit` has removed the files if
        it was refused; where its outcome is uncertain, they may be the table's.
        """
        if None not in messages:
            return
        self.builder.new_commit().abort(_decoded(messages), self._identifier)


def check_columns(builder: BatchWriteBuilder, schema: StructType, kind_column: str | None) -> None:
    """Refuse rows of this schema where the table's writer would: it is given none of them."""
    with builder.new_write() as writer:
        writer.write(arrow_schema_of(schema).empty_table(), kind_column)


def write_rows(builder: BatchWriteBuilder, batches: Iterator[pa.RecordBatch], kind_column: str | None) -> bytes:
    """Write the rows of one task; the encoded messages say what was written."""
    with builder.new_write() as writer:
        for batch in batches:
            writer.write(batch, kind_column)
        return encode(writer.prepare_commit())


def _decoded(messages: Sequence[WriterCommitMessage | None]) -> list[CommitMessage]:
    encoded = [m.data for m in messages if isinstance(m, EncodedMessages)]
    return [message for data in encoded for message in decode(data)]
