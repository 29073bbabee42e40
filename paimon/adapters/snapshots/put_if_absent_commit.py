"""PutIfAbsentSnapshotCommit: publish a snapshot by creating its file.

Invariant: the file is created only if it is absent. The outcome LOST may come from this very snapshot, if the reply of
an earlier request was lost, so the caller compares identities. Source: `RenamingSnapshotCommit`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from attrs import frozen

from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.snapshot.snapshot_json import snapshot_to_json
from paimon.ports.files import FileIO, PutOutcome
from paimon.ports.snapshots import PublishOutcome

_OUTCOMES = {
    PutOutcome.CREATED: PublishOutcome.PUBLISHED,
    PutOutcome.EXISTS: PublishOutcome.LOST,
    PutOutcome.UNKNOWN: PublishOutcome.UNKNOWN,
}


@frozen(eq=False)
class PutIfAbsentSnapshotCommit:
    """See `paimon.ports.snapshots.SnapshotCommit`."""

    files: FileIO

    def lock(self, paths: TablePaths) -> AbstractContextManager[None]:
        """Return a context manager that does not wait."""
        return nullcontext()

    def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        """Create the file of the snapshot. `base` is ignored: the name of the file contains the id."""
        return _OUTCOMES[self.files.put_if_absent(paths.snapshot(snapshot.id), snapshot_to_json(snapshot))]
