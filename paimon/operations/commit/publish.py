"""Making a snapshot visible, and knowing for certain whether it is.

Law: reads what stands and follows the decisions of `paimon.domain.commit.publishing`; where the outcome is unknown
nothing is deleted. Source: our own protocol (docs/decisions); Java's `RenamingSnapshotCommit` checks and then renames.
"""

from __future__ import annotations

from paimon.domain.commit.publishing import Place, Seen, Step, after_put
from paimon.domain.errors import CorruptTable, NotFound, PaimonError, StorageError
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.lineage import place_of
from paimon.operations.read.snapshots import find_snapshot
from paimon.ports.engine import Engine
from paimon.ports.snapshots import PublishOutcome

_TRIES = 5
_FIRST_WAIT_MILLIS = 5
_ASTRAY_WAIT_MILLIS = 100
_OUTCOMES = {
    Place.IN_HISTORY: PublishOutcome.PUBLISHED,
    Place.ASTRAY: PublishOutcome.LOST,
    Place.UNKNOWN: PublishOutcome.UNKNOWN,
}


def publish(engine: Engine, table: TableDefinition, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
    """Publish `snapshot` on `base` (None: the first) and find out what became of it.

    Returns
    -------
    PublishOutcome
        PUBLISHED: it stands, in the table's history; LOST: another's snapshot stands in its place, or history went on
        without it, and it is gone again; UNKNOWN: nobody can tell.

    Raises
    ------
    StorageError
        The storage refused each put, and nothing stands there: the snapshot is not published and never will be.
    """
    refusals: list[StorageError] = []
    for attempt in range(_TRIES):
        if attempt:
            engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        match _next(engine, table.paths, snapshot, base, refusals):
            case Step.CONFIRM:
                return _confirmed(engine, table, snapshot, base)
            case Step.GO_ON:
                return PublishOutcome.LOST
            case Step.GIVE_UP:
                return PublishOutcome.UNKNOWN
    if len(refusals) == _TRIES:
        raise refusals[-1]
    return PublishOutcome.UNKNOWN


def _next(
    engine: Engine, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None, refusals: list[StorageError]
) -> Step:
    """Put the snapshot; what to do then. Refusals of puts that left nothing for certain are collected."""
    put = _put(engine, paths, snapshot, base)
    if put is PublishOutcome.PUBLISHED:
        return after_put(True, Seen.MINE, True)
    seen = _seen(engine, paths, snapshot)
    if isinstance(put, StorageError) and seen is Seen.NOTHING:
        refusals.append(put)
    return after_put(False, seen, seen is not Seen.NOTHING or base is None or _seen(engine, paths, base) is Seen.MINE)


def read_standing(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | PaimonError | None:
    """The snapshot of this id that stands, None where there is none, or the error that keeps it from being known."""
    try:
        return find_snapshot(engine, paths, snapshot_id)
    except (StorageError, CorruptTable) as error:
        return error


def _put(
    engine: Engine, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None
) -> PublishOutcome | StorageError:
    """What the put answered; a StorageError, which says that this put created nothing."""
    try:
        return engine.snapshots.publish(paths, snapshot, base)
    except StorageError as refusal:
        return refusal


def _seen(engine: Engine, paths: TablePaths, snapshot: Snapshot) -> Seen:
    """What stands under a snapshot's id, seen by whoever knows the snapshot."""
    standing = read_standing(engine, paths, snapshot.id)
    if isinstance(standing, Snapshot):
        return Seen.MINE if standing.identity == snapshot.identity else Seen.ANOTHERS
    return Seen.NOTHING if standing is None else Seen.UNREADABLE


def _confirmed(
    engine: Engine, table: TableDefinition, snapshot: Snapshot, base: Snapshot | None
) -> PublishOutcome:
    """PUBLISHED if the snapshot stands in the table's history, LOST if it is gone again, else UNKNOWN."""
    standing = _patiently(engine, table.paths, base.id) if base else None
    if isinstance(standing, Snapshot) and base:
        same = standing.identity == base.identity
        return PublishOutcome.PUBLISHED if same else PublishOutcome.UNKNOWN
    try:
        where = place_of(engine, table, snapshot, base)
        if where is Place.ASTRAY:  # or expiry is just taking several at once, in the order that the storage likes
            engine.clock.sleep_millis(_ASTRAY_WAIT_MILLIS)
            where = place_of(engine, table, snapshot, base)
        if where is Place.ASTRAY:  # nobody can build on it, but readers may meet it
            engine.files.delete([table.paths.snapshot(snapshot.id)])
    except (StorageError, CorruptTable, NotFound):
        return PublishOutcome.UNKNOWN
    return _OUTCOMES[where]


def _patiently(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | PaimonError | None:
    standing = read_standing(engine, paths, snapshot_id)
    for attempt in range(1, _TRIES):
        if not isinstance(standing, PaimonError):
            break
        engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        standing = read_standing(engine, paths, snapshot_id)
    return standing
