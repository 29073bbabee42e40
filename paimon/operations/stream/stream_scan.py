"""Follow a table: return the state at the start, then the changes of each snapshot, and wait for new snapshots.

Invariant: each snapshot is returned once, in order, without gaps. If the history changed (expiry, rollback or
fast-forward), the scan ends with an error and never returns other rows. A plan is made when the next step is
requested. Source: `DataTableStreamScan`, `NextSnapshotFetcher`, `BoundedChecker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import frozen

from paimon.domain.changelog.stream_start import Start
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.schemas import check_same_table
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.read.changes.history import find_snapshot_or_changelog
from paimon.operations.stream.start import Progress, SnapshotPlans, check_start, find_progressed_start, protect_start
from paimon.operations.table_context import TableContext

_SLEEP_MILLIS = 200
"""A pause consists of short sleeps, so that closing the scan does not take long."""


@frozen(eq=False)
class StreamRequest:
    """What a stream scan returns."""

    # ignored if the consumer has progressed further
    start: Start
    # skips files, not rows
    predicate: Predicate | None = None
    # the last snapshot to return; None for no end
    until: int | None = None
    # end after this time without a new snapshot; 0 ends when all existing snapshots are read
    idle_millis: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.until is not None and not isinstance(self.until, int):
            raise InvalidRequest(
                f"'until' must be a snapshot id, not {self.until!r}", subject="until", hint="pass an int"
            )


@frozen(eq=False)
class SnapshotChanges:
    """The splits to read of one snapshot."""

    snapshot: Snapshot
    splits: tuple[DataSplit, ...]
    # the splits are the complete state, not the changes
    is_state: bool = False


class StreamScan:
    """Iterate over the snapshots of a table; `next_id` comes next, None before the start."""

    def __init__(self, context: TableContext, wanted: StreamRequest, progress: Progress) -> None:
        self._context = context
        self._wanted = wanted
        self._progress = progress
        self._plans = SnapshotPlans(context, wanted.predicate)
        self._state: Snapshot | None = None
        self._last: Snapshot | None = None
        self._ended = False
        self.next_id: int | None = None

    def begin(self) -> bool:
        """Find the start, and protect the files needed from there on; return False if the table has no state yet.

        Raises `NotFound` if the start has expired, and `InvalidRequest` if it is after the last snapshot to return.
        """
        found = find_progressed_start(self._context, self._wanted.start, self._progress)
        if found is None:
            return False
        until = self._wanted.until
        if found.state is not None and until is not None and found.state.id > until:
            raise InvalidRequest(
                f"The first state is snapshot {found.state.id}, which is after 'until' ({until})",
                subject="until",
                hint="start at a snapshot, or raise 'until'",
            )
        protect_start(self._context, found, self._progress)
        self._state, self.next_id = found.state, found.next_id
        return True

    def snapshot_changes(self, closed: Callable[[], bool], idle: Callable[[], None]) -> Iterator[SnapshotChanges]:
        """Yield the snapshots in ascending order as they are published, until `closed` returns True.

        `closed` is called often during a pause, `idle` before each pause. Raises `NotFound` if the next snapshot has
        expired, or the history was rewritten.
        """
        since = self._context.engine.clock.now_millis()
        while not closed():
            changes = self._next()
            if changes is not None:
                yield changes
                since = self._context.engine.clock.now_millis()
                continue
            if self._is_over():
                return
            idle()
            if self._has_idled_since(since):
                return
            self._sleep(closed, since)

    def _has_idled_since(self, since: int) -> bool:
        """Return whether there was no new snapshot for the longest time that the request allows."""
        limit = self._wanted.idle_millis
        return limit is not None and self._context.engine.clock.now_millis() - since >= limit

    def _is_over(self) -> bool:
        until = self._wanted.until
        return self._ended or (until is not None and (self.next_id or 0) > until)

    def _next(self) -> SnapshotChanges | None:
        if self._state is None and self._is_over():
            return None
        check_same_table(self._context)
        if self.next_id is None and not self.begin():
            return None
        if self._state is None:
            return self._read_following()
        state, self._state = self._state, None
        self._ended = self._plans.is_past_bound(state)
        splits = self._plans.plan_state(state)
        return self._advance(state, splits, whole=True)

    def _read_following(self) -> SnapshotChanges | None:
        """Return the next snapshot; None if it does not exist yet."""
        assert self.next_id is not None
        found = find_snapshot_or_changelog(self._context, self.next_id)
        if found is None:
            check_start(self._context, self.next_id, self._latest())
            return None
        if self._plans.is_delayed(found):
            return None
        if self._last is not None:
            self._plans.check_history((self._last.id, self._last.delta_manifest_list))
        self._ended = self._plans.is_past_bound(found)
        if self._ended:
            return None
        splits = self._plans.plan_changes(found)
        return self._advance(found, splits)

    def _advance(self, snapshot: Snapshot, splits: tuple[DataSplit, ...], whole: bool = False) -> SnapshotChanges:
        self._last, self.next_id = snapshot, snapshot.id + 1
        return SnapshotChanges(snapshot, splits, whole)

    def explain_error(self, snapshot: Snapshot, error: PaimonError) -> PaimonError:
        """Return the error of a read; if the snapshot has expired since, an error that says so."""
        return self._plans.explain_error(snapshot.id, error)

    def _latest(self) -> Snapshot | None:
        return latest_snapshot(self._context)

    def _sleep(self, closed: Callable[[], bool], since: int) -> None:
        clock = self._context.engine.clock
        remaining_millis = self._context.options.continuous_discovery_interval_millis
        if self._wanted.idle_millis is not None:
            remaining_millis = min(remaining_millis, max(1, since + self._wanted.idle_millis - clock.now_millis()))
        while remaining_millis > 0 and not closed():
            clock.sleep_millis(min(remaining_millis, _SLEEP_MILLIS))
            remaining_millis -= _SLEEP_MILLIS
