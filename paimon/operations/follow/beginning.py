"""Where a follower begins in a table as it is now.

Law: a whole state, then the changes after it; or changes alone. What expired is never passed over in silence. Source:
`StartingScanner` and its kinds.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.changelog.start import Start, StartKind
from paimon.domain.errors import NotFound
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.changes.history import find_changelog, first_id
from paimon.operations.read.snapshots import (
    latest_snapshot,
    load_snapshot,
    snapshot_before,
    snapshot_ids,
)
from paimon.operations.read.time_travel import epoch_millis, newest_compacted
from paimon.ports.engine import Engine


@frozen
class Beginning:
    """A state to show first, if any, and the snapshot whose changes come next."""

    next_id: int
    state: Snapshot | None = None


def beginning(engine: Engine, table: TableDefinition, start: Start) -> Beginning | None:
    """Where to begin; None where a state is wanted and the table has none yet.

    Raises
    ------
    NotFound
        The snapshot has expired, or is not to come next.
    """
    latest = latest_snapshot(engine, table.paths)
    if start.kind is StartKind.CHANGES_OF:
        return Beginning(checked(engine, table, int(start.value), latest))
    if latest is None:
        return None if start.kind in _STATES else Beginning(1)
    if start.kind in _STATES:
        state = _state(engine, table, start, latest)
        return Beginning(state.id + 1, state)
    if start.kind is StartKind.LATEST:
        return Beginning(latest.id + 1)
    if start.kind is StartKind.EARLIEST:
        return Beginning(first_id(engine, table.paths))
    return Beginning(_first_since(engine, table, epoch_millis(engine, start.value)))


_STATES = (StartKind.STATE, StartKind.COMPACTED_STATE, StartKind.STATE_OF)


def checked(engine: Engine, table: TableDefinition, next_id: int, latest: Snapshot | None) -> int:
    """The id, if its changes are there or come next; see `beginning`."""
    last = 0 if latest is None else latest.id
    if next_id > last + 1:
        hint = f"the latest is {last}; it was rolled back, or the table made anew: take one up to {last + 1}"
        raise NotFound("snapshot", str(next_id), hint=hint)
    first = first_id(engine, table.paths) if last else 1
    if next_id < first:
        raise expired(next_id, first)
    return next_id


def expired(next_id: int, first: int) -> NotFound:
    """What a follower that fell behind is told."""
    hint = (
        f"its changes have expired, those from {first} on are there: follow from {first} (for a consumer, reset it to "
        "that), or anew from the latest state; a consumer id keeps what is yet to be read, and changelog.time-retained "
        "keeps changes for longer"
    )
    return NotFound("snapshot or changelog", str(next_id), hint=hint)


def _state(engine: Engine, table: TableDefinition, start: Start, latest: Snapshot) -> Snapshot:
    if start.kind is StartKind.STATE_OF:
        return load_snapshot(engine, table.paths, int(start.value))
    if start.kind is StartKind.COMPACTED_STATE:
        return newest_compacted(engine, table) or latest
    return latest


def _first_since(engine: Engine, table: TableDefinition, millis: int) -> int:
    """The first snapshot, or long-lived changelog, of that time or later; else the one to come."""
    before = snapshot_before(engine, table.paths, millis - 1)
    if before is not None:
        return before.id + 1
    first = first_id(engine, table.paths)
    for changelog_id in range(first, (snapshot_ids(engine, table.paths) or (first,))[0]):
        found = find_changelog(engine, table.paths, changelog_id)
        if found is None or found.time_millis >= millis:
            return changelog_id
        first = changelog_id + 1
    return first
