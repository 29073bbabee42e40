"""Follow: the changes of a table as they are committed, one batch after the other.

Law: batches come in the order of their snapshots, nothing is left out, and little is held in memory however much there
is. Progress is recorded when the next batch is asked for, so what was handed over last may come again after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from paimon.changes import KIND_COLUMN, Changes
from paimon.domain.changelog.follow import FollowRules
from paimon.domain.changelog.start import start_of
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.predicate.expression import Predicate
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow_arrays import make_array
from paimon.operations.follow.progress import Progress
from paimon.operations.follow.walk import Arrival, Walk, Wanted
from paimon.operations.read.changes.followed import read_changes
from paimon.ports.engine import Engine
from paimon.upkeep.retention import Age, age_millis

_BATCH_BYTES = 8 * 1024 * 1024
_LASTING = make_array(["+I", "+U"], pa.string())


class Follow(Iterator[pa.RecordBatch]):
    """An iterator of changes, made by `Table.follow`; a `with` block, or `close`, ends it.

    Each batch has the columns `_snapshot_id`, `_row_kind` and those asked for, and belongs to one snapshot.
    """

    def __init__(
        self,
        engine: Engine,
        table: TableDefinition,
        *,
        from_snapshot: int | str | None = None,
        consumer_id: str | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        until: int | None = None,
        idle_timeout: Age | None = None,
        acknowledge: bool = True,
    ) -> None:
        changes = Changes(engine, table, columns=columns, where=where)
        start = start_of(table.options, from_snapshot)
        idle = None if idle_timeout is None else age_millis(idle_timeout)
        if idle is not None and idle < 0:
            raise InvalidRequest(f"idle_timeout is {idle} ms", subject="idle_timeout", hint="give 0 or more")
        self._engine = engine
        self._table = table
        self._schema = changes.arrow_schema
        self._read = changes.read_plan
        holds = FollowRules.of(table).shows_replaced
        name = table.options.consumer_id if consumer_id is None else consumer_id
        self._progress = Progress(engine, table, name, holds)
        self._walk = Walk(engine, table, Wanted(start, self._read.predicate, until, idle), self._progress)
        self._automatic = acknowledge
        self._closed = False
        self._next_id: int | None = None
        self._walk.begin()
        self._batches = self._followed()

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of every batch."""
        return self._schema

    @property
    def next_snapshot(self) -> int | None:
        """The first snapshot that was not handed over whole; None before the state to begin with was.

        Who stores this beside what it made of the batches, in one transaction, can go on from there exactly once.
        """
        return self._next_id

    def acknowledge(self, next_snapshot: int | None = None) -> None:
        """Record that all before a snapshot (by default `next_snapshot`) is done with; nothing without a consumer."""
        done = self._next_id if next_snapshot is None else next_snapshot
        if done is not None:
            self._progress.record(done)

    def close(self) -> None:
        """End: whoever waits for the next batch, also in another thread, is told that there is none."""
        self._closed = True

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def __enter__(self) -> Follow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _followed(self) -> Iterator[pa.RecordBatch]:
        for arrival in self._walk.arrivals(lambda: self._closed, self._idle):
            held: pa.RecordBatch | None = None
            # One batch is held back, so that it is known to be the last when it is handed over.
            for batch in _gathered(self._read_arrival(arrival)):
                if held is not None:
                    yield held
                    self._progress.refresh()
                    if self._closed:
                        return
                held = batch
            self._next_id = self._walk.next_id
            if held is not None:
                yield held
                self._done()
        self._done()

    def _done(self) -> None:
        if self._automatic:
            self.acknowledge()

    def _idle(self) -> None:
        if self._automatic:
            self.acknowledge()
        else:
            self._progress.refresh()

    def _read_arrival(self, arrival: Arrival) -> Iterator[pa.RecordBatch]:
        try:
            for split in arrival.splits:
                for batch in read_changes(self._engine, self._table, self._read, self._schema, split):
                    shown = batch.filter(pc.is_in(batch[KIND_COLUMN.name], _LASTING)) if arrival.whole else batch
                    if shown.num_rows:
                        yield shown
        except PaimonError as error:
            explained = self._walk.explained(arrival.snapshot, error)
            raise explained from (error if explained is not error else error.__cause__)

    def __repr__(self) -> str:
        return f"Follow({self._table.identifier}, next_snapshot={self._next_id})"


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: small files make small ones."""
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


class Followed:
    """What a table tells of its changes; mixed into `Table`, which has the engine and the definition."""

    __slots__ = ()
    engine: Engine
    definition: TableDefinition

    def changes(
        self,
        after: int | None = None,
        through: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
    ) -> Changes:
        """A lazy read of what changed: `_snapshot_id`, `_row_kind` (``+I``, ``-U``, ``+U``, ``-D``), then the columns.

        Parameters
        ----------
        after, through : int
            Snapshot ids: changes after the one, which does not count, through the other, which does. By default all
            that a stream from the earliest snapshot or long-lived changelog gets.
        columns : sequence of str
            Columns of the table wanted after the two first; all by default.
        where : str or Predicate
            Only changes of rows where this is true; it may name `_row_kind`.
        """
        return Changes(self.engine, self.definition, after=after, through=through, columns=columns, where=where)

    def follow(
        self,
        from_snapshot: int | str | None = None,
        consumer_id: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        until: int | None = None,
        idle_timeout: Age | None = None,
        acknowledge: bool = True,
    ) -> Follow:
        """An iterator of the changes as snapshots arrive: Arrow batches as `changes` has them, each of one snapshot.

        It waits for new snapshots (it looks each `continuous.discovery-interval`, by default 10 s) until it is closed.

        Parameters
        ----------
        from_snapshot : int or str
            Begin with the changes of this snapshot, of the ``"earliest"``, or after the ``"latest"``. By default the
            rows of the latest state come first (as ``+I``), then what changes; `scan.mode` and its options may say
            otherwise.
        consumer_id : str
            A name (by default the option `consumer-id`) under which progress is recorded: whoever follows under it
            later goes on there, and what is yet to be read does not expire. Recorded progress goes before
            `from_snapshot`, unless `consumer.ignore-progress` is set.
        columns, where
            As in `changes`.
        until : int
            End after this snapshot.
        idle_timeout : timedelta, int, str
            End after so long (also in milliseconds, or as text) without a new snapshot; 0: once all there is was read.
        acknowledge : bool
            Progress is recorded when the batch after a snapshot's last one is asked for. False: only by
            `Follow.acknowledge`.

        Raises
        ------
        NotFound
            What comes next has expired, or (while iterating) history was rewritten; the hint says where to go on.
        InvalidRequest
            A start that cannot be.
        """
        return Follow(
            self.engine, self.definition, from_snapshot=from_snapshot, consumer_id=consumer_id, columns=columns,
            where=where, until=until, idle_timeout=idle_timeout, acknowledge=acknowledge,
        )  # fmt: skip
