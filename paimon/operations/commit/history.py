"""Which commits of a user the table holds already.

Law: identifiers of one user rise, so all up to that of its newest snapshot are committed. Walks back from the newest
snapshot and stops at the first of the user. Source: `FileStoreCommitImpl.filterCommitted`.
"""

from __future__ import annotations

from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.read.snapshots import find_snapshot, latest_snapshot
from paimon.ports.engine import Engine


def committed(engine: Engine, table: TableDefinition, commit_user: str, identifier: int) -> bool:
    """Whether the user's commit of this identifier is in the table (as far back as its snapshots reach)."""
    newest = newest_of(engine, table.paths, commit_user)
    return newest is not None and newest.commit_identifier >= identifier


def newest_of(engine: Engine, paths: TablePaths, commit_user: str) -> Snapshot | None:
    """The user's newest snapshot; None where there is none (any more)."""
    snapshot = latest_snapshot(engine, paths)
    while snapshot is not None and snapshot.commit_user != commit_user:
        snapshot = _before(engine, paths, snapshot.id)
    return snapshot


def snapshots_of(engine: Engine, paths: TablePaths, commit_user: str) -> list[Snapshot]:
    """All snapshots of the user that still stand, newest first."""
    found: list[Snapshot] = []
    snapshot = latest_snapshot(engine, paths)
    while snapshot is not None:
        if snapshot.commit_user == commit_user:
            found.append(snapshot)
        snapshot = _before(engine, paths, snapshot.id)
    return found


def published_since(
    engine: Engine, paths: TablePaths, since: int, newest: Snapshot | None, commit_user: str, identifier: int,
    kind: CommitKind,
) -> Snapshot | None:
    """The snapshot with this (user, identifier, kind) after snapshot id `since`, up to `newest`."""
    snapshot = newest
    while snapshot is not None and snapshot.id > since:
        same = snapshot.commit_user == commit_user and snapshot.commit_identifier == identifier
        if same and snapshot.commit_kind is kind:
            return snapshot
        snapshot = _before(engine, paths, snapshot.id)
    return None


def _before(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | None:
    return find_snapshot(engine, paths, snapshot_id - 1) if snapshot_id > 1 else None
