"""Making a snapshot visible, and knowing for certain whether it is.

Law: "exists" never means "not mine": the snapshot that stands is read and its identity compared. A won put counts
only if the base still stands behind it (ids are reused after expiry). What cannot be known is said to be unknown, and
then nothing is deleted. Source: our own protocol (docs/decisions); Java's `RenamingSnapshotCommit` checks and then
renames.
"""

from __future__ import annotations

from paimon.domain.errors import CorruptTable, NotFound, PaimonError, StorageError
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.lineage import follows_on, is_astray
from paimon.operations.read.snapshots import find_snapshot
from paimon.ports.engine import Engine
from paimon.ports.snapshots import PublishOutcome

_TRIES = 5
_FIRST_WAIT_MILLIS = 5


def publish(engine: Engine, table: TableDefinition, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
    """Publish `snapshot` on `base` (None: the first) and find out what became of it.

    Returns
    -------
    PublishOutcome
        PUBLISHED: it stands, in the table's history; LOST: another's snapshot stands in its place, or history went on
        without it, and it is gone again; UNKNOWN: nobody can tell.
    """
    paths = table.paths
    for attempt in range(_TRIES):
        if attempt:
            engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        if _put(engine, paths, snapshot, base) is PublishOutcome.PUBLISHED:
            return _confirmed(engine, table, snapshot, base)
        standing = read_standing(engine, paths, snapshot.id)
        if isinstance(standing, Snapshot):
            mine = standing.identity == snapshot.identity
            return _confirmed(engine, table, snapshot, base) if mine else PublishOutcome.LOST
        if standing is None and not _base_stands(engine, paths, base):
            return PublishOutcome.UNKNOWN
    return PublishOutcome.UNKNOWN


def read_standing(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | PaimonError | None:
    """The snapshot of this id that stands, None where there is none, or the error that keeps it from being known."""
    try:
        return find_snapshot(engine, paths, snapshot_id)
    except (StorageError, CorruptTable) as error:
        return error


def _put(engine: Engine, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
    try:
        return engine.snapshots.publish(paths, snapshot, base)
    except StorageError:
        return PublishOutcome.UNKNOWN


def _base_stands(engine: Engine, paths: TablePaths, base: Snapshot | None) -> bool:
    if base is None:
        return True
    standing = read_standing(engine, paths, base.id)
    return isinstance(standing, Snapshot) and standing.identity == base.identity


def _confirmed(
    engine: Engine, table: TableDefinition, snapshot: Snapshot, base: Snapshot | None
) -> PublishOutcome:
    """PUBLISHED if the snapshot stands in the table's history, else UNKNOWN."""
    standing = _patiently(engine, table.paths, base.id) if base else None
    if isinstance(standing, Snapshot) and base:
        same = standing.identity == base.identity
        return PublishOutcome.PUBLISHED if same else PublishOutcome.UNKNOWN
    try:
        if standing is None and follows_on(engine, table, snapshot):
            return PublishOutcome.PUBLISHED
        if is_astray(engine, table, snapshot):
            # Its id was used before, by a snapshot that expired; nobody can build on it, but readers may meet it.
            engine.files.delete([table.paths.snapshot(snapshot.id)])
            return PublishOutcome.LOST
    except (StorageError, CorruptTable, NotFound):
        return PublishOutcome.UNKNOWN
    return PublishOutcome.UNKNOWN


def _patiently(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | PaimonError | None:
    standing = read_standing(engine, paths, snapshot_id)
    for attempt in range(1, _TRIES):
        if not isinstance(standing, PaimonError):
            break
        engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        standing = read_standing(engine, paths, snapshot_id)
    return standing
