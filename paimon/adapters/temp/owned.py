"""Directories for as long as their process lives, however it ends.

Law: a directory is locked by the process that made it; whoever makes one removes those of this user whose lock nobody
holds, because a killed process cannot. Where there are no such locks (not on Unix) only ends in good order clean up.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO

with contextlib.suppress(ImportError):  # Windows knows no such locks
    import fcntl

_HAS_LOCKS = "fcntl" in globals()

_PREFIX = "paimon-temp-"
_LOCK = "owner.lock"
_YOUNG_SECONDS = 60
"""A directory that is younger may not have its lock yet."""


class OwnedDirectory:
    """A directory of this process, readable by this user only."""

    def __init__(self, parent: str | None) -> None:
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        self._owner = os.getpid()
        self._lock = _locked(Path(self.path, _LOCK))
        if self._lock is not None:
            _sweep(Path(self.path).parent)

    def remove(self) -> None:
        """It goes, and all that is in it; not where a forked child asks for that."""
        if os.getpid() == self._owner:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()


def _sweep(parent: Path) -> None:
    """Removes what processes that ended otherwise left behind."""
    for found in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # others sweep too
            if time.time() - found.stat().st_mtime > _YOUNG_SECONDS and found.stat().st_uid == os.getuid():
                lock = _locked(found / _LOCK)
                if lock is not None:
                    shutil.rmtree(found, ignore_errors=True)
                    lock.close()


def _locked(path: Path) -> IO[bytes] | None:
    """The open file with its lock; None where another process holds it, or there are no locks."""
    if not _HAS_LOCKS:
        return None
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock
