"""The program API for streams: plan the changes of new snapshots in one process, read their splits in others.

Invariant: plans come in the order of their snapshots, and none is left out. Splits are plain values that can travel
between processes. Source: the names follow the program APIs of Java and of pypaimon.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

import pyarrow as pa
from attrs import evolve, frozen

from paimon.changes import AsyncSteps, Changes, to_idle_millis
from paimon.display.notebook import BuilderDisplay, given_arguments
from paimon.domain.changelog.stream_read import FollowRules
from paimon.domain.changelog.stream_start import parse_start
from paimon.domain.markup import format_count
from paimon.domain.predicate.expression import Predicate
from paimon.domain.report import CardDisplay, Report
from paimon.domain.scan.splits import DataSplit
from paimon.domain.text_checks import check_names
from paimon.operations.read.changes.followed import read_stream_split
from paimon.operations.read.split import ReadPlan
from paimon.operations.stream.start import Progress
from paimon.operations.stream.stream_scan import StreamRequest, StreamScan
from paimon.operations.table_context import TableContext
from paimon.references import Age


@frozen(repr=False)
class StreamReadBuilder(BuilderDisplay):
    """Collect what to read of a stream; made by `Table.new_stream_read_builder`.

    A builder is immutable: each `with_…` method returns a new one.
    """

    context: TableContext
    predicate: Predicate | str | None = None
    # Columns of the result, in order; None means all
    columns: tuple[str, ...] | None = None
    # The name under which progress is recorded
    consumer_id: str | None = None
    # Start of the stream, as in `Table.follow`
    from_snapshot: int | str | None = None

    def with_filter(self, predicate: Predicate | str) -> StreamReadBuilder:
        """Return a builder that reads the changes of rows where `predicate` is true."""
        return evolve(self, predicate=predicate)

    def with_projection(self, columns: Sequence[str]) -> StreamReadBuilder:
        """Return a builder that reads these columns, in this order."""
        return evolve(self, columns=check_names(columns, "columns"))

    def with_consumer_id(self, consumer_id: str) -> StreamReadBuilder:
        """Return a builder whose scans record their progress under a name, and continue there."""
        return evolve(self, consumer_id=consumer_id)

    def with_start(self, from_snapshot: int | str) -> StreamReadBuilder:
        """Return a builder whose scans begin with the changes of a snapshot; as in `Table.follow`."""
        return evolve(self, from_snapshot=from_snapshot)

    def new_scan(self, *, until: int | None = None, idle_timeout: Age | None = None) -> StreamTableScan:
        """Return the iterator of plans, which waits for new snapshots until it is closed.

        It ends after snapshot `until`, or after `idle_timeout` without a new snapshot; with 0, after all existing
        snapshots.
        """
        start = parse_start(self.context.options, self.from_snapshot)
        idle = None if idle_timeout is None else to_idle_millis(idle_timeout)
        request = StreamRequest(start, self._changes().read_plan.predicate, until, idle)
        return StreamTableScan(self.context, request, self.consumer_id)

    def new_read(self) -> StreamTableRead:
        """Return the object that reads plans, in this or in another process."""
        changes = self._changes()
        return StreamTableRead(self.context, changes.read_plan, changes.arrow_schema)

    def _changes(self) -> Changes:
        return Changes(self.context, columns=self.columns, where=self.predicate)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        columns = None if self.columns is None else list(self.columns)
        given = given_arguments(columns=columns, consumer_id=self.consumer_id, from_snapshot=self.from_snapshot)
        return self.context.table.table_name, given


@frozen(repr=False)
class StreamPlan(CardDisplay):
    """The splits of one snapshot of a stream; it can be pickled."""

    snapshot_id: int
    planned: tuple[DataSplit, ...]
    # Whether the rows are the initial state of the table, not changes
    is_state: bool = False

    def splits(self) -> tuple[DataSplit, ...]:
        """Return the units of work."""
        return self.planned

    def _report(self) -> Report:
        facts = {
            "reads": "the rows of the table" if self.is_state else "changes",
            "files": f"{sum(len(split.files) for split in self.planned):,} in {len(self.planned):,} splits",
        }
        return Report(f"snapshot {self.snapshot_id}", "Stream plan", facts.items())

    def __repr__(self) -> str:
        return f"StreamPlan(snapshot {self.snapshot_id}: {format_count(len(self.planned), 'split')})"


class StreamTableScan(BuilderDisplay, AsyncSteps[StreamPlan], Iterator[StreamPlan]):
    """An iterator of plans as snapshots arrive; a ``with`` block, or `close`, ends it.

    Progress is recorded under `consumer_id`, by default under the option `consumer-id`.
    """

    def __init__(self, context: TableContext, request: StreamRequest, consumer_id: str | None = None) -> None:
        name = context.options.consumer_id if consumer_id is None else consumer_id
        self._progress = Progress(context, name, FollowRules.of(context.table).shows_replaced_rows)
        self._scan = StreamScan(context, request, self._progress)
        self._table_name = context.table.table_name
        self._closed = False
        self._scan.begin()
        self._steps = self._scan.snapshot_changes(lambda: self._closed, self._progress.refresh)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self._table_name, given_arguments(next_snapshot=self._scan.next_id)

    @property
    def next_snapshot(self) -> int | None:
        """The snapshot of the next plan; None until the first plan of a table without snapshots."""
        return self._scan.next_id

    def acknowledge(self, next_snapshot: int | None = None) -> None:
        """Record that all snapshots before `next_snapshot` are processed; without a consumer this has no effect."""
        done = self.next_snapshot if next_snapshot is None else next_snapshot
        if done is not None:
            self._progress.record(done)

    def close(self) -> None:
        """End the iterator; a thread that waits for the next plan gets the end of the iteration."""
        self._closed = True

    def __next__(self) -> StreamPlan:
        found = next(self._steps)
        return StreamPlan(found.snapshot.id, found.splits, found.is_state)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@frozen(eq=False, repr=False)
class StreamTableRead(BuilderDisplay):
    """Read the plans of a stream; made by `StreamReadBuilder.new_read`."""

    context: TableContext
    read_plan: ReadPlan
    # `_snapshot_id`, `_row_kind`, then the selected columns
    arrow_schema: pa.Schema

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.context.table.table_name, {"columns": self.arrow_schema.names}

    def to_batches(self, plan: StreamPlan, splits: Sequence[DataSplit] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the changes of a plan, or of some of its splits."""
        chosen = plan.planned if splits is None else splits
        for split in chosen:
            yield from read_stream_split(self.context, self.read_plan, self.arrow_schema, split, plan.is_state)

    def to_arrow(self, plan: StreamPlan, splits: Sequence[DataSplit] | None = None) -> pa.Table:
        """Return the changes of a plan, or of some of its splits, as one Arrow table."""
        return pa.Table.from_batches(list(self.to_batches(plan, splits)), schema=self.arrow_schema)
