"""The lock of a JDBC catalog, and files that are created under it.

Law: of all who hold the lock of a table at most one creates a file, so that a storage without any compare-and-swap is
safe. A lock that outlived its time may have been taken by another: what was created then is unknown, never said to be
created. Source: `JdbcCatalogLock`, `AbstractDistributedLockDialect`.
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
_DEAD_SECONDS = 2
"""Who waits outlasts a holder that died just before: its lock is told in whole seconds, rounded up."""
_OVER = {
    "sqlite": "strftime('%s', 'now') - strftime('%s', acquired_at) > expire_time_seconds",
    "postgresql": "EXTRACT(EPOCH FROM AGE(NOW(), acquired_at)) > expire_time_seconds",
    "mysql": "TIMESTAMPDIFF(SECOND, acquired_at, NOW()) > expire_time_seconds",
}
_OVER["mariadb"] = _OVER["mysql"]
"""When a lock's time is over, by the clock of the database."""


class Held:
    """Tells, after the lock was given back, whether it had been ours to the end."""

    def __init__(self) -> None:
        self.to_the_end = False


@frozen
class CatalogLock:
    """Locks by name.

    Parameters
    ----------
    timeout_millis : int
        How long to wait for a lock, and how long one is held at most (`lock-acquire-timeout`).
    longest_wait_millis : int
        The longest pause between two tries (`lock-check-max-sleep`).
    """

    database: Database
    timeout_millis: int = 8 * 60 * 1000
    longest_wait_millis: int = 8 * 1000

    @contextmanager
    def held(self, name: str) -> Iterator[Held]:
        """The block runs while nobody else holds the lock of this name.

        Raises
        ------
        StorageError
            Others held it all the time.
        """
        since = self._acquire(name)
        held = Held()
        try:
            yield held
        finally:
            held.to_the_end = self._release(name, since)

    def _release(self, name: str, since: float) -> bool:
        """Give the lock back; whether it was ours until then. One whose time is over may be another's by now."""
        if self._is_over(since):
            return False
        try:
            with self.database.transaction() as connection:
                gone = connection.execute(sa.delete(LOCKS).where(LOCKS.c.lock_id == name)).rowcount
        except StorageError:
            return False  # what was done under the lock is done: the row goes when its time is over
        return gone > 0 and not self._is_over(since)

    def _is_over(self, since: float) -> bool:
        return (time.monotonic() - since) * 1000 >= self.timeout_millis

    def _acquire(self, name: str) -> float:
        """Wait for the lock; answers a moment before it became ours."""
        start, wait = time.monotonic(), _FIRST_WAIT_SECONDS
        since = start
        while not self._try(name):
            if self._is_over(start + _DEAD_SECONDS):
                hint = "its holder is slow or died: wait, or delete its row in paimon_distributed_locks"
                raise StorageError(self.database.shown, f"the lock {name!r} was not to be had", hint=hint)
            time.sleep(wait)
            wait = min(2 * wait, self.longest_wait_millis / 1000)
            since = time.monotonic()
        return since

    def _try(self, name: str) -> bool:
        # Databases tell seconds: a second more, and nobody takes it before we count it as lost.
        seconds = self.timeout_millis // 1000 + 1
        over = sa.text(_OVER[self.database.dialect])
        try:
            with self.database.transaction() as connection:
                connection.execute(sa.delete(LOCKS).where(LOCKS.c.lock_id == name, over))
                connection.execute(sa.insert(LOCKS).values(lock_id=name, expire_time_seconds=seconds))
        except IntegrityError:
            return False
        return True


@frozen(eq=False)
class LockedFiles:
    """A FileIO whose `put_if_absent` runs under the lock of the table that the path lies in.

    Parameters
    ----------
    inner : FileIO
        Does all the rest.
    lock : CatalogLock
    warehouse : str
        Below it lie ``DATABASE.db/TABLE``.
    catalog_key : str
        The first part of a lock's name.
    """

    inner: FileIO
    lock: CatalogLock = field(repr=False)
    warehouse: str
    catalog_key: str

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """As the inner one."""
        return self.inner.read(path, max_bytes)

    def open(self, path: str) -> pa.NativeFile:
        """As the inner one."""
        return self.inner.open(path)

    def create(self, path: str) -> OutputFile:
        """As the inner one."""
        return self.inner.create(path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create the file with this content unless it is there."""
        with self.lock.held(self._name(path)) as held:
            outcome = self.inner.put_if_absent(path, data)
        return PutOutcome.UNKNOWN if outcome is PutOutcome.CREATED and not held.to_the_end else outcome

    def replace(self, path: str, data: bytes) -> None:
        """As the inner one."""
        self.inner.replace(path, data)

    def list(self, path: str) -> Sequence[FileStatus]:
        """As the inner one."""
        return self.inner.list(path)

    def status(self, path: str) -> FileStatus | None:
        """As the inner one."""
        return self.inner.status(path)

    def delete(self, paths: Sequence[str]) -> None:
        """As the inner one."""
        self.inner.delete(paths)

    def _name(self, path: str) -> str:
        """``KEY.DATABASE.TABLE``, as Java's committers name it."""
        below = path.removeprefix(self.warehouse).strip("/").split("/")
        return ".".join((self.catalog_key, *(part.removesuffix(".db") for part in below[:2])))
