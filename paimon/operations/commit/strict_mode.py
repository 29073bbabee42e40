"""Check the snapshots after the last safe snapshot, as the option `commit.strict-mode.last-safe-snapshot` asks.

Invariant: without the option nothing is read. A committer checks each snapshot once: it is then safe for the next
attempt and for the next commit.

Source: `StrictModeChecker`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.commit.conflicts.strict import can_refuse, check_strict, expired_snapshot_error
from paimon.domain.commit.entries import Change
from paimon.domain.manifest.entries import IndexManifestEntry, ManifestEntry
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import read_index_manifest, read_manifest, read_manifest_list
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.table_context import TableContext


class SafeSnapshot:
    """The last snapshot that a committer has checked; it advances with each check.

    It starts at the id `seen` of a snapshot on which the whole change was planned, if given.
    """

    def __init__(self, seen: int | None = None) -> None:
        self._last_checked_id = seen

    def check(self, context: TableContext, latest: Snapshot | None, change: Change, commit_user: str) -> None:
        """Raise CommitConflict if a snapshot after the safe one contradicts the change, or expired unchecked.

        Snapshots of `commit_user` are safe.
        """
        option = context.options.commit_strict_mode_last_safe_snapshot
        if option is None or latest is None:
            return
        safe = max(option, -1 if self._last_checked_id is None else self._last_checked_id)
        # With -1 the first commit does not check the earlier snapshots.
        for snapshot_id in range(safe + 1, latest.id + 1) if safe >= 0 else ():
            snapshot = latest if snapshot_id == latest.id else _load_unexpired(context, snapshot_id)
            if can_refuse(snapshot, change, commit_user):
                check_strict(snapshot, _read_delta(context, snapshot), _read_index_changes(context, snapshot), change)
        self._last_checked_id = latest.id


def _load_unexpired(context: TableContext, snapshot_id: int) -> Snapshot:
    """Read a snapshot that must be checked; raise CommitConflict if it has expired."""
    snapshot = find_snapshot(context, snapshot_id)
    if snapshot is None:
        raise expired_snapshot_error(snapshot_id)
    return snapshot


def _read_delta(context: TableContext, snapshot: Snapshot) -> list[ManifestEntry]:
    metas = read_manifest_list(context, snapshot.delta_manifest_list)
    return [entry for meta in metas for entry in read_manifest(context, meta.file_name)]


def _read_index_changes(context: TableContext, snapshot: Snapshot) -> Sequence[IndexManifestEntry]:
    """Return the index files that a snapshot added or removed; all its index files if the previous snapshot expired."""
    before = find_snapshot(context, snapshot.id - 1) if snapshot.id > 1 else None
    name = before.index_manifest if before else None
    if snapshot.index_manifest == name:
        return ()
    now, then = (read_index_manifest(context, n) if n else () for n in (snapshot.index_manifest, name))
    common = {e.file_name for e in now} & {e.file_name for e in then}
    return [e for e in (*now, *then) if e.file_name not in common]
