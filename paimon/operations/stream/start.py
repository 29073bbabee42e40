"""Where a stream starts, how far its consumer is, and which splits it reads of each snapshot.

Invariant: a stream starts with a complete state and the changes after it, or with changes only; expired changes raise
an error and are never skipped. A recorded snapshot is the first one whose changes are not processed, so a crash repeats
changes. A second consumer, named after the first, protects a state that is still needed: the one that is read first, or
that an overwrite replaced. If a snapshot has expired, the error says so, and never that a file is missing.
Source: `StartingScanner` and its kinds, `ConsumerManager`, `DataTableStreamScan`.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from paimon.domain.changelog.stream_read import FollowRules
from paimon.domain.changelog.stream_start import Start, StartKind, get_state_min_level
from paimon.domain.errors import NotFound, PaimonError
from paimon.domain.paths import STATE_SUFFIX, check_segment
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.scans import select_scanned_buckets
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.consumers import read_consumer
from paimon.operations.metadata.snapshots import (
    find_snapshot,
    latest_snapshot,
    load_snapshot,
    snapshot_before,
    snapshot_ids,
)
from paimon.operations.read.changes.followed import plan_followed_splits
from paimon.operations.read.changes.history import find_changelog, find_first_id, find_snapshot_or_changelog
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.time_travel import find_newest_compacted, to_epoch_millis
from paimon.operations.refs.consumers import forget_consumer, record_consumer
from paimon.operations.table_context import TableContext

_STATES = (StartKind.STATE, StartKind.COMPACTED_STATE, StartKind.STATE_OF)
_REFRESH_MILLIS = 60_000
"""How often a waiting consumer writes its file, so that the consumer does not expire."""


@frozen
class StreamStart:
    """The start of a stream scan."""

    # the snapshot whose changes are read first
    next_id: int
    # the state to read before these changes; None for changes only
    state: Snapshot | None = None


def find_stream_start(context: TableContext, start: Start) -> StreamStart | None:
    """Return where to start, or None before any state; NotFound if it expired or is not next."""
    latest = latest_snapshot(context)
    if start.kind is StartKind.CHANGES_OF:
        return StreamStart(check_start(context, int(start.value), latest))
    if latest is None:
        return None if start.kind in _STATES else StreamStart(1)
    if start.kind in _STATES:
        state = _find_state(context, start, latest)
        return StreamStart(state.id + 1, state)
    if start.kind is StartKind.LATEST:
        return StreamStart(latest.id + 1)
    if start.kind is StartKind.EARLIEST:
        return StreamStart(find_first_id(context))
    return StreamStart(_find_first_since(context, to_epoch_millis(context.engine, start.value)))


def check_start(context: TableContext, next_id: int, latest: Snapshot | None) -> int:
    """Check that the changes of snapshot `next_id` exist or come next, and return the id; `latest` is None if empty.

    Raises `NotFound` if the changes have expired, or the id is larger than that of the next snapshot.
    """
    last = 0 if latest is None else latest.id
    if next_id > last + 1:
        hint = (
            f"the latest is {last}; if the table was rolled back or created again, start at {last + 1} or before, "
            "with a new checkpoint if the stream has one"
        )
        raise NotFound("snapshot", str(next_id), hint=hint)
    first = find_first_id(context) if last else 1
    if next_id < first:
        raise expired_start_error(next_id, first)
    return next_id


def expired_start_error(next_id: int, first: int) -> NotFound:
    """Return the error for a reader whose next changes have expired."""
    hint = (
        f"its changes have expired, and the first available ones are those of {first}: start at {first} (reset the "
        "consumer to it) or at the latest state, with a new checkpoint if the stream has one; to keep changes "
        "for longer, use a consumer id or 'changelog.time-retained'"
    )
    return NotFound("snapshot or changelog", str(next_id), hint=hint)


def _find_state(context: TableContext, start: Start, latest: Snapshot) -> Snapshot:
    if start.kind is StartKind.STATE_OF:
        return load_snapshot(context, int(start.value))
    if start.kind is StartKind.COMPACTED_STATE:
        return find_newest_compacted(context) or latest
    return latest


def _find_first_since(context: TableContext, millis: int) -> int:
    """Return the first snapshot or decoupled changelog of that time or later, otherwise the next snapshot."""
    before = snapshot_before(context, millis - 1)
    if before is not None:
        return before.id + 1
    first = find_first_id(context)
    for changelog_id in range(first, (snapshot_ids(context) or (first,))[0]):
        found = find_changelog(context, changelog_id)
        if found is None or found.time_millis >= millis:
            return changelog_id
        first = changelog_id + 1
    return first


class Progress:
    """The recorded progress of a consumer, if named; `holds_before` protects the state before it, too."""

    def __init__(self, context: TableContext, name: str | None, holds_before: bool) -> None:
        if name is not None:
            check_segment(name, "consumer name")
        self._context = context
        self._name = name
        self._protects_before = holds_before
        expiration = context.options.consumer_expiration_millis
        self._refresh_millis = _REFRESH_MILLIS if expiration is None else min(_REFRESH_MILLIS, expiration // 4)
        self._recorded: int | None = None
        self._written_at = 0
        self._is_state_protected = True
        self._state_id: int | None = None

    def resume(self) -> int | None:
        """Return the next snapshot of the consumer; None if the consumer is new."""
        self._recorded = None if self._name is None else read_consumer(self._context, self._name)
        return self._recorded

    def protect_state(self, state_id: int) -> None:
        """Protect a state from expiry until the first call of `record`."""
        if self._name is not None:
            record_consumer(self._context, self._name + STATE_SUFFIX, state_id)
            self._state_id, self._written_at = state_id, self._context.engine.clock.now_millis()

    def record(self, next_id: int) -> None:
        """Record that all changes before this snapshot are processed."""
        if self._name is None or (next_id == self._recorded and self._is_fresh()):
            return
        now = self._context.engine.clock.now_millis()
        record_consumer(self._context, self._name, next_id)
        if self._protects_before and next_id > 1:
            record_consumer(self._context, self._name + STATE_SUFFIX, next_id - 1)
        elif self._is_state_protected:
            forget_consumer(self._context, self._name + STATE_SUFFIX)
        self._recorded, self._written_at, self._is_state_protected = next_id, now, False

    def refresh(self) -> None:
        """Write the consumer file again if it is old, so that the consumer does not expire while it waits."""
        if self._recorded is not None:
            self.record(self._recorded)
        elif self._state_id is not None and not self._is_fresh():
            self.protect_state(self._state_id)

    def _is_fresh(self) -> bool:
        return 0 <= self._context.engine.clock.now_millis() - self._written_at < self._refresh_millis


def find_progressed_start(context: TableContext, start: Start, progress: Progress) -> StreamStart | None:
    """Return recorded progress, or the requested start; None before any state, NotFound if expired."""
    resumed = None if context.options.consumer_ignore_progress else progress.resume()
    if resumed is None:
        return find_stream_start(context, start)
    return StreamStart(check_start(context, resumed, latest_snapshot(context)))


def protect_start(context: TableContext, found: StreamStart, progress: Progress) -> None:
    """Protect the files from a start on, if the stream has a consumer; NotFound if it has expired."""
    if found.state is not None:
        progress.protect_state(found.state.id)
        return
    progress.record(found.next_id)
    # Expiry reads consumers before it deletes snapshots. A consumer recorded in between must be checked again.
    check_start(context, found.next_id, latest_snapshot(context))


class SnapshotPlans:
    """Plan the snapshots of a stream; the predicate skips files, not rows."""

    def __init__(self, context: TableContext, predicate: Predicate | None) -> None:
        self._context = context
        self._predicate = predicate
        self._rules = FollowRules.of(context.table)

    def plan_state(self, state: Snapshot) -> tuple[DataSplit, ...]:
        """Return the splits of a complete state, without the levels whose rows a later changelog reports."""
        table, predicate = self._context.table, self._predicate
        request = ScanRequest(
            state,
            None if predicate is None else restrict_to_columns(predicate, self._context.schema.names),
            select_scanned_buckets(table.schema, table.options),
            min_level=get_state_min_level(table.options),
            shows_level_0=True,
        )
        return self._plan(state, lambda: plan_scan(self._context, request).splits)

    def plan_changes(self, snapshot: Snapshot) -> tuple[DataSplit, ...]:
        """Return the splits with the changes of a snapshot."""
        return self._plan(
            snapshot, lambda: plan_followed_splits(self._context, [snapshot], self._predicate, self._rules)
        )

    def is_past_bound(self, snapshot: Snapshot) -> bool:
        """Return whether the watermark of a snapshot is past `scan.bounded.watermark`."""
        bound, reached = self._context.options.scan_bounded_watermark, snapshot.watermark
        return bound is not None and reached is not None and reached > bound

    def is_delayed(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is younger than `streaming-read.snapshot.delay`."""
        delay = self._context.options.streaming_read_delay_millis
        return delay is not None and snapshot.time_millis > self._context.engine.clock.now_millis() - delay

    def check_history(self, last: tuple[int, str]) -> None:
        """Raise `NotFound` if a snapshot that was read, given by id and delta manifest list, was replaced."""
        now = find_snapshot(self._context, last[0])
        if now is not None and now.delta_manifest_list != last[1]:
            hint = (
                "the table was rolled back, fast-forwarded or created again since: start again at its latest state, "
                "with a new checkpoint if the stream has one"
            )
            raise NotFound("the followed snapshot", str(last[0]), hint=hint)

    def explain_error(self, snapshot_id: int, error: PaimonError) -> PaimonError:
        """Return the error of a read; if the snapshot has expired since, an error that says so."""
        if find_snapshot_or_changelog(self._context, snapshot_id) is not None:
            return error
        return expired_start_error(snapshot_id, find_first_id(self._context))

    def _plan(self, snapshot: Snapshot, planning: Callable[[], tuple[DataSplit, ...]]) -> tuple[DataSplit, ...]:
        try:
            return planning()
        except PaimonError as error:
            raise self.explain_error(snapshot.id, error) from error
