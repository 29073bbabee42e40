"""Whether a snapshot that was just put stands in the table's history, where its base can no longer tell.

Law: it does if nothing older stands and it is the newest, or its successor was built on it. Asked only for a table's
first snapshot and where the base was expired meanwhile, so listing is no burden.
"""

from __future__ import annotations

from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.manifests import read_manifest_list
from paimon.operations.read.snapshots import find_snapshot, snapshot_ids
from paimon.ports.engine import Engine


def follows_on(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> bool:
    """True where `snapshot` is the oldest that stands, and the newest or the base of the next."""
    ids = snapshot_ids(engine, table.paths)
    if not ids or min(ids) < snapshot.id:
        return False
    if max(ids) == snapshot.id:
        return True
    successor = find_snapshot(engine, table.paths, snapshot.id + 1)
    return successor is not None and _built_on(engine, table, successor, snapshot)


def is_astray(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> bool:
    """True where history went on without it, from another snapshot of its id that expired.

    Then the next one stands and was built on the other, or has expired too while later ones stand: expiry goes upwards,
    so that it would have taken this one first if this were the one that history knows.
    """
    successor = find_snapshot(engine, table.paths, snapshot.id + 1)
    if successor is not None:
        return not _built_on(engine, table, successor, snapshot)
    return max(snapshot_ids(engine, table.paths), default=0) > snapshot.id + 1


def _built_on(engine: Engine, table: TableDefinition, successor: Snapshot, snapshot: Snapshot) -> bool:
    """Whether the successor's base list holds the manifests of the snapshot's delta."""
    held = {meta.file_name for meta in read_manifest_list(engine, table, successor.base_manifest_list)}
    added = {meta.file_name for meta in read_manifest_list(engine, table, snapshot.delta_manifest_list)}
    return added <= held
