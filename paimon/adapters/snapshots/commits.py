"""The two ways to publish a snapshot: create its file if absent, and the same under a lock of the machine."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from attrs import frozen

from paimon.adapters.cancellation import sleep
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot, snapshot_to_json
from paimon.ports.files import FileIO, PutOutcome
from paimon.ports.snapshots import PublishOutcome

with contextlib.suppress(ImportError):  # Windows has no fcntl; opening a directory there is an OSError
    import fcntl

_OUTCOMES = {
    PutOutcome.CREATED: PublishOutcome.PUBLISHED,
    PutOutcome.EXISTS: PublishOutcome.LOST,
    PutOutcome.UNKNOWN: PublishOutcome.UNKNOWN,
    PutOutcome.NOT_DURABLE: PublishOutcome.NOT_DURABLE,
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


# LockedSnapshotCommit: writers of one machine wait for each other, and so lose fewer races.
#
# Invariant: the lock guarantees nothing. It is a lock on the snapshot directory, which the system releases when the
# process ends. After the longest wait, or on a file system without locks, a writer commits without it. The creation of
# the snapshot file decides.


_MAX_WAIT_SECONDS = 10.0
_FIRST_PAUSE_SECONDS = 0.000_5
_LONGEST_PAUSE_SECONDS = 0.005


@frozen(eq=False)
class LockedSnapshotCommit(PutIfAbsentSnapshotCommit):
    """A commit lock for tables on local paths."""

    # longest wait for other processes; after it, the commit runs without the lock
    max_wait_seconds: float = _MAX_WAIT_SECONDS

    @contextmanager
    def lock(self, paths: TablePaths) -> Iterator[None]:
        """Wait until no other process of this machine commits to the table, or the longest wait is over."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # no snapshot exists yet, or the file system has no locks
                self._acquire(stack, paths.snapshots)
            yield

    def _acquire(self, stack: contextlib.ExitStack, directory: str) -> None:
        """Take the lock and register its release, or return without it after the longest wait."""
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(_unlock, handle)
        deadline, pause = time.monotonic() + self.max_wait_seconds, _FIRST_PAUSE_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _unlock(handle: int) -> None:
    """Release a lock, and close its handle; a forked child with a copy of the handle would keep the lock otherwise."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
