"""SnapshotCommit: the one place where a snapshot becomes visible.

Contract: of all writers that race for one id at most one gets PUBLISHED; UNKNOWN says that nobody can tell yet: the
caller reads the snapshot of that id and compares identities; a StorageError says that nothing was published. A turn is
a courtesy between writers: it saves lost races and promises nothing. Apart from FileIO because a catalog may own the
commit.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol

from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot


class PublishOutcome(Enum):
    """What became of a publish."""

    PUBLISHED = "published"
    LOST = "lost"
    UNKNOWN = "unknown"


class SnapshotCommit(Protocol):
    """Publishes `snapshot` on `base` (None for the first), each attempt from its look at the head on within a turn."""

    def turn(self, paths: TablePaths) -> AbstractContextManager[None]: ...

    def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome: ...
