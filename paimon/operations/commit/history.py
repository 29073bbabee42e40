"""Which commits of a user the table holds already.

Law: identifiers of one user rise, so all up to that of its newest snapshot are committed; batch commits, whose
identifier is the largest there is, say nothing of the others. Walks back from the newest snapshot and stops at the
first of the user. What lies astray was never committed. Source: `FileStoreCommitImpl.filterCommitted`.
"""

from __future__ import annotations

from collections.abc import Iterator

from paimon.domain.errors import InvalidRequest
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.commit.lineage import lies_astray
from paimon.operations.read.snapshots import find_snapshot, latest_snapshot
from paimon.ports.engine import Engine


def committed(engine: Engine, table: TableDefinition, commit_user: str, identifier: int) -> bool:
    """Whether the user's commit of this identifier is in the table (as far back as its snapshots reach)."""
    return _newest_from(engine, table, commit_user, identifier) is not None


def happened(engine: Engine, table: TableDefinition, commit_user: str, identifier: int) -> bool:
    """Like `committed`, for a job that is about to commit: an identifier that was passed over is refused, not skipped.

    Raises
    ------
    InvalidRequest
        The user committed a larger identifier, and no snapshot tells of this one.
    """
    newest = _newest_from(engine, table, commit_user, identifier)
    if newest is None:
        return False
    if made_by(engine, table, commit_user, identifier):
        return True
    raise InvalidRequest(
        f"commit identifier {identifier} of user {commit_user!r} comes after {newest.commit_identifier}",
        subject="identifier",
        hint="identifiers of one user rise; take a larger one, or another commit user",
    )


def made_by(engine: Engine, table: TableDefinition, commit_user: str, identifier: int) -> list[Snapshot]:
    """The snapshots in the table's history that this commit made, newest first."""
    its = (s for s in snapshots_of(engine, table.paths, commit_user) if s.commit_identifier == identifier)
    return [s for s in its if not lies_astray(engine, table, s)]


def _newest_from(engine: Engine, table: TableDefinition, commit_user: str, identifier: int) -> Snapshot | None:
    """The user's newest snapshot (batch commits aside), if its identifier is at least this one."""
    for snapshot in snapshots_of(engine, table.paths, commit_user):
        if snapshot.commit_identifier < identifier:
            return None
        if not lies_astray(engine, table, snapshot):
            return snapshot
    return None


def snapshots_of(engine: Engine, paths: TablePaths, commit_user: str, batch: bool = False) -> Iterator[Snapshot]:
    """Snapshots of the user that still stand, newest first; those of batch commits only where asked for."""
    for snapshot in walked_back(engine, paths):
        if snapshot.commit_user == commit_user and (batch or snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER):
            yield snapshot


def walked_back(engine: Engine, paths: TablePaths) -> Iterator[Snapshot]:
    """Snapshots that still stand, newest first; each is read when it is asked for."""
    snapshot = latest_snapshot(engine, paths)
    while snapshot is not None:
        yield snapshot
        snapshot = _before(engine, paths, snapshot.id)


def published_since(
    engine: Engine,
    table: TableDefinition,
    since: int,
    newest: Snapshot | None,
    commit_user: str,
    identifier: int,
    kind: CommitKind,
) -> Snapshot | None:
    """The snapshot with this (user, identifier, kind) after snapshot id `since`, up to `newest`."""
    snapshot = newest
    while snapshot is not None and snapshot.id > since:
        same = snapshot.commit_user == commit_user and snapshot.commit_identifier == identifier
        if same and snapshot.commit_kind is kind:
            return None if lies_astray(engine, table, snapshot) else snapshot
        snapshot = _before(engine, table.paths, snapshot.id)
    return None


def _before(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | None:
    return find_snapshot(engine, paths, snapshot_id - 1) if snapshot_id > 1 else None
