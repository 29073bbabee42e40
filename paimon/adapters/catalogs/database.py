"""The database of a JDBC catalog: its tables as Java's Paimon lays them out, and errors in our words.

Law: the tables are made where they are missing, by whoever comes first; a password is in the connection alone. Source:
`JdbcUtils`, `AbstractDistributedLockDialect`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import lru_cache

import sqlalchemy as sa
from attrs import field, frozen
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from paimon.domain.errors import InvalidRequest, StorageError, Unsupported
from paimon.domain.extras import is_optional, missing_extra
from paimon.domain.secrets import redacted, without_password

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
    """Where a catalog is kept.

    Parameters
    ----------
    uri : str
        A URL of SQLAlchemy (``sqlite:///file``, ``postgresql://host/db``) or of JDBC (``jdbc:postgresql://host/db``).
    user, password : str, optional
        By default what the URL or the environment of the driver says.
    """

    uri: str = field(repr=lambda uri: repr(redacted(uri, {})))
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[type[Database], tuple[str, str | None]]:
        return Database, (without_password(self.uri), self.user)

    @property
    def shown(self) -> str:
        """The URI without user and password."""
        return redacted(self.uri, {})

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """A connection whose changes are made at the end of the block, or not at all."""
        with self.errors():
            engine = _engine(_url(self))
            with engine.begin() as connection:
                yield connection

    @property
    def dialect(self) -> str:
        """``sqlite``, ``postgresql``, ``mysql`` or ``mariadb``."""
        return _url(self).get_backend_name()

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn the driver's errors into StorageError; IntegrityError is the caller's own."""
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            told = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
            reason = (str(told).strip().splitlines() or [type(told).__name__])[0]
            reason = redacted(reason, {"password": self.password} if self.password else {})
            hint = "check that the database of the catalog runs and lets this user in"
            raise StorageError(self.shown, reason, hint=hint) from None


def _url(database: Database) -> sa.URL:
    text = re.sub(r"^jdbc:", "", database.uri)
    text = re.sub(r"^sqlite:(?!//)", "sqlite:///", text)
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        hint = "give a URL such as sqlite:////path/catalog.sqlite or postgresql://host/database"
        raise InvalidRequest("the uri of the catalog is no database URL", subject="uri", hint=hint) from None
    if url.drivername in _DRIVERS:
        url = url.set(drivername=_DRIVERS[url.drivername])
    if url.get_backend_name() == "sqlite":
        return url  # a file has no users
    if database.user is not None:
        url = url.set(username=database.user)
    return url if database.password is None else url.set(password=database.password)


@lru_cache(maxsize=64)
def _engine(url: sa.URL) -> sa.Engine:
    """One pool a process and database; its tables are there afterwards."""
    try:
        # Connections are not kept: a process that forks, or waits for long, finds none that is broken.
        engine = sa.create_engine(url, poolclass=sa.NullPool, **_arguments(url))
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and is_optional(error.name):
            raise missing_extra(f"a catalog in {url.get_backend_name()}", error.name or "") from None
        raise Unsupported(f"catalogs in {url.get_backend_name()}", hint=f"install its driver: {error}") from None
    for attempt in (1, 2):
        try:
            METADATA.create_all(engine)
            break
        except DBAPIError:
            if attempt == 2:
                raise  # the first may have met another that made the same tables
    return engine


def _arguments(url: sa.URL) -> dict[str, object]:
    return {"connect_args": {"timeout": 60}} if url.get_backend_name() == "sqlite" else {}
