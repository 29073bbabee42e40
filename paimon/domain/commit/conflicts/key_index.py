"""Refuse a commit to a cross-partition table if another commit may have moved keys since its key index was built.

The commit calls this check for each snapshot after that of the key index, before it publishes.

Invariant: no key is in two partitions, whatever writers run concurrently. (Java's writers do not check this, so only
one of them may write a table.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import KeyIndexConflict
from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.manifest.entries import FileKind, ManifestEntry
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.domain.types.data_types import DataType


def can_move_keys(snapshot: Snapshot, commit_user: str) -> bool:
    """Return whether a snapshot after that of the key index may have put keys where the index does not know them.

    Compactions do not move keys. A stream knows where its own earlier commits put keys.
    """
    is_own = snapshot.commit_user == commit_user and snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER
    return snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE) and not is_own


def check_key_index(
    snapshot: Snapshot, delta: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]
) -> None:
    """Refuse a change if another commit added files that may contain the same keys."""
    own = [KeyedFile.of(entry.file, key_types) for entry in change.entries if entry.kind is FileKind.ADD]
    added = (KeyedFile.of(entry.file, key_types) for entry in delta if entry.kind is FileKind.ADD)
    clash = [keyed.file.file_name for keyed in added if any(keyed.overlaps(other) for other in own)]
    if clash:
        raise KeyIndexConflict(
            f"Snapshot {snapshot.id} of user {snapshot.commit_user!r} may have put the same keys into other partitions",
            files=clash,
            hint="write the rows again with a new writer, which reads where the keys are",
        )


def lost_snapshot_error(snapshot_id: int) -> KeyIndexConflict:
    """Return the error for a snapshot after that of the key index that expired, or was rolled back."""
    return KeyIndexConflict(
        f"Snapshot {snapshot_id} no longer exists, so it is unknown where later commits put keys",
        hint="write the rows again with a new writer, which reads where the keys are",
    )
