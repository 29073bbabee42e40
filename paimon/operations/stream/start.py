"""Where a stream starts, and how far its consumer is.

Invariant: a stream starts with a complete state and the changes after it, or with changes only; expired changes raise
an error and are never skipped. A recorded snapshot is the first one whose changes are not processed, so a crash repeats
changes. A second consumer, named after the first, protects a state that is still needed: the one that is read first, or
that an overwrite replaced. Source: `StartingScanner` and its kinds, `ConsumerManager`, `DataTableStreamScan`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.changelog.stream_start import Start, StartKind
from paimon.domain.errors import NotFound
from paimon.domain.paths import STATE_SUFFIX, check_segment
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.consumers import read_consumer
from paimon.operations.metadata.snapshots import latest_snapshot, load_snapshot, snapshot_before, snapshot_ids
from paimon.operations.read.changes.history import find_changelog, find_first_id
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
