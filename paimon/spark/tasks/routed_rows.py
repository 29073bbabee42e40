"""Send rows to the tasks that write their buckets, on request in the order in which each source task returned them.

Invariant: ordered rows that one source task returns for a key are written in this order. A stream reads the changes of
a key in one task, so the newest change wins. Spark shuffles Arrow data instead of rows, which it would convert twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from attrs import frozen
from pyspark import TaskContext
from pyspark.sql import DataFrame

from paimon.builders.write_builder import BatchWriteBuilder
from paimon.domain.commit.message_codec import encode
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.engines import freeze_objects
from paimon.operations.write.route import TaskRouter
from paimon.spark.tasks.routing import read_task_bucket_counts
from paimon.spark.tasks.shuffle import (
    ROWS_SCHEMA,
    RowReader,
    receive_rows,
    send_rows,
    shuffle_rows,
)

_SENT_BYTES = 16 * 1024 * 1024
"""How many bytes are divided among the tasks at once: each part has fixed costs, and parts are held in memory."""


def route_rows(
    frame: DataFrame, builder: BatchWriteBuilder, tasks: int, read: RowReader, *, ordered: bool
) -> DataFrame:
    """Shuffle rows, encoded by `send_rows`, to the tasks that write them with `write_routed_rows`.

    `read` decodes the batches that Spark passes to a task. `ordered` keeps the order of rows within each source task.
    """
    send = _SendRows(builder, tasks, read_task_bucket_counts(builder.context), read)
    sent = frame.mapInArrow(send, ROWS_SCHEMA)
    return shuffle_rows(sent, tasks) if ordered else sent.repartitionById(tasks, sent["task"])


def write_routed_rows(builder: BatchWriteBuilder, kind_column: str | None, batches: Iterator[pa.RecordBatch]) -> bytes:
    """Write the rows that one task received, and return its encoded commit messages."""
    with builder.new_write() as writer:
        for received in receive_rows(batches):
            writer.write(received.rows, kind_column)
        return encode(writer.prepare_commit())


@frozen(eq=False)
class _SendRows:
    """The task that finds the writer of each row."""

    builder: BatchWriteBuilder
    tasks: int
    counts: Mapping[bytes, int] | None
    read: RowReader

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        running = TaskContext.get()
        source = 0 if running is None else running.partitionId()
        router = TaskRouter(
            self.builder.context, self.tasks, ignore_previous=self.builder.overwrites, counts=self.counts
        )
        for position, rows in enumerate(gather_rows(self.read(batches), _SENT_BYTES)):
            yield from send_rows(rows, to_numpy(router.assign_task_ids(rows)), source, position)
        freeze_objects()


def gather_rows(parts: Iterable[pa.Table], size_bytes: int) -> Iterator[pa.Table]:
    """Concatenate adjacent tables of the same schema, in order, until a table has at least `size_bytes` bytes."""
    gathered: list[pa.Table] = []
    held_bytes = 0
    for part in parts:
        if gathered and (held_bytes >= size_bytes or not part.schema.equals(gathered[0].schema, check_metadata=True)):
            yield pa.concat_tables(gathered)
            gathered, held_bytes = [], 0
        gathered.append(part)
        held_bytes += part.nbytes
    if gathered:
        yield pa.concat_tables(gathered)
