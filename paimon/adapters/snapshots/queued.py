"""QueuedSnapshotCommit: processes of one machine wait for their turn, instead of losing races to each other.

Law: a turn is a courtesy, never a promise: it is a lock on the directory of the snapshots that the system forgets with
its holder; who does not get it in time, or on a file system that knows no locks, commits without. What decides is
still the creation of the snapshot's file.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from paimon.adapters.snapshots.renaming import FileSnapshotCommit
from paimon.domain.paths import TablePaths

with contextlib.suppress(ImportError):  # Windows knows neither this nor handles of directories, which is an OSError
    import fcntl

_PATIENCE_SECONDS = 10.0
_FIRST_WAIT_SECONDS = 0.000_5
_LONGEST_WAIT_SECONDS = 0.005


@frozen(eq=False)
class QueuedSnapshotCommit(FileSnapshotCommit):
    """For tables on local paths.

    Parameters
    ----------
    patience_seconds : float
        How long others are waited for at most.
    """

    patience_seconds: float = _PATIENCE_SECONDS

    @contextmanager
    def turn(self, paths: TablePaths) -> Iterator[None]:
        """Wait until no other process of this machine commits to the table, but not for ever."""
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # the first snapshot is still to come, or there are no locks here
                self._take(held, paths.snapshots)
            yield

    def _take(self, held: contextlib.ExitStack, directory: str) -> None:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        held.callback(os.close, handle)
        until, wait = time.monotonic() + self.patience_seconds, _FIRST_WAIT_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    return
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
