"""Find the partition and the bucket of each row of a cross-partition table with parallel Spark tasks.

Rows are shuffled twice: by the hash of their key to the assigners, and by partition and bucket to the writers. The
keys of the table are read once, and shuffled to the assigners before the rows, so each assigner has the key index of
its share of the keys.

Invariant: one assigner has all rows of a key, and one writer writes all rows of a bucket. All assigners have keys of
one snapshot, and the commit checks whether later snapshots may have moved them.
Source: `PaimonSparkWriter`, `GlobalDynamicBucketProcessor`, `IndexBootstrap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen
from pyspark import TaskContext
from pyspark.sql import DataFrame

from paimon.adapters.executors.spark import distribute_tasks, read_tasks
from paimon.builders.write_builder import BatchWriteBuilder
from paimon.domain.columns.buffers import combine_column
from paimon.domain.commit.message import ReadState
from paimon.domain.commit.message_codec import encode
from paimon.domain.row.row_hash_columnar import hash_rows
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.missing_columns import ColumnCheck
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.undo import undo_on_failure
from paimon.operations.buckets.key_bootstrap import KeysOfBucket, plan_key_splits, read_key_places
from paimon.operations.buckets.key_index import KeyIndex
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.input_rows import prepare_rows
from paimon.operations.write.route import CrossPartitionRouting, find_addresses, find_tasks, select_columns
from paimon.operations.write.writer import TableWriter
from paimon.spark.tasks.message_tasks import ForwardCounts
from paimon.spark.tasks.shuffle import (
    ROWS_SCHEMA,
    ReceivedRows,
    RowReader,
    read_plain_rows,
    receive_rows,
    send_rows,
    shuffle_rows,
)
from paimon.spark.types import map_in_arrow

_BUCKET = "__paimon_bucket"
"""Temporary column with the bucket that an assigner chose."""
_BATCH_BYTES = 16 * 1024 * 1024
"""Rows that an assigner routes at once, because small batches make many small blocks of the key store."""


@frozen(eq=False)
class CrossPartitionWrite:
    """One write of a cross-partition table: the snapshot whose keys are indexed, and the functions of the tasks."""

    builder: BatchWriteBuilder
    kind_column: str | None
    # Number of assigners, which is also the number of writers
    tasks: int
    # None for an overwrite, and for a table without snapshots: no keys are read
    snapshot: Snapshot | None

    @classmethod
    def start(cls, builder: BatchWriteBuilder, kind_column: str | None, tasks: int) -> CrossPartitionWrite:
        """Return a write that uses the keys of the newest snapshot, which is read now on the driver."""
        context = builder.context
        snapshot = None if builder.overwrites else latest_snapshot(context)
        return cls(builder, kind_column, tasks, snapshot)

    def assign_rows(self, frame: DataFrame, read: RowReader = read_plain_rows) -> DataFrame:
        """Assign each row to a partition and bucket, and shuffle it to the task that writes this bucket.

        `read` decodes the batches that Spark passes to a task. The result is the input of `write_rows`.
        """
        send = _SendRows(self.builder.context, self.tasks, read)
        return self.assign_sent_rows(map_in_arrow(frame, send, ROWS_SCHEMA))

    def assign_sent_rows(self, sent: DataFrame) -> DataFrame:
        """Assign rows that were already sent to the tasks of `find_assigners`; otherwise as `assign_rows`."""
        context = self.builder.context
        splits = [] if self.snapshot is None else plan_key_splits(context, self.snapshot)
        if splits:
            shares = [splits[start :: self.tasks] for start in range(min(self.tasks, len(splits)))]
            read = distribute_tasks(sent.sparkSession, shares)
            sent = read.mapInArrow(_SendKeys(context, self.tasks), ROWS_SCHEMA).union(sent)
        assigner = ForwardCounts(_AssignRows(context, self.builder.commit_user, self.kind_column, self.tasks))
        return shuffle_rows(shuffle_rows(sent, self.tasks).mapInArrow(assigner, ROWS_SCHEMA), self.tasks)

    def write_rows(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        """Write the rows of one task of `assign_rows`, and return its encoded commit messages."""
        builder = self.builder
        fields = builder.context.schema.partition_fields
        writer = TableWriter(builder.context, builder.commit_user, ignore_previous=builder.overwrites, replaced={})
        with undo_on_failure(writer.abort):
            for received in receive_rows(batches):
                rows = received.rows.drop_columns([_BUCKET])
                buckets = np.asarray(received.rows[_BUCKET])
                writer.write_routed(rows, *find_addresses(rows, fields, buckets), self._base)
            return encode(writer.prepare_commit())

    @property
    def _base(self) -> ReadState | None:
        if self.builder.overwrites:
            return None
        return ReadState.of(self.snapshot)


@frozen(eq=False)
class _SendKeys:
    """The task that reads keys of the table, and sends each to its assigner, before all rows."""

    context: TableContext
    tasks: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, splits in read_tasks(batches):
            found = read_key_places(self.context, cast("list[DataSplit]", splits))
            for position, (partition, bucket, keys) in enumerate(found):
                address = {"partition": partition, "bucket": str(bucket)}
                rows = pa.Table.from_batches([keys]).replace_schema_metadata(address)
                yield from send_rows(rows, find_assigners(self.context, rows, self.tasks), -1 - number, position)


@frozen(eq=False)
class _SendRows:
    """The task that sends each row to the assigner of its key."""

    context: TableContext
    tasks: int
    read: RowReader

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        running = TaskContext.get()
        source = 0 if running is None else running.partitionId()
        for position, rows in enumerate(self.read(batches)):
            yield from send_rows(rows, find_assigners(self.context, rows, self.tasks), source, position)


@frozen(eq=False)
class _AssignRows:
    """The task that finds the bucket of each row by the key index of its share of the keys."""

    context: TableContext
    commit_user: str
    kind_column: str | None
    tasks: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = receive_rows(batches)
        first = next(received, None)
        if first is None:
            return
        index = KeyIndex(
            self.context, self.commit_user,
            ignore_previous=True, is_bounded=True, assigner=first.task, assigners=self.tasks,
        )  # fmt: skip
        with undo_on_failure(index.close):
            for is_key, group in groupby(chain([first], received), key=lambda item: item.source < 0):
                if is_key:
                    index.load(_to_keys(item) for item in group)
                else:
                    yield from self._assign(index, first.task, group)
        index.close()

    def _assign(self, index: KeyIndex, assigner: int, received: Iterable[ReceivedRows]) -> Iterator[pa.RecordBatch]:
        routing = CrossPartitionRouting(self.context, index)
        for position, rows in enumerate(_join_batches(item.rows for item in received)):
            check = ColumnCheck.of(self.context.table, self.kind_column)
            check.add_rows(rows).check_given()
            prepared = prepare_rows(self.context.table, rows, self.kind_column)
            routed, addresses, codes = routing.route(prepared)
            if routed.num_rows:
                buckets = np.array([address.bucket for address in addresses], np.int64)[codes]
                assigned = routed.append_column(_BUCKET, pa.array(buckets))
                yield from send_rows(assigned, find_tasks(addresses, self.tasks)[codes], assigner, position)


def find_assigners(context: TableContext, rows: pa.Table, tasks: int) -> npt.NDArray[np.int32]:
    """Return for each row the number of the task that indexes its key. `rows` needs only the key columns."""
    fields = [context.schema.field_of(name) for name in context.schema.primary_keys]
    keys = select_columns(rows, fields, context.table.table_name)
    hashes = hash_rows([combine_column(keys[f.name]) for f in fields], [f.type for f in fields])
    return (hashes % tasks).astype(np.int32)


def _to_keys(received: ReceivedRows) -> KeysOfBucket:
    address = received.rows.schema.metadata
    return KeysOfBucket(address[b"partition"], int(address[b"bucket"]), received.rows.combine_chunks().to_batches()[0])


def _join_batches(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows in larger tables."""
    gathered: list[pa.Table] = []
    for table in tables:
        gathered.append(table)
        if sum(t.nbytes for t in gathered) >= _BATCH_BYTES:
            yield pa.concat_tables(gathered)
            gathered = []
    if gathered:
        yield pa.concat_tables(gathered)
