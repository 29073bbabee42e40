"""Stream read builders and asynchronous scans by the names of pypaimon.

Source: `pypaimon.read.stream_read_builder`, `pypaimon.read.streaming_table_scan`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from attrs import evolve

from paimon.builders.stream_read_builder import StreamPlan, StreamTableRead, StreamTableScan
from paimon.compat.data_types import DataField, arrow_schema_of
from paimon.compat.predicate import Predicate, PredicateBuilder, to_paimon_predicate
from paimon.compat.read import TableRead, name_columns
from paimon.compat.refused import PeerClass
from paimon.compat.rows import ROW_KIND_COLUMN
from paimon.compat.scan import DataSplit, Plan, from_paimon_splits
from paimon.compat.stored_table import StoredTable
from paimon.domain.types.arrow import fields_from_arrow

if TYPE_CHECKING:
    from paimon.builders.stream_read_builder import StreamReadBuilder as PaimonStreamReadBuilder

BucketFilter = Callable[[int], bool]


class StreamReadBuilder(PeerClass):
    """Collect what to read of a stream; made by `FileStoreTable.new_stream_read_builder`."""

    def __init__(self, table: StoredTable) -> None:
        self.table = table
        self._predicate: Predicate | None = None
        self._columns: dict[str, str] | None = None
        self._poll_interval_ms = 1000
        self._include_row_kind = False
        self._consumer_id: str | None = None
        self._bucket_filter: BucketFilter | None = None

    def with_filter(self, predicate: Predicate | None) -> StreamReadBuilder:
        """Read the changes of rows where a predicate is true."""
        self._predicate = predicate
        return self

    def with_projection(self, projection: Sequence[str] | None) -> StreamReadBuilder:
        """Read these columns, in this order."""
        self._columns = None if projection is None else name_columns(projection, self.table)
        return self

    def with_read_type(self, read_type: Sequence[DataField]) -> StreamReadBuilder:
        """Read the columns of these fields."""
        self._columns = {column.name: column.name for column in read_type}
        return self

    def with_poll_interval_ms(self, poll_interval_ms: int) -> StreamReadBuilder:
        """Look for new snapshots at this interval."""
        if poll_interval_ms <= 0:
            raise ValueError(f"poll_interval_ms must be positive, but is {poll_interval_ms}")
        self._poll_interval_ms = poll_interval_ms
        return self

    def with_include_row_kind(self, include: bool = True) -> StreamReadBuilder:
        """Return the kind of each change as the first column, ``_row_kind``."""
        self._include_row_kind = include
        return self

    def with_consumer_id(self, consumer_id: str) -> StreamReadBuilder:
        """Record progress under a name, and continue there."""
        self._consumer_id = consumer_id
        return self

    def with_bucket_filter(self, bucket_filter: BucketFilter) -> StreamReadBuilder:
        """Plan the buckets for whose numbers a function is true."""
        self._bucket_filter = bucket_filter
        return self

    def with_buckets(self, bucket_ids: Sequence[int]) -> StreamReadBuilder:
        """Plan these buckets."""
        chosen = frozenset(bucket_ids)
        return self.with_bucket_filter(lambda bucket: bucket in chosen)

    def new_streaming_scan(self) -> AsyncStreamingTableScan:
        """Return the object that plans snapshots as they are committed."""
        return AsyncStreamingTableScan(
            self.table,
            self._predicate,
            self._poll_interval_ms,
            bucket_filter=self._bucket_filter,
            consumer_id=self._consumer_id,
        )

    def new_read(self) -> StreamRead:
        """Return the object that reads the splits of plans."""
        return StreamRead(self.table, self._predicate, self._columns, self._include_row_kind)

    def new_predicate_builder(self) -> PredicateBuilder:
        """Return the builder of predicates on the columns of the table."""
        return PredicateBuilder(self.table.fields)

    def read_type(self) -> list[DataField]:
        """Return the columns that are read."""
        fields = {column.name: column for column in self.table.fields}
        return list(fields.values()) if self._columns is None else [fields[path] for path in self._columns.values()]


def open_stream(
    table: StoredTable, predicate: Predicate | None, columns: Mapping[str, str] | None = None
) -> PaimonStreamReadBuilder:
    """Return the stream builder of this library."""
    builder = table.inner.new_stream_read_builder()
    if predicate is not None:
        builder = builder.with_filter(to_paimon_predicate(predicate))
    return builder if columns is None else builder.with_projection(list(columns.values()))


class AsyncStreamingTableScan(PeerClass):
    """Plan snapshots as they are committed; made by `StreamReadBuilder.new_streaming_scan`."""

    def __init__(
        self,
        table: StoredTable,
        predicate: Predicate | None = None,
        poll_interval_ms: int = 1000,
        *,
        bucket_filter: BucketFilter | None = None,
        consumer_id: str | None = None,
    ) -> None:
        self.table = table
        self.predicate = predicate
        self.poll_interval = poll_interval_ms / 1000.0
        self._bucket_filter = bucket_filter
        self._consumer_id = consumer_id
        self._start: int | None = None
        self._scan: StreamTableScan | None = None

    @property
    def next_snapshot_id(self) -> int | None:
        """The snapshot of the next plan; set it before the stream starts, to begin there."""
        return self._start if self._scan is None else self._scan.next_snapshot

    @next_snapshot_id.setter
    def next_snapshot_id(self, value: int | None) -> None:
        self._start = value

    async def stream(self) -> AsyncIterator[Plan]:
        """Yield a plan for each snapshot, without blocking the event loop; asking for the next records one."""
        with self._open() as scan:
            async for plan in scan:
                for shown in self._show(plan):
                    following = scan.next_snapshot
                    yield shown
                    scan.acknowledge(following)

    def stream_sync(self) -> Iterator[Plan]:
        """Yield a plan for each snapshot, and wait for new ones; the record of progress is that of `stream`."""
        with self._open() as scan:
            for plan in scan:
                for shown in self._show(plan):
                    following = scan.next_snapshot
                    yield shown
                    scan.acknowledge(following)

    def notify_checkpoint(self, next_snapshot_id: int) -> None:
        """Record that all snapshots before this one are processed."""
        if self._scan is not None:
            self._scan.acknowledge(next_snapshot_id)

    def _open(self) -> StreamTableScan:
        interval = {"continuous.discovery-interval": f"{round(self.poll_interval * 1000)} ms"}
        builder = open_stream(self.table.copy(interval), self.predicate)
        if self._consumer_id is not None:
            builder = builder.with_consumer_id(self._consumer_id)
        if self._start is not None:
            builder = builder.with_start(self._start)
        self._scan = builder.new_scan()
        return self._scan

    def _show(self, plan: StreamPlan) -> Iterator[Plan]:
        splits = from_paimon_splits(plan.splits(), self.table.inner.table_schema, plan.is_state)
        if self._bucket_filter is not None:
            splits = [split for split in splits if self._bucket_filter(split.bucket)]
        if splits or plan.is_state or self._is_read(plan.snapshot_id):
            yield Plan(splits, plan.snapshot_id)

    def _is_read(self, snapshot_id: int) -> bool:
        """Return whether pypaimon plans a snapshot: filters may leave no splits of it, and it has a plan all the same.

        Without a changelog, that is each snapshot that adds rows; with one, each that has a changelog.
        """
        found = self.table.snapshot_manager().get_snapshot_by_id(snapshot_id)
        if self.table.options.changelog_producer() == "none":
            return found is not None and found.commit_kind == "APPEND"
        return found is not None and bool(found.changelog_manifest_list)


class StreamRead(TableRead):
    """Read the splits of streams; made by `StreamReadBuilder.new_read`."""

    def __init__(
        self,
        table: StoredTable,
        predicate: Predicate | None,
        columns: Mapping[str, str] | None,
        include_row_kind: bool,
    ) -> None:
        self.table = table
        self._include_row_kind = include_row_kind
        self._stream: StreamTableRead = open_stream(table, predicate, columns).new_read()
        names = list(columns) if columns is not None else table.field_names
        plain = arrow_schema_of(fields_from_arrow(self._stream.arrow_schema))
        shown = [column.with_name(name) for column, name in zip(list(plain)[2:], names, strict=True)]
        kind = [pa.field(ROW_KIND_COLUMN, pa.string())] if include_row_kind else []
        self._schema = pa.schema([*kind, *shown])

    @property
    def _limit(self) -> int | None:
        return None

    def _share_memory(self, tasks: int) -> Self:
        shared = copy(self)
        shared._stream = evolve(self._stream, context=self._stream.context.for_tasks(tasks))
        return shared

    def _read_splits(self, splits: Sequence[DataSplit]) -> Iterator[pa.RecordBatch]:
        for split in splits:
            plan = StreamPlan(split.snapshot_id, (split.inner,), split.is_state)
            for batch in self._stream.to_batches(plan):
                columns = batch.columns[1 if self.include_row_kind else 2 :]
                arrays = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, self._schema, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)
