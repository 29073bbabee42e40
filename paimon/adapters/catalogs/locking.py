"""The database of a JDBC catalog: its connection and tables, its lock, and LockedFiles, which creates files under it.

Invariant: the first process that connects creates the missing tables in Java's layout; only the connection contains
the password. Of several lock owners at most one creates a file, so storage needs no compare-and-swap. After the
timeout another process may own the lock; a file created then has the outcome UNKNOWN, never CREATED.
Source: `JdbcUtils`, `JdbcCatalogLock`, `AbstractDistributedLockDialect`.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache

import pyarrow as pa
import sqlalchemy as sa
from attrs import field, frozen
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from paimon.adapters.cancellation import sleep
from paimon.domain.errors import InvalidRequest, StorageError, Unsupported
from paimon.domain.extras import is_optional, missing_extra
from paimon.domain.secrets import redact_secrets, remove_password
from paimon.domain.undo import undo_on_failure
from paimon.ports.files import WHOLE_BYTES, DeferredFlush, FileIO, FileStatus, OutputFile, PutOutcome

_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
_NAME = sa.String(255)
METADATA = sa.MetaData()
TABLES = sa.Table(
    "paimon_tables",
    METADATA,
    sa.Column("catalog_key", _NAME, primary_key=True),
    sa.Column("database_name", _NAME, primary_key=True),
    sa.Column("table_name", _NAME, primary_key=True),
)
PROPERTIES = sa.Table(
    "paimon_database_properties",
    METADATA,
    sa.Column("catalog_key", _NAME, primary_key=True),
    sa.Column("database_name", _NAME, primary_key=True),
    sa.Column("property_key", _NAME, primary_key=True),
    sa.Column("property_value", sa.String(1000)),
)
TABLE_PROPERTIES = sa.Table(
    "paimon_table_properties",
    METADATA,
    sa.Column("catalog_key", _NAME, primary_key=True),
    sa.Column("database_name", _NAME, primary_key=True),
    sa.Column("table_name", _NAME, primary_key=True),
    sa.Column("property_key", _NAME, primary_key=True),
    sa.Column("property_value", sa.String(1000)),
)
LOCKS = sa.Table(
    "paimon_distributed_locks",
    METADATA,
    sa.Column("lock_id", _NAME, primary_key=True),
    sa.Column("acquired_at", sa.TIMESTAMP, server_default=sa.func.current_timestamp(), nullable=False),
    sa.Column("expire_time_seconds", sa.BigInteger, server_default="0", nullable=False),
)


@frozen
class Database:
    """The location of a catalog's database."""

    # SQLAlchemy (sqlite:///file, postgresql://host/db) or JDBC (jdbc:postgresql://host/db)
    uri: str = field(repr=lambda uri: repr(redact_secrets(uri, {})))
    # replaces the user of the URL; None: the URL or the environment of the driver decides
    user: str | None = None
    # replaces the password of the URL; neither shown nor pickled
    password: str | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[type[Database], tuple[str, str | None]]:
        return Database, (remove_password(self.uri), self.user)

    @property
    def redacted_uri(self) -> str:
        """The URI without user and password, for messages."""
        return redact_secrets(self.uri, {})

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Open a connection whose changes are committed at the end of the block, or rolled back after an error."""
        with self.translate_errors():
            engine = _engine(_url(self))
            with engine.begin() as connection:
                yield connection

    def open_connection(self) -> sa.Connection:
        """Open a connection without a transaction, which the caller closes."""
        with self.translate_errors():
            return _engine(_url(self)).connect()

    @property
    def dialect(self) -> str:
        """The kind of database: ``sqlite``, ``postgresql``, ``mysql`` or ``mariadb``."""
        return _url(self).get_backend_name()

    @contextlib.contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Translate errors of the driver, except IntegrityError, to StorageError without passwords."""
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
            reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
            reason = redact_secrets(reason, {"password": self.password} if self.password else {})
            hint = "check that the database of the catalog runs and accepts this user"
            raise StorageError(self.redacted_uri, reason, hint=hint) from None


def _url(database: Database) -> sa.URL:
    """Parse the URI for SQLAlchemy, with the driver and the credentials."""
    text = re.sub(r"^jdbc:", "", database.uri)
    text = re.sub(r"^sqlite:(?!//)", "sqlite:///", text)
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        hint = "for example sqlite:////path/catalog.sqlite or postgresql://host/database"
        raise InvalidRequest("Catalog option 'uri' must be a database URL", subject="uri", hint=hint) from None
    if url.drivername in _DRIVERS:
        url = url.set(drivername=_DRIVERS[url.drivername])
    if url.get_backend_name() == "sqlite":
        return url  # a SQLite file has no users
    if database.user is not None:
        url = url.set(username=database.user)
    return url if database.password is None else url.set(password=database.password)


