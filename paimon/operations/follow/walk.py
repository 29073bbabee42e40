"""The walk of a follower: the state it starts with, then one snapshot after the other, waiting for the next.

Law: every snapshot comes once, in order, without gaps; where history is not the one that was followed (it expired, was
rolled back, or fast-forwarded) the walk ends with an error, never with other rows. What is asked of it is read when
the next step is asked for. Source: `DataTableStreamScan`, `NextSnapshotFetcher`, `BoundedChecker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import frozen

from paimon.domain.changelog.follow import FollowRules
from paimon.domain.changelog.start import Start, state_min_level
from paimon.domain.errors import InvalidRequest, NotFound, PaimonError
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import only_columns
from paimon.domain.scan.plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.scans import scanned_buckets
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.follow.beginning import Beginning, beginning, checked, expired
from paimon.operations.follow.progress import Progress
from paimon.operations.read.changes.followed import followed_splits
from paimon.operations.read.changes.history import find_any, first_id
from paimon.operations.read.plan import plan
from paimon.operations.read.snapshots import find_snapshot, latest_snapshot
from paimon.ports.engine import Engine

_NAP_MILLIS = 200
"""Pauses are slept in naps, so that who closes a follower need not wait for long."""


@frozen(eq=False)
class Wanted:
    """What a follower asked for.

    Parameters
    ----------
    start : Start
        Where to begin, unless the consumer has come further.
    predicate : Predicate, optional
        Leaves out files, not rows.
    until : int, optional
        The last snapshot that is followed.
    idle_millis : int, optional
        End after so long without a new snapshot; 0: once all that is there was read.
    """

    start: Start
    predicate: Predicate | None = None
    until: int | None = None
    idle_millis: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.until is not None and not isinstance(self.until, int):
            raise InvalidRequest(f"until {self.until!r} is no snapshot", subject="until", hint="give an int")


@frozen(eq=False)
class Arrival:
    """A snapshot that came: what to read of it. `whole`: the rows of its state, not its changes."""

    snapshot: Snapshot
    splits: tuple[DataSplit, ...]
    whole: bool = False


class Walk:
    """Walks over a table's snapshots; a state machine: `next_id` is the snapshot whose changes come next."""

    def __init__(self, engine: Engine, table: TableDefinition, wanted: Wanted, progress: Progress) -> None:
        self._engine = engine
        self._table = table
        self._wanted = wanted
        self._progress = progress
        self._rules = FollowRules.of(table)
        self._state: Snapshot | None = None
        self._last: Snapshot | None = None
        self._ended = False
        self.next_id: int | None = None

    def begin(self) -> bool:
        """Find where to begin, and hold what is needed from there on; False where the table has no state yet.

        Raises
        ------
        NotFound, InvalidRequest
            What is to come first has expired, or lies after the last that is wanted.
        """
        begun = self._beginning()
        if begun is None:
            return False
        if begun.state is None:
            self._progress.record(begun.next_id)
            # Expiry looks for consumers and then removes snapshots: whoever comes in between must learn of it.
            checked(self._engine, self._table, begun.next_id, self._latest())
        elif self._wanted.until is not None and begun.state.id > self._wanted.until:
            what = f"the state to begin with is snapshot {begun.state.id}, after the last that is wanted"
            raise InvalidRequest(what, subject="until", hint="say from which snapshot changes are wanted")
        else:
            self._progress.hold(begun.state.id)
        self._state, self.next_id = begun.state, begun.next_id
        return True

    def arrivals(self, closed: Callable[[], bool], idle: Callable[[], None]) -> Iterator[Arrival]:
        """The snapshots as they come; `idle` is called before each pause, and `closed` ends it.

        Raises
        ------
        NotFound
            What comes next has expired, or history was rewritten.
        """
        since = self._engine.clock.now_millis()
        while not closed():
            arrival = self._next()
            if arrival is not None:
                yield arrival
                since = self._engine.clock.now_millis()
                continue
            if self._is_over():
                return
            idle()
            limit = self._wanted.idle_millis
            if limit is not None and self._engine.clock.now_millis() - since >= limit:
                return
            self._pause(closed, since)

    def _beginning(self) -> Beginning | None:
        resumed = None if self._table.options.consumer_ignore_progress else self._progress.resumed()
        if resumed is None:
            return beginning(self._engine, self._table, self._wanted.start)
        return Beginning(checked(self._engine, self._table, resumed, self._latest()))

    def _is_over(self) -> bool:
        until = self._wanted.until
        return self._ended or (until is not None and (self.next_id or 0) > until)

    def _next(self) -> Arrival | None:
        if self._state is None and self._is_over():
            return None
        if self.next_id is None and not self.begin():
            return None
        if self._state is None:
            return self._following()
        state, self._state = self._state, None
        self._ended = self._is_past_bound(state)
        table = self._table
        request = ScanRequest(
            state,
            self._skip,
            scanned_buckets(table.schema, table.options),
            min_level=state_min_level(table.options),
            shows_level_0=True,
        )
        splits = self._planned(state, lambda: plan(self._engine, self._table, request).splits)
        return self._arrived(state, splits, whole=True)

    def _following(self) -> Arrival | None:
        """The next snapshot; None where there is none yet."""
        assert self.next_id is not None
        found = find_any(self._engine, self._table.paths, self.next_id)
        if found is None:
            checked(self._engine, self._table, self.next_id, self._latest())
            return None
        delay = self._table.options.streaming_read_delay_millis
        if delay is not None and found.time_millis > self._engine.clock.now_millis() - delay:
            return None
        self._check_history()
        self._ended = self._is_past_bound(found)
        if self._ended:
            return None
        wanted = self._wanted.predicate
        splits = self._planned(
            found, lambda: followed_splits(self._engine, self._table, [found], wanted, self._rules)
        )
        return self._arrived(found, splits)

    def _arrived(self, snapshot: Snapshot, splits: tuple[DataSplit, ...], whole: bool = False) -> Arrival:
        self._last, self.next_id = snapshot, snapshot.id + 1
        return Arrival(snapshot, splits, whole)

    def _is_past_bound(self, snapshot: Snapshot) -> bool:
        bound, reached = self._table.options.scan_bounded_watermark, snapshot.watermark
        return bound is not None and reached is not None and reached > bound

    def _check_history(self) -> None:
        """The snapshot before is still the one that was followed."""
        if self._last is None:
            return
        now = find_snapshot(self._engine, self._table.paths, self._last.id)
        if now is not None and not now.is_same(self._last):
            hint = "the table was rolled back or fast-forwarded meanwhile: follow anew from its latest state"
            raise NotFound("the followed snapshot", str(self._last.id), hint=hint)

    def _planned(self, snapshot: Snapshot, planning: Callable[[], tuple[DataSplit, ...]]) -> tuple[DataSplit, ...]:
        try:
            return planning()
        except PaimonError as error:
            raise self.explained(snapshot, error) from error

    def explained(self, snapshot: Snapshot, error: PaimonError) -> PaimonError:
        """An error in reading a snapshot: where that expired meanwhile, the error that says so."""
        if find_any(self._engine, self._table.paths, snapshot.id) is not None:
            return error
        return expired(snapshot.id, first_id(self._engine, self._table.paths))

    def _latest(self) -> Snapshot | None:
        return latest_snapshot(self._engine, self._table.paths)

    @property
    def _skip(self) -> Predicate | None:
        predicate = self._wanted.predicate
        return None if predicate is None else only_columns(predicate, self._table.schema.names)

    def _pause(self, closed: Callable[[], bool], since: int) -> None:
        clock = self._engine.clock
        left = self._table.options.continuous_discovery_interval_millis
        if self._wanted.idle_millis is not None:
            left = min(left, max(1, since + self._wanted.idle_millis - clock.now_millis()))
        while left > 0 and not closed():
            clock.sleep_millis(min(left, _NAP_MILLIS))
            left -= _NAP_MILLIS
