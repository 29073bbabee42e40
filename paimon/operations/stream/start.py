"""Find where a stream scan starts in the current table.

Invariant: a stream scan starts with a complete state and the changes after it, or with changes only. Expired changes
raise an error and are never skipped. Source: `StartingScanner` and its kinds.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.changelog.stream_start import Start, StartKind
from paimon.domain.errors import NotFound
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.snapshots import (
    latest_snapshot,
    load_snapshot,
    snapshot_before,
    snapshot_ids,
)
from paimon.operations.read.changes.history import find_changelog, find_first_id
from paimon.operations.read.time_travel import find_newest_compacted, to_epoch_millis
from paimon.operations.table_context import TableContext


@frozen
class StreamStart:
    """The start of a stream scan."""

    # the snapshot whose changes are read first
    next_id: int
    # the state to read before these changes; None for changes only
    state: Snapshot | None = None


def find_stream_start(context: TableContext, start: Start) -> StreamStart | None:
    """Return where to start; None if a state is requested and the table has none yet.

    Raises `NotFound` if the snapshot has expired, or does not exist and is not the next one.
    """
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


_STATES = (StartKind.STATE, StartKind.COMPACTED_STATE, StartKind.STATE_OF)


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
