"""Connect to the database of a JDBC catalog, create its tables in Java's layout, and translate its errors.

Invariant: the first process that connects creates the missing tables; only the connection contains the password.
Source: `JdbcUtils`, `AbstractDistributedLockDialect`.
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
from paimon.domain.secrets import redact_secrets, remove_password

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
