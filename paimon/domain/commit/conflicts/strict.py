"""Strict mode: whether others touched the same partitions since the last snapshot that a job knows to be safe.

Law: another user's COMPACT or OVERWRITE of a partition that the change touches refuses it, whether it replaced files or
only marked rows; another's APPEND to real buckets refuses an OVERWRITE. A snapshot that has expired cannot be judged,
and refuses too. Source: `StrictModeChecker` (which takes any vector of the partition for a change of it).
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import IndexManifestEntry, ManifestEntry
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot

OPTION = "commit.strict-mode.last-safe-snapshot"
_REPLACING = (CommitKind.COMPACT, CommitKind.OVERWRITE)


def concerns(snapshot: Snapshot, change: Change, commit_user: str) -> bool:
    """Whether a snapshot after the safe one can refuse the change at all, so that its delta must be looked at."""
    if snapshot.commit_user == commit_user or not change.partitions:
        return False
    appended_under = snapshot.commit_kind is CommitKind.APPEND and change.kind is CommitKind.OVERWRITE
    return snapshot.commit_kind in _REPLACING or appended_under


def check_strict(
    snapshot: Snapshot, touched: Iterable[ManifestEntry], marked: Iterable[IndexManifestEntry], change: Change
) -> None:
    """Strict mode's rule for one snapshot that concerns the change.

    Parameters
    ----------
    snapshot : Snapshot
        Another user's, after the safe one.
    touched : iterable of ManifestEntry
        Its delta.
    marked : iterable of IndexManifestEntry
        The index files that it added or took away.
    change : Change
        What is to be published.

    Raises
    ------
    CommitConflict
        Naming the snapshot, its user and the files.
    """
    appended = snapshot.commit_kind is CommitKind.APPEND
    clash = [
        e.file.file_name for e in touched if e.partition in change.partitions and (e.bucket >= 0 or not appended)
    ]
    if not appended:
        clash += [e.file_name for e in marked if e.partition in change.partitions]
    if clash:
        raise CommitConflict(
            f"snapshot {snapshot.id} ({snapshot.commit_kind.value}) of user {snapshot.commit_user!r} touched the same "
            f"partitions since the last safe snapshot",
            files=clash,
            hint=f"read the newest snapshot, recompute, and commit with {OPTION} = {snapshot.id} or later",
        )


def refuse_unseen(snapshot_id: int) -> CommitConflict:
    """The refusal where a snapshot after the safe one has expired."""
    return CommitConflict(
        f"snapshot {snapshot_id} has expired, so nobody can tell what it did since the last safe snapshot",
        hint=f"read the newest snapshot, recompute, and set {OPTION} to it",
    )
