"""Changes: a lazy read of the rows that snapshots changed, and Follow: the same as snapshots are committed.

Invariant: the range of `Changes` is fixed when it is first used. The batches of `Follow` come in the order of their
snapshots, none is left out, and memory use does not depend on the size of the table. Progress is recorded when the next
batch is requested, so the last batch may come again after a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Generic, TypeVar

import pyarrow as pa
from attrs import evolve

from paimon.display.notebook import NotebookDisplay, given_arguments
from paimon.domain.changelog.stream_read import FollowRules
from paimon.domain.changelog.stream_start import parse_start
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import explain_quotes
from paimon.domain.predicate.text import format_predicate
from paimon.domain.predicate.transform import rename_columns
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.system_columns import ROW_KIND
from paimon.operations.metadata.schemas import explain_missing_table
from paimon.operations.metadata.snapshots import confirm_opened_table
from paimon.operations.read.changes.followed import plan_followed_splits, read_changes, read_stream_split
from paimon.operations.read.changes.history import list_history
from paimon.operations.read.evaluate import check_condition
from paimon.operations.read.projection import bind_predicate, build_output_schema
from paimon.operations.read.split import ReadPlan
from paimon.operations.read.time_travel import parse_integer
from paimon.operations.stream.start import Progress
from paimon.operations.stream.stream_scan import SnapshotChanges, StreamRequest, StreamScan
from paimon.operations.table_context import TableContext
from paimon.references import Age, age_millis
from paimon.results import Results
from paimon.scan import check_selection, condition_of

SNAPSHOT_COLUMN = pa.field("_snapshot_id", pa.int64(), nullable=False)
KIND_COLUMN = pa.field("_row_kind", pa.string(), nullable=False)


class Changes(NotebookDisplay, Results):
    """The changes after one snapshot through another; made by `Table.changes`.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    after, through : int, optional
        Snapshot ids, the first exclusive, the last inclusive.
    columns : sequence of str, optional
        Columns of the table, in order; all by default.
    where : str or Predicate, optional
        Condition on the changes.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        after: int | None = None,
        through: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
    ) -> None:
        self._context = context
        ids = {"after": after, "through": through}
        self._range = [None if value is None else parse_integer(value, name) for name, value in ids.items()]
        self._columns = check_selection(columns)
        self._where = where
        self._snapshots: tuple[Snapshot, ...] | None = None
        self._splits: tuple[DataSplit, ...] | None = None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots whose changes are read; a snapshot may have none."""
        if self._snapshots is None:
            with explain_missing_table(self._context):
                found = list_history(self._context, *self._range)
            confirm_opened_table(self._context, found[-1] if found else None)
            self._snapshots = found
        return self._snapshots

    @property
    def read_plan(self) -> ReadPlan:
        """What each task needs to read a split: columns, predicate and row kinds."""
        return ReadPlan((ROW_KIND.name, *self._names), self._bind_predicate(), row_kinds=True)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self._context.schema.names if self._columns is None else self._columns)

    def _bind_predicate(self) -> Predicate | None:
        if self._where is None:
            return None
        fields = (evolve(ROW_KIND, name=KIND_COLUMN.name), *self._context.schema.fields)
        with explain_quotes(self._where):
            predicate = bind_predicate(condition_of(self._where), self._context.table, fields)
        check_condition(self._context.engine, predicate, fields)
        return rename_columns(predicate, {KIND_COLUMN.name: ROW_KIND.name})

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        reserved = {SNAPSHOT_COLUMN.name, KIND_COLUMN.name} & set(self._names)
        if reserved:
            name = min(reserved)
            raise InvalidRequest(
                f"Column {name!r} is always the first or second column of changes.", subject=name, hint="leave it out"
            )
        return pa.schema(
            [SNAPSHOT_COLUMN, KIND_COLUMN, *build_output_schema(self._context.table, ReadPlan(self._names))]
        )

    def splits(self) -> tuple[DataSplit, ...]:
        """Return the splits to read, in the order of the snapshots."""
        if self._splits is None:
            predicate, rules = self.read_plan.predicate, FollowRules.of(self._context.table)
            self._splits = plan_followed_splits(self._context, self.snapshots, predicate, rules)
        return self._splits

    def to_arrow(self) -> pa.Table:
        """Return all changes as one Arrow table; the executor of the engine reads splits in parallel."""
        schema = self.arrow_schema
        splits = self.splits()
        task = partial(_read_whole, self._context.for_tasks(len(splits)), self.read_plan, schema)
        parts = self._context.engine.executor.map(task, splits)
        return pa.Table.from_batches([batch for part in parts for batch in part], schema=schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        read, schema = self.read_plan, self.arrow_schema
        for split in self.splits():
            yield from read_changes(self._context, read, schema, split)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        after, through = self._range
        where = format_predicate(self._where) if isinstance(self._where, Predicate) else self._where
        given = given_arguments(after=after, through=through, columns=self._columns, where=where)
        return self._context.table.table_name, given


def _read_whole(context: TableContext, read: ReadPlan, schema: pa.Schema, split: DataSplit) -> list[pa.RecordBatch]:
    return list(read_changes(context, read, schema, split))


_BATCH_BYTES = 8 * 1024 * 1024
_END = object()

T = TypeVar("T")


class AsyncSteps(Generic[T]):
    """Mixin: an iterator that waits can also be iterated with ``async for``; each step runs in a thread of asyncio.

    A class provides `__next__` and `close`.
    """

    def __next__(self) -> T:
        raise NotImplementedError

    def close(self) -> None:
        """End the iterator; a thread that waits for the next item gets the end of the iteration.

        Raises
        ------
        NotImplementedError
            Always: subclasses define it.
        """
        raise NotImplementedError

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        try:
            item = await asyncio.to_thread(next, self, _END)
        except asyncio.CancelledError:
            self.close()  # the thread would wait for a snapshot that no task reads
            raise
        if item is _END:
            raise StopAsyncIteration
        return item  # type: ignore[return-value]


class Follow(AsyncSteps[pa.RecordBatch], Iterator[pa.RecordBatch]):
    """An iterator of changes, made by `Table.follow`; a ``with`` block, or `close`, ends it.

    Each batch has the columns `_snapshot_id`, `_row_kind` and the selected ones, and belongs to one snapshot.
    ``async for`` waits in a thread, and leaves the event loop free.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    from_snapshot : int or str, optional
        The snapshot to begin with, ``"earliest"`` or ``"latest"``.
    consumer_id : str, optional
        The consumer under which progress is recorded.
    columns : sequence of str, optional
        Columns of the table, in order; all by default.
    where : str or Predicate, optional
        Condition on the changes.
    until : int, optional
        The last snapshot to read.
    idle_timeout : timedelta, int or str, optional
        How long to wait for a new snapshot before the iterator ends.
    acknowledge : bool
        Record progress when the next batch is requested.

    Raises
    ------
    InvalidRequest
        `idle_timeout` is negative, or the start is not possible.
    """

    def __init__(  # noqa: PLR0913  (the arguments of a public method)
        self,
        context: TableContext,
        *,
        from_snapshot: int | str | None = None,
        consumer_id: str | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        until: int | None = None,
        idle_timeout: Age | None = None,
        acknowledge: bool = True,
    ) -> None:
        changes = Changes(context, columns=columns, where=where)
        start = parse_start(context.options, from_snapshot)
        idle = None if idle_timeout is None else to_idle_millis(idle_timeout)
        self._context = context
        self._schema = changes.arrow_schema
        self._read = changes.read_plan
        shows_replaced = FollowRules.of(context.table).shows_replaced_rows
        name = context.options.consumer_id if consumer_id is None else consumer_id
        self._progress = Progress(context, name, shows_replaced)
        self._scan = StreamScan(context, StreamRequest(start, self._read.predicate, until, idle), self._progress)
        self._acknowledges = acknowledge
        self._closed = False
        self._next_id: int | None = None
        self._scan.begin()
        self._batches = self._read_changes()

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of every batch."""
        return self._schema

    @property
    def next_snapshot(self) -> int | None:
        """The first snapshot that was not returned completely; None until the initial state was returned.

        Store it together with the results of the batches, in one transaction, to continue from there exactly once.
        """
        return self._next_id

    def acknowledge(self, next_snapshot: int | None = None) -> None:
        """Record that all snapshots before `next_snapshot` are processed; without a consumer this has no effect."""
        done = self._next_id if next_snapshot is None else next_snapshot
        if done is not None:
            self._progress.record(done)

    def close(self) -> None:
        """End the iterator; a thread that waits for the next batch gets the end of the iteration."""
        self._closed = True

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def __enter__(self) -> Follow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_changes(self) -> Iterator[pa.RecordBatch]:
        for snapshot_changes in self._scan.snapshot_changes(lambda: self._closed, self._wait):
            held: pa.RecordBatch | None = None
            # One batch is kept back, because progress is recorded when the batch after the last one is requested.
            for batch in _gather_batches(self._read_snapshot(snapshot_changes)):
                if held is not None:
                    yield held
                    self._progress.refresh()
                    if self._closed:
                        return
                held = batch
            self._next_id = self._scan.next_id
            if held is not None:
                yield held
                self._complete_snapshot()
        self._complete_snapshot()

    def _complete_snapshot(self) -> None:
        if self._acknowledges:
            self.acknowledge()

    def _wait(self) -> None:
        if self._acknowledges:
            self.acknowledge()
        else:
            self._progress.refresh()

    def _read_snapshot(self, snapshot_changes: SnapshotChanges) -> Iterator[pa.RecordBatch]:
        try:
            for split in snapshot_changes.splits:
                yield from read_stream_split(self._context, self._read, self._schema, split, snapshot_changes.is_state)
        except PaimonError as error:
            explained = self._scan.explain_error(snapshot_changes.snapshot, error)
            raise explained from (error if explained is not error else error.__cause__)

    def __repr__(self) -> str:
        return f"Follow({self._context.table.table_name}, next_snapshot={self._next_id})"


def _gather_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Concatenate small batches, which come from small files."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if held and size + batch.nbytes > _BATCH_BYTES:
            yield pa.concat_batches(held)
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    if held:
        yield pa.concat_batches(held)


def to_idle_millis(idle_timeout: Age) -> int:
    """Return how long a stream waits for a snapshot, in milliseconds; refuse a negative time."""
    millis = age_millis(idle_timeout)
    if millis < 0:
        raise InvalidRequest(
            f"'idle_timeout' is {millis} ms, and must not be negative.", subject="idle_timeout", hint="give 0 or more"
        )
    return millis
