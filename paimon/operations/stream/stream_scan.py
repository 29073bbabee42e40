"""Follow a table: return the state at the start, then the changes of each snapshot, and wait for new snapshots.

Invariant: each snapshot is returned once, in order, without gaps. If the history changed (expiry, rollback or
fast-forward), the scan ends with an error and never returns other rows. A plan is made when the next step is
requested. Source: `DataTableStreamScan`, `NextSnapshotFetcher`, `BoundedChecker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import frozen

from paimon.domain.changelog.stream_read import FollowRules
from paimon.domain.changelog.stream_start import Start, get_state_min_level
from paimon.domain.errors import InvalidRequest, NotFound, PaimonError
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.scans import select_scanned_buckets
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.read.changes.followed import plan_followed_splits
from paimon.operations.read.changes.history import find_first_id, find_snapshot_or_changelog
from paimon.operations.read.plan import plan_scan
from paimon.operations.stream.progress import Progress
from paimon.operations.stream.start import StreamStart, check_start, expired_start_error, find_stream_start
from paimon.operations.table_context import TableContext

_SLEEP_MILLIS = 200
"""A pause consists of short sleeps, so that closing the scan does not take long."""


@frozen(eq=False)
class StreamRequest:
    """What a stream scan returns.

    Parameters
    ----------
    start : Start
        Where to start, unless the consumer has progressed further.
    predicate : Predicate, optional
        Skips files, not rows.
    until : int, optional
        The last snapshot to return.
    idle_millis : int, optional
        End after this time without a new snapshot; 0 ends the scan when all existing snapshots are read.

    Raises
    ------
    InvalidRequest
        `until` is not an integer.
    """

    start: Start
    predicate: Predicate | None = None
    until: int | None = None
    idle_millis: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.until is not None and not isinstance(self.until, int):
            raise InvalidRequest(
                f"'until' must be a snapshot id, not {self.until!r}", subject="until", hint="pass an int"
            )


@frozen(eq=False)
class SnapshotChanges:
    """The splits to read of one snapshot.

    Parameters
    ----------
    snapshot : Snapshot
        The snapshot.
    splits : tuple of DataSplit
        The files to read.
    is_state : bool
        True for the rows of the state, False for the changes.
    """

    snapshot: Snapshot
    splits: tuple[DataSplit, ...]
    is_state: bool = False


class StreamScan:
    """Iterate over the snapshots of a table: a state machine.

    Attributes
    ----------
    next_id : int, optional
        The snapshot whose changes come next; None before the start.
    """

    def __init__(self, context: TableContext, wanted: StreamRequest, progress: Progress) -> None:
        self._context = context
        self._wanted = wanted
        self._progress = progress
        self._rules = FollowRules.of(context.table)
        self._state: Snapshot | None = None
        self._last: Snapshot | None = None
        self._ended = False
        self.next_id: int | None = None

    def begin(self) -> bool:
        """Find the start, and protect the files that are needed from there on.

        Returns False if the table has no state yet.

        Raises
        ------
        NotFound, InvalidRequest
            The start has expired, or is after the last snapshot to return.
        """
        found = self._find_start()
        if found is None:
            return False
        if found.state is None:
            self._progress.record(found.next_id)
            # Expiry reads consumers before it deletes snapshots. A consumer recorded in between must be checked again.
            check_start(self._context, found.next_id, self._latest())
        elif self._wanted.until is not None and found.state.id > self._wanted.until:
            raise InvalidRequest(
                f"The first state is snapshot {found.state.id}, which is after 'until' ({self._wanted.until})",
                subject="until",
                hint="start at a snapshot, or raise 'until'",
            )
        else:
            self._progress.protect_state(found.state.id)
        self._state, self.next_id = found.state, found.next_id
        return True

    def snapshot_changes(self, closed: Callable[[], bool], idle: Callable[[], None]) -> Iterator[SnapshotChanges]:
        """Yield the snapshots as they are published.

        Parameters
        ----------
        closed : callable
            Returns True when the scan must end; called often during a pause.
        idle : callable
            Called before each pause.

        Yields
        ------
        SnapshotChanges
            In ascending order of snapshot ids.

        Raises
        ------
        NotFound
            The next snapshot has expired, or the history was rewritten.
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

    def _find_start(self) -> StreamStart | None:
        resumed = None if self._context.options.consumer_ignore_progress else self._progress.resume()
        if resumed is None:
            return find_stream_start(self._context, self._wanted.start)
        return StreamStart(check_start(self._context, resumed, self._latest()))

    def _is_over(self) -> bool:
        until = self._wanted.until
        return self._ended or (until is not None and (self.next_id or 0) > until)

    def _next(self) -> SnapshotChanges | None:
        if self._state is None and self._is_over():
            return None
        if self.next_id is None and not self.begin():
            return None
        if self._state is None:
            return self._read_following()
        state, self._state = self._state, None
        self._ended = self._is_past_bound(state)
        table = self._context.table
        request = ScanRequest(
            state,
            self._file_predicate,
            select_scanned_buckets(table.schema, table.options),
            min_level=get_state_min_level(table.options),
            shows_level_0=True,
        )
        splits = self._plan_or_explain(state, lambda: plan_scan(self._context, request).splits)
        return self._advance(state, splits, whole=True)

    def _read_following(self) -> SnapshotChanges | None:
        """Return the next snapshot; None if it does not exist yet."""
        assert self.next_id is not None
        found = find_snapshot_or_changelog(self._context, self.next_id)
        if found is None:
            check_start(self._context, self.next_id, self._latest())
            return None
        delay = self._context.options.streaming_read_delay_millis
        if delay is not None and found.time_millis > self._context.engine.clock.now_millis() - delay:
            return None
        self._check_history()
        self._ended = self._is_past_bound(found)
        if self._ended:
            return None
        wanted = self._wanted.predicate
        splits = self._plan_or_explain(found, lambda: plan_followed_splits(self._context, [found], wanted, self._rules))
        return self._advance(found, splits)

    def _advance(self, snapshot: Snapshot, splits: tuple[DataSplit, ...], whole: bool = False) -> SnapshotChanges:
        self._last, self.next_id = snapshot, snapshot.id + 1
        return SnapshotChanges(snapshot, splits, whole)

    def _is_past_bound(self, snapshot: Snapshot) -> bool:
        bound, reached = self._context.options.scan_bounded_watermark, snapshot.watermark
        return bound is not None and reached is not None and reached > bound

    def _check_history(self) -> None:
        """Raise if the last snapshot was replaced by another one."""
        if self._last is None:
            return
        now = find_snapshot(self._context, self._last.id)
        if now is not None and not now.is_same(self._last):
            hint = "the table was rolled back or fast-forwarded since: start again at its latest state"
            raise NotFound("the followed snapshot", str(self._last.id), hint=hint)

    def _plan_or_explain(
        self, snapshot: Snapshot, planning: Callable[[], tuple[DataSplit, ...]]
    ) -> tuple[DataSplit, ...]:
        try:
            return planning()
        except PaimonError as error:
            raise self.explain_error(snapshot, error) from error

    def explain_error(self, snapshot: Snapshot, error: PaimonError) -> PaimonError:
        """Return the error of a read; if the snapshot has expired since, an error that says so."""
        if find_snapshot_or_changelog(self._context, snapshot.id) is not None:
            return error
        return expired_start_error(snapshot.id, find_first_id(self._context))

    def _latest(self) -> Snapshot | None:
        return latest_snapshot(self._context)

    @property
    def _file_predicate(self) -> Predicate | None:
        predicate = self._wanted.predicate
        return None if predicate is None else restrict_to_columns(predicate, self._context.schema.names)

    def _sleep(self, closed: Callable[[], bool], since: int) -> None:
        clock = self._context.engine.clock
        remaining_millis = self._context.options.continuous_discovery_interval_millis
        if self._wanted.idle_millis is not None:
            remaining_millis = min(remaining_millis, max(1, since + self._wanted.idle_millis - clock.now_millis()))
        while remaining_millis > 0 and not closed():
            clock.sleep_millis(min(remaining_millis, _SLEEP_MILLIS))
            remaining_millis -= _SLEEP_MILLIS
