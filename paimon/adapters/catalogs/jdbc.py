"""JdbcCatalogStore: a catalog in a database with Java's table layout, for files in a warehouse.

Invariant: the rows are the catalog, and the directories follow. Catalogs with different keys may share a database.
Source: `JdbcCatalog`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy.exc import IntegrityError

from paimon.adapters.catalogs.directories import (
    default_database_path,
    delete_moved_directory,
    drop_directory,
    is_table,
    make_database_directory,
    move_directory,
)
from paimon.adapters.catalogs.locking import (
    PROPERTIES,
    TABLE_PROPERTIES,
    TABLES,
    CatalogLock,
    Database,
    LockedDisk,
    LockedFiles,
)
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound
from paimon.domain.options.parse import parse_bool, parse_duration_millis
from paimon.domain.paths import check_within, join_path
from paimon.ports.files import DeferredFlush, FileIO

_EXISTS = "exists"
_LOCATION = "location"
_KEY_LENGTH, _VALUE_LENGTH = 255, 1000
"""The sizes of the columns in Java's layout. Longer properties are left out."""


@frozen(eq=False)
class JdbcCatalogStore:
    """See `paimon.ports.catalogs.CatalogStore`."""

    files: FileIO
    # root directory, without a slash at the end
    warehouse: str
    database: Database
    # value of the column `catalog_key` in all rows of this catalog
    catalog_key: str = "jdbc"
    # whether the database gets a copy of the table options (`sync-all-properties`)
    sync_properties: bool = True

    def databases(self) -> Sequence[str]:
        """Return the names of the databases that have properties or tables."""
        known = [sa.select(t.c.database_name).where(t.c.catalog_key == self.catalog_key) for t in (PROPERTIES, TABLES)]
        with self.database.transaction() as connection:
            return list(connection.scalars(sa.union(*known)))

    def create_database(self, database: str, properties: Mapping[str, str] | None = None) -> None:
        """Insert the properties of a database, none longer than Java's columns, then create its directory."""
        location = default_database_path(self.warehouse, database)
        _check_lengths(properties or {})
        texts = {_EXISTS: "true", _LOCATION: location, **(properties or {})}
        if database in self.databases():
            raise AlreadyExists("database", database)
        try:
            with self.database.transaction() as connection:
                connection.execute(sa.insert(PROPERTIES), self._property_rows(database, texts))
        except IntegrityError:
            raise AlreadyExists("database", database) from None
        if self.files.status(location) is None:
            make_database_directory(self.files, location)

    def database_properties(self, database: str) -> Mapping[str, str]:
        """Return the rows of the properties of a database."""
        columns = sa.select(PROPERTIES.c.property_key, PROPERTIES.c.property_value)
        with self.database.transaction() as connection:
            rows = connection.execute(columns.where(self._in_database(PROPERTIES, database))).all()
        if not rows and database not in self.databases():
            raise NotFound("database", database)
        found = {key: value for key, value in rows if key != _EXISTS}
        return {_LOCATION: default_database_path(self.warehouse, database), **found}

    def alter_database(self, database: str, properties: Mapping[str, str], removed: Sequence[str]) -> None:
        """Replace and delete properties of a database in one transaction; refuse ones longer than Java's columns."""
        _check_lengths(properties)
        if database not in self.databases():
            raise NotFound("database", database)
        changed = PROPERTIES.c.property_key.in_([*properties, *removed])
        with self.database.transaction() as connection:
            connection.execute(sa.delete(PROPERTIES).where(self._in_database(PROPERTIES, database), changed))
            if properties:
                connection.execute(sa.insert(PROPERTIES), self._property_rows(database, properties))

    def drop_database(self, database: str) -> None:
        """Delete the rows of a database, then its directory."""
        location = self._database_location(database)
        with self.database.transaction() as connection:
            deleted = [
                connection.execute(sa.delete(t).where(self._in_database(t, database))).rowcount
                for t in (TABLES, PROPERTIES)
            ]
            connection.execute(sa.delete(TABLE_PROPERTIES).where(self._in_database(TABLE_PROPERTIES, database)))
        if not any(deleted):
            raise NotFound("database", database)
        if self.files.status(location) is not None:
            drop_directory(self.files, location)

    def tables(self, database: str) -> Sequence[str]:
        """Return the names of the tables of a database."""
        with self.database.transaction() as connection:
            return list(connection.scalars(sa.select(TABLES.c.table_name).where(self._in_database(TABLES, database))))

    def has_table(self, database: str, table: str) -> bool:
        """Return whether the table has a row."""
        with self.database.transaction() as connection:
            row = connection.execute(sa.select(TABLES.c.table_name).where(self._is_table(database, table))).first()
        return row is not None

    def table_location(self, database: str, table: str) -> str:
        """Return a directory below the database's location; CorruptTable if that is outside the warehouse."""
        return join_path(self._database_location(database), table)

    def register_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Insert the row of a table and its properties, without those that are longer than Java's columns."""
        try:
            with self.database.transaction() as connection:
                connection.execute(sa.insert(TABLES).values(self._row(database, table)))
                self._replace_properties(connection, database, table, properties)
        except IntegrityError:
            raise AlreadyExists("table", f"{database}.{table}") from None

    def update_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Replace the properties of a table, except those longer than Java's columns; no error without a row."""
        if not self.sync_properties:
            return
        with self.database.transaction() as connection:
            if connection.execute(sa.select(TABLES.c.table_name).where(self._is_table(database, table))).first():
                self._replace_properties(connection, database, table, properties)

    def drop_table(self, database: str, table: str) -> None:
        """Delete the rows of a table, then its directory."""
        location = self.table_location(database, table)
        with self.database.transaction() as connection:
            if not connection.execute(sa.delete(TABLES).where(self._is_table(database, table))).rowcount:
                raise NotFound("table", f"{database}.{table}")
            self._delete_properties(connection, database, table)
        if self.files.status(location) is not None:
            drop_directory(self.files, location)

    def rename_table(self, database: str, table: str, new_database: str, new_table: str) -> None:
        """Rename a table, and move its directory; a failed move undoes it, and a used name raises AlreadyExists."""
        source, target = self.table_location(database, table), self.table_location(new_database, new_table)
        if new_database not in self.databases():
            raise NotFound("database", new_database)
        try:
            with self.database.transaction() as connection:
                names = {"database_name": new_database, "table_name": new_table}
                if not connection.execute(self._update_rows(TABLES, database, table).values(names)).rowcount:
                    raise NotFound("table", f"{database}.{table}")
                # A dropped table of this name may have left some.
                self._delete_properties(connection, new_database, new_table)
                connection.execute(self._update_rows(TABLE_PROPERTIES, database, table).values(names))
                if is_moved := is_table(self.files, source):
                    move_directory(self.files, source, target)
        except IntegrityError:
            raise AlreadyExists("table", f"{new_database}.{new_table}") from None
        if is_moved:
            delete_moved_directory(self.files, source)

    def _property_rows(self, database: str, properties: Mapping[str, str]) -> list[dict[str, str]]:
        place = {"catalog_key": self.catalog_key, "database_name": database}
        return [{**place, "property_key": key, "property_value": value} for key, value in properties.items()]

    def _in_database(self, table: sa.Table, database: str) -> sa.ColumnElement[bool]:
        return sa.and_(table.c.catalog_key == self.catalog_key, table.c.database_name == database)

    def _is_table(self, database: str, table: str, rows: sa.Table = TABLES) -> sa.ColumnElement[bool]:
        return sa.and_(self._in_database(rows, database), rows.c.table_name == table)

    def _update_rows(self, rows: sa.Table, database: str, table: str) -> sa.Update:
        return sa.update(rows).where(self._is_table(database, table, rows))

    def _row(self, database: str, table: str) -> dict[str, str]:
        return {"catalog_key": self.catalog_key, "database_name": database, "table_name": table}

    def _replace_properties(
        self, connection: sa.Connection, database: str, table: str, properties: Mapping[str, str]
    ) -> None:
        self._delete_properties(connection, database, table)
        rows = [
            {**self._row(database, table), "property_key": key, "property_value": value}
            for key, value in properties.items()
            if self.sync_properties and len(key) <= _KEY_LENGTH and len(value) <= _VALUE_LENGTH
        ]
        if rows:
            connection.execute(sa.insert(TABLE_PROPERTIES), rows)

    def _delete_properties(self, connection: sa.Connection, database: str, table: str) -> None:
        connection.execute(sa.delete(TABLE_PROPERTIES).where(self._is_table(database, table, TABLE_PROPERTIES)))

    def _database_location(self, database: str) -> str:
        found = sa.select(PROPERTIES.c.property_value)
        found = found.where(self._in_database(PROPERTIES, database), PROPERTIES.c.property_key == _LOCATION)
        with self.database.transaction() as connection:
            location = connection.scalar(found)
        if location is None:
            return default_database_path(self.warehouse, database)
        path = _to_local_path(str(location))
        check_within(path, (self.warehouse,), self.database.redacted_uri)
        return path


