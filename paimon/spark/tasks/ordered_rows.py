"""Send rows to the tasks that write their buckets, in the order in which each source task returned them.

Invariant: rows that one source task returns for a key are written in this order. A stream reads the changes of a key in
one task, so the newest change wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from attrs import frozen
from pyspark import TaskContext
from pyspark.sql import DataFrame

from paimon.builders import BatchWriteBuilder
from paimon.domain.commit.message_codec import encode
from paimon.operations.write.route_dynamic import TaskRouter
from paimon.spark.tasks.routing import read_task_bucket_counts
from paimon.spark.tasks.shuffle import (
    ROWS_SCHEMA,
    RowReader,
    read_plain_rows,
    receive_rows,
    send_rows,
    shuffle_rows,
)


def route_in_order(
    frame: DataFrame, builder: BatchWriteBuilder, tasks: int, read: RowReader = read_plain_rows
) -> DataFrame:
    """Return the rows in the partitions of the tasks that write them, for `write_in_order`.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    builder : BatchWriteBuilder
        The builder of the write.
    tasks : int
        The number of writers.
    read : callable
        Returns the rows of the frame's batches.

    Returns
    -------
    DataFrame
        Sent rows; see `paimon.spark.tasks.shuffle`.
    """
    send = _SendRows(builder, tasks, read_task_bucket_counts(builder.context), read)
    return shuffle_rows(frame.mapInArrow(send, ROWS_SCHEMA), tasks)


def write_in_order(builder: BatchWriteBuilder, kind_column: str | None, batches: Iterator[pa.RecordBatch]) -> bytes:
    """Write the rows that one task received.

    Parameters
    ----------
    builder : BatchWriteBuilder
        Makes the writer of the table.
    kind_column : str or None
        Column with row kinds.
    batches : iterator of pyarrow.RecordBatch
        Sent rows.

    Returns
    -------
    bytes
        The encoded commit messages.
    """
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
        for position, rows in enumerate(self.read(batches)):
            yield from send_rows(rows, np.asarray(router.assign_task_ids(rows)), source, position)
