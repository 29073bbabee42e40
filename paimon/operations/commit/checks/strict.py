"""Strict mode, driven: each snapshot after the safe one is looked at once by a committer.

Law: asked for by `commit.strict-mode.last-safe-snapshot`, and reads nothing without it; what an attempt has seen is
safe for the next attempt, and for the next commit of the same committer. Source: `StrictModeChecker`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.commit.conflicts.strict import check_strict, concerns, refuse_unseen
from paimon.domain.commit.entries import Change
from paimon.domain.manifest.entries import IndexManifestEntry, ManifestEntry
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.manifests import read_index_manifest, read_manifest, read_manifest_list
from paimon.operations.read.snapshots import find_snapshot
from paimon.ports.engine import Engine


class SafeSnapshot:
    """The last snapshot that a committer knows to be safe; it moves on with what was looked at.

    `seen` is one that all of the change was planned on.
    """

    def __init__(self, seen: int | None = None) -> None:
        self._seen = seen

    def check(
        self, engine: Engine, table: TableDefinition, latest: Snapshot | None, change: Change, commit_user: str
    ) -> None:
        """Refuse the change where a snapshot after the safe one contradicts it (CommitConflict)."""
        option = table.options.commit_strict_mode_last_safe_snapshot
        if option is None or latest is None:
            return
        safe = max(option, -1 if self._seen is None else self._seen)
        # -1 says that the first commit need not look at what was there before it.
        for snapshot_id in range(safe + 1, latest.id + 1) if safe >= 0 else ():
            snapshot = latest if snapshot_id == latest.id else find_snapshot(engine, table.paths, snapshot_id)
            if snapshot is None:
                raise refuse_unseen(snapshot_id)
            if concerns(snapshot, change, commit_user):
                check_strict(snapshot, _delta(engine, table, snapshot), _index_changes(engine, table, snapshot), change)
        self._seen = latest.id


def _delta(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> list[ManifestEntry]:
    metas = read_manifest_list(engine, table, snapshot.delta_manifest_list)
    return [entry for meta in metas for entry in read_manifest(engine, table, meta.file_name)]


def _index_changes(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> Sequence[IndexManifestEntry]:
    """The index files that a snapshot added or took away; all of them where the one before it has expired."""
    before = find_snapshot(engine, table.paths, snapshot.id - 1) if snapshot.id > 1 else None
    name = before.index_manifest if before else None
    if snapshot.index_manifest == name:
        return ()
    now, then = (read_index_manifest(engine, table, n) if n else () for n in (snapshot.index_manifest, name))
    kept = {e.file_name for e in now} & {e.file_name for e in then}
    return [e for e in (*now, *then) if e.file_name not in kept]