def _check_lengths(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        if len(key) > _KEY_LENGTH or len(value) > _VALUE_LENGTH:
            raise InvalidRequest(
                f"Property {key[:40]!r} of a database is too long.",
                subject=key[:40],
                hint=f"use at most {_KEY_LENGTH} characters for its name, and {_VALUE_LENGTH} for its value",
            )


def _to_local_path(location: str) -> str:
    """Return a location without the scheme ``file:``, which Java writes for local paths."""
    return "/" + location.removeprefix("file:").lstrip("/") if location.startswith("file:") else location.rstrip("/")


# Create a JDBC catalog from Java's catalog options.
#
# Invariant: the same options give the same catalog in Java and here. A local warehouse needs none, because it has an
# embedded SQLite database. Source: `CatalogOptions`, `JdbcCatalogFactory`.


_URI = "uri"
_KEY = "catalog-key"
_TIMEOUT = "lock-acquire-timeout"
_LONGEST_WAIT = "lock-check-max-sleep"
_PROPERTIES = "sync-all-properties"
_EMBEDDED = "paimon-catalog.sqlite"


def jdbc_store(files: FileIO, warehouse: str, options: Mapping[str, str]) -> JdbcCatalogStore:
    """Create the store of the databases and tables from checked catalog options, without a connection yet."""
    sync_properties = parse_bool(options.get(_PROPERTIES, "true"), _PROPERTIES)
    return JdbcCatalogStore(files, warehouse, _database(files, warehouse, options), _key(options), sync_properties)


def locked_files(files: FileIO, warehouse: str, options: Mapping[str, str]) -> LockedFiles:
    """Wrap the storage so that files are created under the lock of the catalog. No connection is opened yet."""
    timeout = parse_duration_millis(options.get(_TIMEOUT, "8 min"), _TIMEOUT)
    longest = parse_duration_millis(options.get(_LONGEST_WAIT, "8 s"), _LONGEST_WAIT)
    lock = CatalogLock(_database(files, warehouse, options), timeout, longest)
    locked = LockedDisk if isinstance(files, DeferredFlush) else LockedFiles
    return locked(files, lock, warehouse, _key(options))


def _key(options: Mapping[str, str]) -> str:
    return options.get(_KEY, "jdbc")


def _database(files: FileIO, warehouse: str, options: Mapping[str, str]) -> Database:
    uri = options.get(_URI)
    if uri is None:
        if "://" in warehouse:
            hint = "set it, for example to postgresql://host/database; only local warehouses have an embedded database"
            raise InvalidRequest(f"JDBC catalog of {warehouse!r} needs the option 'uri'", subject=_URI, hint=hint)
        if files.status(warehouse) is None:
            files.replace(join_path(warehouse, _EMBEDDED), b"")
        uri = f"sqlite:///{join_path(warehouse, _EMBEDDED)}"
    return Database(uri, options.get("jdbc.user"), options.get("jdbc.password"))