@lru_cache(maxsize=64)
def _engine(url: sa.URL) -> sa.Engine:
    """Create the connection factory of a database, one per process, and the missing tables."""
    try:
        # Connections are not pooled, because they break after a fork or a long wait.
        engine = sa.create_engine(url, poolclass=sa.NullPool, **_arguments(url))
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and is_optional(error.name):
            raise missing_extra(f"a catalog in {url.get_backend_name()}", error.name or "") from None
        raise Unsupported(f"catalogs in {url.get_backend_name()}", hint=f"install its driver: {error}") from None
    _create_tables(engine)
    return engine


def _create_tables(engine: sa.Engine) -> None:
    """Create the missing tables. Other processes may create some of them at the same time, which fails here."""
    missing: set[str] | None = None
    while True:
        try:
            METADATA.create_all(engine)
            return
        except DBAPIError:
            previous, missing = missing, METADATA.tables.keys() - set(sa.inspect(engine).get_table_names())
            if missing == previous:
                raise


def _arguments(url: sa.URL) -> dict[str, object]:
    return {"connect_args": {"timeout": 60}} if url.get_backend_name() == "sqlite" else {}


# How a waiting process recognizes a dead owner
#
# A lock is a row, as Java writes it. The row does not show whether its owner lives, so Java waits until it expires.
# On PostgreSQL, an owner keeps its connection open, and its session holds an advisory lock under a drawn number. A
# second row names the number. The same transaction writes both, so they have the same time:
#
#     lock_id                acquired_at        expire_time_seconds
#     jdbc.shop.orders       12:00:00.123456    481                    the lock; Java knows no other row
#     jdbc.shop.orders#90125 12:00:00.123456    481                    its owner holds the advisory lock 90125
#
# The server releases the advisory lock when the connection ends, also after kill -9. A process that can take the number
# knows that the session of the owner ended. It waits a little longer, because an owner that lost only its connection
# may still write. Then it deletes both rows. The owner finds its rows missing, and reports the outcome UNKNOWN.


_FIRST_WAIT_SECONDS = 0.02
_LONGEST_NAME = 230
"""What a row of an owner keeps of the name; the column has 255 characters. The time tells rows of long names apart."""
_DEAD_OWNER_WAIT_SECONDS = 5.0
"""How long the session of an owner must have ended before others take its lock."""
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
    """One use of a lock; after the release, `was_never_lost` says whether the lock was owned all the time."""

    def __init__(self) -> None:
        self.was_never_lost = False


@frozen(eq=False)
class _Owner:
    """What an owner remembers of its lock: when it asked for it, and on PostgreSQL its session and its two rows."""

    since: float
    session: sa.Connection | None = None
    number: int = 0
    acquired_at: datetime | None = None


