"""JdbcCatalogStore: databases and tables as rows of a database, in Java's table layout; files in a warehouse.

Law: what the rows say is the catalog; directories follow. Two catalogs may share a database under different keys.
Source: `JdbcCatalog`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy.exc import IntegrityError

from paimon.adapters.catalogs.database import PROPERTIES, TABLE_PROPERTIES, TABLES, Database
from paimon.adapters.catalogs.directories import drop_directory, is_table, make_directory, move_directory
from paimon.domain.errors import AlreadyExists, NotFound
from paimon.domain.paths import check_within, join
from paimon.ports.files import FileIO

_EXISTS = "exists"
_LOCATION = "location"
_MARKER = "_database"
_KEY_LENGTH, _VALUE_LENGTH = 255, 1000
"""What Java's table of properties holds; longer ones are left out."""


@frozen(eq=False)
class JdbcCatalogStore:
    """See `paimon.ports.catalogs.CatalogStore`."""

    files: FileIO
    warehouse: str
    database: Database
    catalog_key: str = "jdbc"
    keeps_properties: bool = True

    def databases(self) -> Sequence[str]:
        """Names of the databases that have properties or tables."""
        known = [sa.select(t.c.database_name).where(t.c.catalog_key == self.catalog_key) for t in (PROPERTIES, TABLES)]
        with self.database.transaction() as connection:
            return list(connection.scalars(sa.union(*known)))

    def create_database(self, database: str) -> None:
        """Insert its properties, then make its directory."""
        location = join(self.warehouse, f"{database}.db")
        rows = [{"property_key": k, "property_value": v} for k, v in ((_EXISTS, "true"), (_LOCATION, location))]
        if database in self.databases():
            raise AlreadyExists("database", database)
        try:
            with self.database.transaction() as connection:
                named = [{"catalog_key": self.catalog_key, "database_name": database, **row} for row in rows]
                connection.execute(sa.insert(PROPERTIES), named)
        except IntegrityError:
            raise AlreadyExists("database", database) from None
        if self.files.status(location) is None:
            make_directory(self.files, location, _MARKER)

    def drop_database(self, database: str) -> None:
        """Delete its rows, then its directory."""
        location = self._database_location(database)
        with self.database.transaction() as connection:
            gone = [
                connection.execute(sa.delete(t).where(self._of(t, database))).rowcount for t in (TABLES, PROPERTIES)
            ]
            connection.execute(sa.delete(TABLE_PROPERTIES).where(self._of(TABLE_PROPERTIES, database)))
        if not any(gone):
            raise NotFound("database", database)
        if self.files.status(location) is not None:
            drop_directory(self.files, location)

    def tables(self, database: str) -> Sequence[str]:
        """Names of its tables."""
        with self.database.transaction() as connection:
            return list(connection.scalars(sa.select(TABLES.c.table_name).where(self._of(TABLES, database))))

    def has_table(self, database: str, table: str) -> bool:
        """Whether there is a row of it."""
        with self.database.transaction() as connection:
            row = connection.execute(sa.select(TABLES.c.table_name).where(self._is(database, table))).first()
        return row is not None

    def table_location(self, database: str, table: str) -> str:
        """Below the location that its database was given; `CorruptTable` where that lies outside the warehouse."""
        return join(self._database_location(database), table)

    def register_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Insert its row, and those of its properties."""
        try:
            with self.database.transaction() as connection:
                connection.execute(sa.insert(TABLES).values(self._row(database, table)))
                self._keep_properties(connection, database, table, properties)
        except IntegrityError:
            raise AlreadyExists("table", f"{database}.{table}") from None

    def update_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Put rows of these properties in the place of those that it has."""
        if not self.keeps_properties:
            return
        with self.database.transaction() as connection:
            if connection.execute(sa.select(TABLES.c.table_name).where(self._is(database, table))).first():
                self._keep_properties(connection, database, table, properties)

    def drop_table(self, database: str, table: str) -> None:
        """Delete its row, then its directory."""
        location = self.table_location(database, table)
        with self.database.transaction() as connection:
            if not connection.execute(sa.delete(TABLES).where(self._is(database, table))).rowcount:
                raise NotFound("table", f"{database}.{table}")
            self._forget_properties(connection, database, table)
        if self.files.status(location) is not None:
            drop_directory(self.files, location)

    def rename_table(self, database: str, table: str, new_database: str, new_table: str) -> None:
        """Change its row and move its directory: where the move fails, the row stays as it was."""
        source, target = self.table_location(database, table), self.table_location(new_database, new_table)
        if new_database not in self.databases():
            raise NotFound("database", new_database)
        changed = sa.update(TABLES).where(self._is(database, table))
        try:
            with self.database.transaction() as connection:
                values = {"database_name": new_database, "table_name": new_table}
                if not connection.execute(changed.values(values)).rowcount:
                    raise NotFound("table", f"{database}.{table}")
                self._forget_properties(connection, new_database, new_table)  # those of one that others dropped
                moved = sa.update(TABLE_PROPERTIES).where(self._is(database, table, TABLE_PROPERTIES))
                connection.execute(moved.values(values))
                if is_table(self.files, source):
                    move_directory(self.files, source, target)
        except IntegrityError:
            raise AlreadyExists("table", f"{new_database}.{new_table}") from None

    def _of(self, table: sa.Table, database: str) -> sa.ColumnElement[bool]:
        return sa.and_(table.c.catalog_key == self.catalog_key, table.c.database_name == database)

    def _is(self, database: str, table: str, rows: sa.Table = TABLES) -> sa.ColumnElement[bool]:
        return sa.and_(self._of(rows, database), rows.c.table_name == table)

    def _row(self, database: str, table: str) -> dict[str, str]:
        return {"catalog_key": self.catalog_key, "database_name": database, "table_name": table}

    def _keep_properties(
        self, connection: sa.Connection, database: str, table: str, properties: Mapping[str, str]
    ) -> None:
        self._forget_properties(connection, database, table)
        told = [
            {**self._row(database, table), "property_key": key, "property_value": value}
            for key, value in properties.items()
            if self.keeps_properties and len(key) <= _KEY_LENGTH and len(value) <= _VALUE_LENGTH
        ]
        if told:
            connection.execute(sa.insert(TABLE_PROPERTIES), told)

    def _forget_properties(self, connection: sa.Connection, database: str, table: str) -> None:
        connection.execute(sa.delete(TABLE_PROPERTIES).where(self._is(database, table, TABLE_PROPERTIES)))

    def _database_location(self, database: str) -> str:
        said = sa.select(PROPERTIES.c.property_value)
        said = said.where(self._of(PROPERTIES, database), PROPERTIES.c.property_key == _LOCATION)
        with self.database.transaction() as connection:
            location = connection.scalar(said)
        if location is None:
            return join(self.warehouse, f"{database}.db")
        path = _local(str(location))
        check_within(path, (self.warehouse,), self.database.shown)
        return path


def _local(location: str) -> str:
    """Java writes local paths as ``file:/…``."""
    return "/" + location.removeprefix("file:").lstrip("/") if location.startswith("file:") else location.rstrip("/")
