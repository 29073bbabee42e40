"""CatalogLock: the lock of a JDBC catalog, and LockedFiles, which creates files under it.

Invariant: of several lock owners at most one creates a file, so a storage without compare-and-swap is safe. After the
timeout another process may own the lock; a file created then has the outcome UNKNOWN, never CREATED. Source:
`JdbcCatalogLock`, `AbstractDistributedLockDialect`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import sqlalchemy as sa
from attrs import field, frozen
from sqlalchemy.exc import IntegrityError

from paimon.adapters.catalogs.database import LOCKS, Database
from paimon.domain.errors import StorageError
from paimon.ports.files import WHOLE_BYTES, FileIO, FileStatus, OutputFile, PutOutcome

_FIRST_WAIT_SECONDS = 0.02
_EXTRA_WAIT_SECONDS = 2
"""A waiting process outlasts the lock of a process that died, because the database rounds times up to seconds."""
_IS_EXPIRED = {
    "sqlite": "strftime('%s', 'now') - strftime('%s', acquired_at) > expire_time_seconds",
    "postgresql": "EXTRACT(EPOCH FROM AGE(NOW(), acquired_at)) > expire_time_seconds",
    "mysql": "TIMESTAMPDIFF(SECOND, acquired_at, NOW()) > expire_time_seconds",
}
_IS_EXPIRED["mariadb"] = _IS_EXPIRED["mysql"]
"""The condition of an expired lock, by the clock of the database."""


class LockHold:
    """One use of a lock.

    Attributes
    ----------
    was_never_lost : bool
        After the release: whether this process owned the lock for the whole block. False before.
    """

    def __init__(self) -> None:
        self.was_never_lost = False


@frozen
class CatalogLock:
    """Locks by name, as rows of a database.

    Parameters
    ----------
    database : Database
        The database with the table of locks.
    timeout_millis : int
        The longest wait for a lock, and the time after which others may take it (`lock-acquire-timeout`).
    longest_wait_millis : int
        The longest pause between two attempts (`lock-check-max-sleep`).
    """

    database: Database
    timeout_millis: int = 8 * 60 * 1000
    longest_wait_millis: int = 8 * 1000

    @contextmanager
    def hold_lock(self, name: str) -> Iterator[LockHold]:
        """Run a block while no other process owns the lock of this name.

        Parameters
        ----------
        name : str
            The lock, at most 255 characters.

        Yields
        ------
        LockHold
            Shows after the block whether the lock was lost in between.

        Raises
        ------
        StorageError
            Other processes owned the lock during the whole timeout, or the database failed.
        """
        since = self._acquire(name)
        hold = LockHold()
        try:
            yield hold
        finally:
            hold.was_never_lost = self._release(name, since)

    def _release(self, name: str, since: float) -> bool:
        """Release the lock, and return whether this process owned it until then."""
        if self._is_expired(since):
            return False
        try:
            with self.database.transaction() as connection:
                deleted = connection.execute(sa.delete(LOCKS).where(LOCKS.c.lock_id == name)).rowcount
        except StorageError:
            return False  # the work under the lock is done; the next process deletes the expired row
        return deleted > 0 and not self._is_expired(since)

    def _is_expired(self, since: float) -> bool:
        return (time.monotonic() - since) * 1000 >= self.timeout_millis

    def _acquire(self, name: str) -> float:
        """Wait for the lock, and return a monotonic time just before it was taken."""
        start, wait = time.monotonic(), _FIRST_WAIT_SECONDS
        since = start
        while not self._try(name):
            if self._is_expired(start + _EXTRA_WAIT_SECONDS):
                hint = "its owner is slow or dead: retry, or delete its row in paimon_distributed_locks"
                raise StorageError(
                    self.database.redacted_uri,
                    f"lock {name!r} was not released within {self.timeout_millis / 1000:g} s",
                    hint=hint,
                )
            time.sleep(wait)
            wait = min(2 * wait, self.longest_wait_millis / 1000)
            since = time.monotonic()
        return since

    def _try(self, name: str) -> bool:
        """Return whether the lock could be taken now. Expired locks are deleted first."""
        # Databases count in seconds. One second more: no process takes the lock before this one counts it as lost.
        seconds = self.timeout_millis // 1000 + 1
        is_expired = sa.text(_IS_EXPIRED[self.database.dialect])
        try:
            with self.database.transaction() as connection:
                connection.execute(sa.delete(LOCKS).where(LOCKS.c.lock_id == name, is_expired))
                connection.execute(sa.insert(LOCKS).values(lock_id=name, expire_time_seconds=seconds))
        except IntegrityError:
            return False
        return True


@frozen(eq=False)
class LockedFiles:
    """A FileIO whose `put_if_absent` runs under the lock of the table that contains the path.

    Parameters
    ----------
    inner : FileIO
        The storage.
    lock : CatalogLock
        The locks of the catalog.
    warehouse : str
        The directory that contains ``DATABASE.db/TABLE``.
    catalog_key : str
        The first part of the names of locks.
    """

    inner: FileIO
    lock: CatalogLock = field(repr=False)
    warehouse: str
    catalog_key: str

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """Read a whole file of the inner storage."""
        return self.inner.read(path, max_bytes)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file of the inner storage."""
        return self.inner.open(path)

    def create(self, path: str) -> OutputFile:
        """Begin a file in the inner storage. Its name is unique, so it needs no lock."""
        return self.inner.create(path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file under the lock of its table, unless it exists; UNKNOWN if the lock was lost."""
        with self.lock.hold_lock(self._name(path)) as hold:
            outcome = self.inner.put_if_absent(path, data)
        return PutOutcome.UNKNOWN if outcome is PutOutcome.CREATED and not hold.was_never_lost else outcome

    def replace(self, path: str, data: bytes) -> None:
        """Replace a file of the inner storage."""
        self.inner.replace(path, data)

    def list(self, path: str) -> Sequence[FileStatus]:
        """List a directory of the inner storage."""
        return self.inner.list(path)

    def status(self, path: str) -> FileStatus | None:
        """Return what the inner storage has at a path."""
        return self.inner.status(path)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files of the inner storage."""
        self.inner.delete(paths)

    def _name(self, path: str) -> str:
        """Return the name of the lock: ``KEY.DATABASE.TABLE``, as Java names it."""
        below = path.removeprefix(self.warehouse).strip("/").split("/")
        return ".".join((self.catalog_key, *(part.removesuffix(".db") for part in below[:2])))
