"""FileSnapshotCommit: a snapshot becomes visible by the creation of its file.

Law: the file is created only where it is absent; a LOST race may have been won by this very snapshot (an
acknowledgement that got lost), so the caller compares identities. Source: `RenamingSnapshotCommit`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from attrs import frozen

from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.json import snapshot_to_json
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.ports.files import FileIO, PutOutcome
from paimon.ports.snapshots import PublishOutcome

_OUTCOMES = {
    PutOutcome.CREATED: PublishOutcome.PUBLISHED,
    PutOutcome.EXISTS: PublishOutcome.LOST,
    PutOutcome.UNKNOWN: PublishOutcome.UNKNOWN,
}


@frozen(eq=False)
class FileSnapshotCommit:
    """See `paimon.ports.snapshots.SnapshotCommit`; a StorageError means that nothing was published."""

    files: FileIO

    def turn(self, paths: TablePaths) -> AbstractContextManager[None]:
        """Nobody waits."""
        return nullcontext()

    def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        """Create the snapshot's file."""
        return _OUTCOMES[self.files.put_if_absent(paths.snapshot(snapshot.id), snapshot_to_json(snapshot))]
