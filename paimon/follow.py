"""Follow: the changes of a table as snapshots are committed, one batch after the other.

Invariant: batches come in the order of their snapshots, none is left out, and memory use does not depend on the size of
the table. Progress is recorded when the next batch is requested, so the last batch may come again after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType

import pyarrow as pa

from paimon.changes import Changes
from paimon.domain.changelog.stream_read import FollowRules
from paimon.domain.changelog.stream_start import parse_start
from paimon.domain.errors import PaimonError
from paimon.domain.predicate.expression import Predicate
from paimon.operations.read.changes.followed import read_stream_split
from paimon.operations.stream.progress import Progress
from paimon.operations.stream.stream_scan import SnapshotChanges, StreamRequest, StreamScan
from paimon.operations.table_context import TableContext
from paimon.references import Age
from paimon.stream_read_builder import AsyncSteps, to_idle_millis

_BATCH_BYTES = 8 * 1024 * 1024


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
