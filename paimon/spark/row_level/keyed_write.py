"""Write changed rows of primary-key tables with tasks: each row goes to the task that writes its bucket.

Invariant: a task writes and compacts with the writer that runs embedded. Rows travel with their exact Arrow types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
from attrs import frozen
from pyspark.sql import DataFrame

from paimon.builders.write_builder import BatchWriteBuilder
from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import encode
from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.undo import undo_on_failure
from paimon.operations.metadata.snapshots import check_unexpired
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter
from paimon.spark.cross_partition import CrossPartitionWrite, find_assigners
from paimon.spark.tasks.message_tasks import CountedWrite, Prepared, run_message_tasks
from paimon.spark.tasks.routing import RowRouter, RowRouting
from paimon.spark.tasks.shuffle import receive_rows, send_rows, shuffle_rows

_KIND = "__paimon_kind"
"""Temporary column with the row kinds."""
LAST = 1 << 30
"""Added to the number of a sender whose rows are read after those of all others."""


@frozen(eq=False)
class ChangedRowSender:
    """Sends changed rows to the tasks that write them; picklable, for the tasks that find the rows."""

    context: TableContext
    routing: RowRouting

    def open(self, own_number: int) -> ChangedRowOutput:
        """Return the output of the task with a number."""
        crosses = self.context.table.bucket_mode is BucketMode.CROSS_PARTITION
        return ChangedRowOutput(self, None if crosses else self.routing.open(own_number), own_number)


@frozen(eq=False)
class ChangedRowOutput:
    """The changed rows that one task sends."""

    sender: ChangedRowSender
    router: RowRouter | None
    own_number: int

    def send(
        self, rows: pa.Table, kinds: pa.Int8Array, position: int, *, comes_last: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows in the form that Spark shuffles: one record for each receiving task.

        `position` numbers the calls in ascending order. Rows with `comes_last` are newer than all rows sent without it.
        """
        context, tasks = self.sender.context, self.sender.routing.tasks
        rows = conform_to_fields(rows, context.schema.fields, f"table {context.table.table_name}")
        found = find_assigners(context, rows, tasks) if self.router is None else self.router.find_tasks(rows)
        texts = pa.array(KIND_TEXTS, pa.string()).take(kinds)
        yield from send_rows(rows.append_column(_KIND, texts), found, self.own_number + comes_last * LAST, position)


@frozen(eq=False)
class KeyedWrite:
    """The write of changed rows of one primary-key table."""

    sender: ChangedRowSender
    commit_user: str
    # Assigns rows to partitions and buckets; None unless the table is cross-partition
    cross_partition: CrossPartitionWrite | None

    @classmethod
    def start(cls, context: TableContext, commit_user: str, tasks: int) -> KeyedWrite:
        """Return a write with so many tasks. For a cross-partition table, it uses the keys of the newest snapshot."""
        routing = RowRouting.of(context, tasks)
        cross_partition = None
        if context.table.bucket_mode is BucketMode.CROSS_PARTITION:
            cross_partition = CrossPartitionWrite.start(BatchWriteBuilder(routing.context, commit_user), _KIND, tasks)
        return cls(ChangedRowSender(context, routing), commit_user, cross_partition)

    def run(self, sent: DataFrame, prepared: Prepared, counts: Counter[int]) -> Iterator[CommitMessage]:
        """Write rows that `ChangedRowOutput.send` yielded, and numbers of `send_counts`, which are added to `counts`.

        Yields the messages of all tasks. If Spark fails, yields those in `prepared`, then raises the error.
        """
        if self.cross_partition is None:
            write = CountedWrite(_WriteChanges(self.sender.routing.context, self.commit_user))
            yield from run_message_tasks(shuffle_rows(sent, self.sender.routing.tasks), write, prepared, counts)
            return
        with check_unexpired(self.sender.context, self.cross_partition.snapshot, "run the call again"):
            yield from run_message_tasks(
                self.cross_partition.assign_sent_rows(sent),
                CountedWrite(self.cross_partition.write_rows),
                prepared,
                counts,
            )


@frozen(eq=False)
class _WriteChanges:
    """The task that writes the changed rows of its buckets."""

    context: TableContext
    commit_user: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        writer = TableWriter(self.context, self.commit_user)
        with undo_on_failure(writer.abort):
            for received in receive_rows(batches):
                writer.write(received.rows, _KIND)
            return encode(writer.prepare_commit())