@frozen
class CatalogLock:
    """Locks by name, as rows of a database."""

    database: Database
    # longest wait for a lock, and the time after which others may take it (`lock-acquire-timeout`)
    timeout_millis: int = 8 * 60 * 1000
    # longest pause between two attempts (`lock-check-max-sleep`)
    longest_wait_millis: int = 8 * 1000

    @contextmanager
    def hold_lock(self, name: str) -> Iterator[LockHold]:
        """Run a block while no other process has the lock of this name; StorageError after the timeout."""
        owner = self._acquire(name)
        hold = LockHold()
        try:
            yield hold
        finally:
            hold.was_never_lost = self._release(name, owner)

    def _release(self, name: str, owner: _Owner) -> bool:
        """Release the lock, and return whether this process owned it until then."""
        try:
            if self._is_expired(owner.since):
                return False
            deleted = self._delete_rows(name, owner)
        except StorageError:
            return False  # the work under the lock is done; the next process deletes the row
        finally:
            if owner.session is not None:
                owner.session.close()
        return deleted > 0 and not self._is_expired(owner.since)

    def _delete_rows(self, name: str, owner: _Owner) -> int:
        """Delete the rows of an owner, and return how many it still had."""
        if owner.session is None:
            with self.database.transaction() as connection:
                return connection.execute(sa.delete(LOCKS).where(LOCKS.c.lock_id == name)).rowcount
        own = (name, _name_owner(name, owner.number))
        with self.database.translate_errors(), owner.session.begin():
            found = sa.delete(LOCKS).where(LOCKS.c.lock_id.in_(own), LOCKS.c.acquired_at == owner.acquired_at)
            return owner.session.execute(found).rowcount

    def _is_expired(self, since: float) -> bool:
        return (time.monotonic() - since) * 1000 >= self.timeout_millis

    def _acquire(self, name: str) -> _Owner:
        """Wait for the lock."""
        start, wait = time.monotonic(), _FIRST_WAIT_SECONDS
        dead: dict[int, float] = {}
        while (owner := self._try(name)) is None:
            self._release_dead_owner(name, dead)
            if self._is_expired(start + _EXTRA_WAIT_SECONDS):
                hint = "its owner is slow or dead: retry, or delete its row in paimon_distributed_locks"
                raise StorageError(
                    self.database.redacted_uri,
                    f"lock {name!r} was not released within {self.timeout_millis / 1000:g} s",
                    hint=hint,
                )
            sleep(wait)
            wait = min(2 * wait, self.longest_wait_millis / 1000)
        return owner

    def _release_dead_owner(self, name: str, dead: dict[int, float]) -> None:
        """Delete the lock of an owner whose session ended a while ago; `dead` has since when, by the owner's number."""
        if self.database.dialect != "postgresql":
            return
        mark = LOCKS.alias()
        marks = sa.select(mark.c.lock_id, mark.c.acquired_at).join(LOCKS, LOCKS.c.acquired_at == mark.c.acquired_at)
        with self.database.transaction() as connection:
            is_of_name = mark.c.lock_id.startswith(_name_owner(name), autoescape=True)
            found = connection.execute(marks.where(LOCKS.c.lock_id == name, is_of_name)).first()
            number = int(found.lock_id.rpartition("#")[2]) if found else 0
            if not found or not connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(number))):
                dead.clear()
            elif time.monotonic() - dead.setdefault(number, time.monotonic()) >= _DEAD_OWNER_WAIT_SECONDS:
                rows = LOCKS.c.lock_id.in_((name, found.lock_id)), LOCKS.c.acquired_at == found.acquired_at
                connection.execute(sa.delete(LOCKS).where(*rows))

    def _try(self, name: str) -> _Owner | None:
        """Take the lock if it is free now. Expired locks are deleted first."""
        since = time.monotonic()
        # Databases count in seconds. One second more: no process takes the lock before this one counts it as lost.
        seconds = self.timeout_millis // 1000 + 1
        is_expired = sa.text(_IS_EXPIRED[self.database.dialect])
        row = sa.insert(LOCKS).values(lock_id=name, expire_time_seconds=seconds)
        try:
            if self.database.dialect == "postgresql":
                return self._try_with_session(name, since, is_expired, row)
            with self.database.transaction() as connection:
                connection.execute(sa.delete(LOCKS).where(LOCKS.c.lock_id == name, is_expired))
                connection.execute(row)
        except IntegrityError:
            return None
        return _Owner(since)

    def _try_with_session(self, name: str, since: float, is_expired: sa.TextClause, row: sa.Insert) -> _Owner:
        """Take the lock with a session that shows that this process lives."""
        number = secrets.randbits(63)
        session = self.database.open_connection()
        with undo_on_failure(session.close), self.database.translate_errors(), session.begin():
            marks = LOCKS.c.lock_id.startswith(_name_owner(name), autoescape=True)
            session.execute(sa.delete(LOCKS).where(sa.or_(LOCKS.c.lock_id == name, marks), is_expired))
            acquired_at = session.scalar(row.returning(LOCKS.c.acquired_at))
            session.execute(row.values(lock_id=_name_owner(name, number)))
            session.execute(sa.select(sa.func.pg_advisory_lock(number)))  # outlasts the transaction
        return _Owner(since, session, number, acquired_at)


def _name_owner(name: str, number: int | None = None) -> str:
    """Return the second row of a lock, which names its owner, or without a number what such rows begin with."""
    return f"{name[:_LONGEST_NAME]}#{'' if number is None else number}"


@frozen(eq=False)
class LockedFiles:
    """A FileIO whose `put_if_absent` runs under the lock of the table that contains the path."""

    inner: FileIO
    lock: CatalogLock = field(repr=False)
    # directory that contains DATABASE.db/TABLE
    warehouse: str
    # first part of the names of locks
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


class LockedDisk(LockedFiles):
    """The same for a storage that waits for the disk: a snapshot in doubt is flushed before it is acknowledged."""

    inner: DeferredFlush  # type: ignore[assignment]

    def create_deferred(self, path: str) -> OutputFile:
        """Begin a file in the inner storage, which its `close` need not make durable."""
        return self.inner.create_deferred(path)

    def flush_and_create(self, deferred: Collection[str], files: Mapping[str, bytes]) -> None:
        """Flush files, and create others, in the inner storage."""
        self.inner.flush_and_create(deferred, files)
