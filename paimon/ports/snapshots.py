"""SnapshotCommit: the port that publishes a snapshot.

It is separate from FileIO, because a catalog can publish snapshots in its own way. Suite:
`paimon.testing.contracts.snapshots`.

Invariant: of all writers that publish the same snapshot id at most one succeeds. Source: `SnapshotCommit`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol

from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot


class PublishOutcome(Enum):
    """The outcome of one `publish`."""

    PUBLISHED = "published"
    """The snapshot is visible and durable."""
    LOST = "lost"
    """A snapshot of this id exists. It may be this one, if the reply of an earlier request was lost."""
    UNKNOWN = "unknown"
    """The storage did not confirm. The caller reads the snapshot of this id and compares identities."""
    NOT_DURABLE = "not durable"
    """The snapshot is visible, but a flush failed: a power loss may take it. The caller does not acknowledge it."""


class SnapshotCommit(Protocol):
    """Publishes the snapshots of tables."""

    def lock(self, paths: TablePaths) -> AbstractContextManager[None]:
        """Wait for the commit lock of a table, and hold it for the duration of a block.

        The lock saves lost races and guarantees nothing: after a limited wait, or where there are no locks, the block
        runs without it. `publish` alone decides which writer wins. The lock of a process that dies is released. The
        lock is not reentrant.

        Parameters
        ----------
        paths : TablePaths
            The table, which need not have a snapshot yet.

        Returns
        -------
        context manager
            Waits when it is entered. The wait never raises.
        """

    def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        """Make a snapshot visible, unless one with the same id exists.

        The call is atomic: a reader sees the whole snapshot or none. It is idempotent: a second call with the same
        snapshot returns LOST and changes nothing. It works with or without the commit lock.

        Parameters
        ----------
        paths : TablePaths
            The table.
        snapshot : Snapshot
            The snapshot. All files that it names are durable.
        base : Snapshot, optional
            The snapshot before it, whose id is one less. None for the first snapshot.

        Returns
        -------
        PublishOutcome
            See the values of the enumeration.

        Raises
        ------
        StorageError
            The storage refused. Nothing was published.
        """
