"""ProcessDirectory: a directory that exists as long as its process, however the process ends.

Invariant: a process locks its directory. A process that creates one removes the directories of the same user that no
process locks, because a killed process cannot remove its own. Without file locks (outside Unix), only processes that
end normally remove their directories.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

with contextlib.suppress(ImportError):  # Windows has no such locks
    import fcntl

_HAS_LOCKS = "fcntl" in globals()

_PREFIX = "paimon-temp-"
_LOCK = "owner.lock"
_YOUNG_SECONDS = 60
"""A younger directory may not be locked yet."""


class ProcessDirectory:
    """A new directory of this process below `parent`, which only its user can read.

    None is the system's temporary directory.
    """

    def __init__(self, parent: str | None) -> None:
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        self._owner = os.getpid()
        self._lock = _lock_file(Path(self.path, _LOCK))
        if self._lock is not None:
            _remove_abandoned(Path(self.path))

    def remove(self) -> None:
        """Delete the directory with its content. In a forked child, only release the lock."""
        if os.getpid() == self._owner:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()


def _remove_abandoned(new: Path) -> None:
    """Remove the directories of processes that were killed; a new directory shows the present time of the storage."""
    now = new.stat().st_mtime
    for found in new.parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # other processes may remove it at the same time
            if now - found.stat().st_mtime > _YOUNG_SECONDS and found.stat().st_uid == os.getuid():
                lock = _lock_file(found / _LOCK)
                if lock is not None:
                    shutil.rmtree(found, ignore_errors=True)
                    lock.close()


def _lock_file(path: Path) -> IO[bytes] | None:
    """Open and lock a file. Return None if another process has locked it, or there are no locks."""
    if not _HAS_LOCKS:
        return None
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock
