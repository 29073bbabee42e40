"""Check the snapshots after that of a writer's key index, for commits to cross-partition tables.

Invariant: a snapshot is read once for all attempts of a commit. A change without a key index reads nothing.
"""

from __future__ import annotations

from paimon.domain.commit.conflicts.key_index import can_move_keys, check_key_index, lost_snapshot_error
from paimon.domain.commit.entries import Change
from paimon.domain.commit.message import ReadState
from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import read_manifest, read_manifest_list
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.table_context import TableContext


class KeyIndexCheck:
    """Check one commit against each base; it continues after the last base that it checked. A state machine."""

    def __init__(self, context: TableContext, commit_user: str) -> None:
        self._context = context
        self._commit_user = commit_user
        self._key_types = [f.type for f in context.schema.key_fields]
        self._checked: ReadState | None = None

    def check(self, latest: Snapshot | None, change: Change) -> None:
        """Raise KeyIndexConflict if a commit after the snapshot of the key index may have added the same keys.

        The key ranges of files are compared. A commit whose snapshot no longer exists refuses the change, too.
        """
        if change.key_index is None:
            return
        known = self._checked or change.key_index
        if latest is None:
            if known.snapshot_id:
                raise lost_snapshot_error(known.snapshot_id)
            return
        self._check_lineage(known, latest)
        for snapshot_id in range(known.snapshot_id + 1, latest.id + 1):
            snapshot = self._find(snapshot_id, latest)
            if snapshot is None:
                raise lost_snapshot_error(snapshot_id)
            if can_move_keys(snapshot, self._commit_user):
                check_key_index(snapshot, self._read_delta(snapshot), change, self._key_types)
        self._checked = ReadState.of(latest)

    def _check_lineage(self, known: ReadState, latest: Snapshot) -> None:
        """Refuse a base that does not continue the snapshot of the index, because the table was rolled back."""
        if known.snapshot_id:
            snapshot = self._find(known.snapshot_id, latest)
            # An expired snapshot was in the history: rollback would have removed all later ones, too.
            is_expired = snapshot is None and known.snapshot_id < latest.id
            if not is_expired and (snapshot is None or not known.is_state_of(snapshot)):
                raise lost_snapshot_error(known.snapshot_id)

    def _find(self, snapshot_id: int, latest: Snapshot) -> Snapshot | None:
        if snapshot_id == latest.id:
            return latest
        return find_snapshot(self._context, snapshot_id)

    def _read_delta(self, snapshot: Snapshot) -> list[ManifestEntry]:
        metas = read_manifest_list(self._context, snapshot.delta_manifest_list)
        return [entry for meta in metas for entry in read_manifest(self._context, meta.file_name)]
