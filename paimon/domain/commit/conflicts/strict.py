"""Strict mode: check that no other user touched the same partitions after the last safe snapshot.

Another user's COMPACT or OVERWRITE of a partition refuses a change of this partition. This includes commits that change
only deletion vectors. Another user's APPEND to a bucket refuses an OVERWRITE. An expired snapshot cannot be checked, so
it refuses the change, too.

Source: `StrictModeChecker`, which counts every deletion vector of the partition as a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import IndexManifestEntry, ManifestEntry
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot

OPTION = "commit.strict-mode.last-safe-snapshot"
_REPLACING = (CommitKind.COMPACT, CommitKind.OVERWRITE)


def can_refuse(snapshot: Snapshot, change: Change, commit_user: str) -> bool:
    """Return whether a snapshot after the safe one can refuse the change, so that its delta must be read."""
    if snapshot.commit_user == commit_user or not change.partitions:
        return False
    appended_under = snapshot.commit_kind is CommitKind.APPEND and change.kind is CommitKind.OVERWRITE
    return snapshot.commit_kind in _REPLACING or appended_under


def check_strict(
    snapshot: Snapshot, touched: Iterable[ManifestEntry], marked: Iterable[IndexManifestEntry], change: Change
) -> None:
    """Apply the rule of strict mode to one snapshot of another user after the safe one.

    `touched` is the delta of the snapshot. `marked` are the index files that it added or removed.
    """
    appended = snapshot.commit_kind is CommitKind.APPEND
    files = [e.file.file_name for e in touched if e.partition in change.partitions and (e.bucket >= 0 or not appended)]
    if not appended:
        files += [e.file_name for e in marked if e.partition in change.partitions]
    if files:
        raise _changed_partitions_error(snapshot, files)


def _changed_partitions_error(snapshot: Snapshot, files: Sequence[str]) -> CommitConflict:
    return CommitConflict(
        f"Snapshot {snapshot.id} ({snapshot.commit_kind.value}) of user {snapshot.commit_user!r} changed the same "
        f"partitions since the last safe snapshot",
        files=files,
        hint=f"read the newest snapshot, recompute, and commit with {OPTION} = {snapshot.id} or later",
    )


def expired_snapshot_error(snapshot_id: int) -> CommitConflict:
    """Return the error for a snapshot after the safe one that has expired."""
    return CommitConflict(
        f"Snapshot {snapshot_id} has expired, so its changes since the last safe snapshot are unknown",
        hint=f"read the newest snapshot, recompute, and set {OPTION} to it",
    )
