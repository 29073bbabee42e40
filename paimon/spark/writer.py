"""Writing on executors, committing on the driver.

Law: a task writes, and compacts, with the same writer as embedded code and answers encoded commit messages; one commit
publishes them all. An abort deletes nothing that a snapshot may hold. Failed and repeated tasks leave at most orphan
files.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from paimon.builders import BatchWriteBuilder
from paimon.domain.commit.codec import decode, encode
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitConflict, CommitOverwritten, InvalidRequest, Unsupported
from paimon.domain.schema.writable import check_rows_writable
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.commit.abort import is_still_needed
from paimon.spark.options import ROUTE_COLUMN, SourceOptions
from paimon.table import Table


class EncodedMessages(WriterCommitMessage):
    """The commit messages of one task, as bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class PaimonWriter(DataSourceArrowWriter):
    """One Spark write job: its commit user is made once and travels with it."""

    def __init__(self, table: Table, source: SourceOptions, overwrite: bool) -> None:
        check_rows_writable(table.definition)  # here, rather than in a task far from the caller
        # Where rows are not routed, several tasks share a bucket, and each would compact it.
        alone = source.routed or bool(table.primary_keys)
        self._table = table if alone else table.with_options({"write-only": True})
        self._kind_column = source.kind_column
        self._identifier = source.commit_identifier or BATCH_COMMIT_IDENTIFIER
        self._commit_user = source.commit_user or str(uuid.uuid4())
        self._overwrite = overwrite

    def _builder(self) -> BatchWriteBuilder:
        builder = self._table.new_batch_write_builder(self._commit_user)
        return builder.overwrite() if self._overwrite else builder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> EncodedMessages:
        with self._builder().new_write() as writer:
            for batch in iterator:
                table = pa.Table.from_batches([batch])
                if ROUTE_COLUMN in table.column_names:
                    table = table.drop_columns([ROUTE_COLUMN])
                writer.write(table, self._kind_column)
            return EncodedMessages(encode(writer.prepare_commit()))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        decoded = _decoded(messages)
        committer = self._builder().new_commit()
        try:
            if self._table.primary_keys:
                _one_writer_a_bucket(decoded)
            committer.commit(decoded, identifier=self._identifier)
        except (InvalidRequest, CommitConflict, CommitOverwritten, Unsupported) as error:
            if not is_still_needed(decoded, error):
                committer.abort(decoded, self._identifier)
            raise

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what the tasks wrote, where one of them failed.

        Where none did, Spark calls this because `commit` failed, in another process. `commit` has removed the files if
        it was refused; where its outcome is uncertain, they may be the table's.
        """
        if None not in messages:
            return
        self._builder().new_commit().abort(_decoded(messages), self._identifier)


def _decoded(messages: Sequence[WriterCommitMessage | None]) -> list[CommitMessage]:
    encoded = [m.data for m in messages if isinstance(m, EncodedMessages)]
    return [message for data in encoded for message in decode(data)]


def _one_writer_a_bucket(messages: Sequence[CommitMessage]) -> None:
    seen: set[tuple[bytes, int]] = set()
    for message in messages:
        place = (message.partition, message.bucket)
        if place in seen:
            raise InvalidRequest(
                f"two tasks wrote bucket {message.bucket} of one partition",
                hint="write with paimon.spark.write(df, table)",
            )
        seen.add(place)
