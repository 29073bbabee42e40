"""Publish a snapshot, and determine for certain whether it is in the history.

Invariant: the decisions are those of `paimon.domain.commit.publishing`. After an unknown outcome nothing is deleted.

Source: our own protocol (docs/decisions); Java's `RenamingSnapshotCommit` checks and then renames.
"""

from __future__ import annotations

from paimon.domain.commit.publishing import Place, Seen, Step, decide_next_step
from paimon.domain.errors import CorruptTable, NotFound, PaimonError, StorageError
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.lineage import find_place
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.snapshots import PublishOutcome

_TRIES = 5
_FIRST_WAIT_MILLIS = 5
_DETACHED_WAIT_MILLIS = 100
_OUTCOMES = {
    Place.IN_HISTORY: PublishOutcome.PUBLISHED,
    Place.DETACHED: PublishOutcome.LOST,
    Place.UNKNOWN: PublishOutcome.UNKNOWN,
}


def publish(context: TableContext, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
    """Publish a snapshot, whose id is that of the base plus one, and determine the outcome.

    LOST: another snapshot has its id, or the history continued without it and it was deleted. UNKNOWN: the storage does
    not show the outcome. After StorageError the snapshot is not published and never will be.
    """
    refusals: list[StorageError] = []
    for attempt in range(_TRIES):
        if attempt:
            context.engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        match _put_and_decide(context, snapshot, base, refusals):
            case Step.CONFIRM:
                return _confirm_publication(context, snapshot, base)
            case Step.CHECK_AGAIN:
                return PublishOutcome.LOST
            case Step.GIVE_UP:
                return PublishOutcome.UNKNOWN
    if len(refusals) == _TRIES:
        raise refusals[-1]
    return PublishOutcome.UNKNOWN


def _put_and_decide(
    context: TableContext, snapshot: Snapshot, base: Snapshot | None, refusals: list[StorageError]
) -> Step:
    """Put the snapshot and return the next step; collect refused puts that certainly created no file."""
    put = _try_put(context, snapshot, base)
    if put is PublishOutcome.PUBLISHED:
        return decide_next_step(True, Seen.MINE, True)
    seen = _look_up_snapshot(context, snapshot)
    if isinstance(put, StorageError) and seen is Seen.NOTHING:
        refusals.append(put)
    return decide_next_step(
        False, seen, seen is not Seen.NOTHING or base is None or _look_up_snapshot(context, base) is Seen.MINE
    )


def try_read_snapshot(context: TableContext, snapshot_id: int) -> Snapshot | PaimonError | None:
    """Read the snapshot of an id; return None if no file has this id, or the error if the read fails."""
    try:
        return find_snapshot(context, snapshot_id)
    except (StorageError, CorruptTable) as error:
        return error


def delete_newest_snapshot(context: TableContext, newest: int) -> None:
    """Delete the newest snapshot, and first the LATEST hint, which the caller writes again.

    Without a hint readers list. So it names neither a missing snapshot, nor one below a gap in the ids.
    """
    context.files.delete([context.paths.latest_hint])
    context.files.delete([context.paths.snapshot(newest)])


def _try_put(context: TableContext, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome | StorageError:
    """Return the outcome of the put, or the StorageError that says that the put created no file."""
    try:
        return context.engine.snapshots.publish(context.paths, snapshot, base)
    except StorageError as refusal:
        return refusal


def _look_up_snapshot(context: TableContext, snapshot: Snapshot) -> Seen:
    """Read the id of a snapshot, and compare the stored snapshot with it."""
    stored = try_read_snapshot(context, snapshot.id)
    if isinstance(stored, Snapshot):
        return Seen.MINE if stored.identity == snapshot.identity else Seen.OTHER
    return Seen.NOTHING if stored is None else Seen.UNREADABLE


def _confirm_publication(context: TableContext, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
    """Return PUBLISHED if the snapshot is in the history, LOST if it was deleted again, else UNKNOWN."""
    stored = _read_with_retries(context, base.id) if base else None
    if isinstance(stored, Snapshot) and base:
        same = stored.identity == base.identity
        return PublishOutcome.PUBLISHED if same else PublishOutcome.UNKNOWN
    try:
        where = find_place(context, snapshot, base)
        if where is Place.DETACHED:  # or expiry deletes several snapshots at once, in any order
            context.engine.clock.sleep_millis(_DETACHED_WAIT_MILLIS)
            where = find_place(context, snapshot, base)
        if where is Place.DETACHED:  # no writer builds on it, but readers may find it
            context.files.delete([context.paths.snapshot(snapshot.id)])
    except (StorageError, CorruptTable, NotFound):
        return PublishOutcome.UNKNOWN
    return _OUTCOMES[where]


def _read_with_retries(context: TableContext, snapshot_id: int) -> Snapshot | PaimonError | None:
    """Read a snapshot, with retries after errors."""
    stored = try_read_snapshot(context, snapshot_id)
    for attempt in range(1, _TRIES):
        if not isinstance(stored, PaimonError):
            break
        context.engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        stored = try_read_snapshot(context, snapshot_id)
    return stored
