"""FileSystemCatalogStore: a catalog in a warehouse directory, ``WAREHOUSE/DATABASE.db/TABLE``.

Invariant: the directories are the catalog. A table exists if and only if its directory contains a schema file. Source:
`FileSystemCatalog`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from paimon.adapters.catalogs.directories import (
    DATABASE_SUFFIX,
    default_database_path,
    delete_moved_directory,
    drop_directory,
    explain_occupied_name,
    is_table,
    make_database_directory,
    move_directory,
)
from paimon.domain.errors import AlreadyExists, NotFound, Unsupported
from paimon.domain.paths import join_path
from paimon.ports.cancellation import shielded
from paimon.ports.files import FileIO


@frozen(eq=False)
class FileSystemCatalogStore:
    """See `paimon.ports.catalogs.CatalogStore`."""

    files: FileIO
    # root directory, without a slash at the end
    warehouse: str

    def databases(self) -> Sequence[str]:
        """Return the names of the directories that end in ``.db``, without this suffix."""
        names = (s.name for s in self.files.list(self.warehouse) if s.is_directory)
        return [n.removesuffix(DATABASE_SUFFIX) for n in names if n.endswith(DATABASE_SUFFIX) and not n.startswith(".")]

    def create_database(self, database: str, properties: Mapping[str, str] | None = None) -> None:
        """Create the directory of a database. Properties are Unsupported: a directory cannot store them."""
        if properties:
            raise _no_properties()
        path = self.database_location(database)
        if self.files.status(path) is not None:
            raise AlreadyExists("database", database)
        make_database_directory(self.files, path)

    def database_properties(self, database: str) -> Mapping[str, str]:
        """Return the location of a database."""
        path = self.database_location(database)
        if self.files.status(path) is None:
            raise NotFound("database", database)
        return {"location": path}

    def alter_database(self, database: str, properties: Mapping[str, str], removed: Sequence[str]) -> None:
        """Refuse changes: a directory cannot store properties."""
        self.database_properties(database)
        if properties or removed:
            raise _no_properties()

    def drop_database(self, database: str) -> None:
        """Delete the directory of a database with all its content."""
        path = self.database_location(database)
        if self.files.status(path) is None:
            raise NotFound("database", database)
        drop_directory(self.files, path)

    def tables(self, database: str) -> Sequence[str]:
        """Return the names of the directories of a database that contain a schema file."""
        entries = self.files.list(self.database_location(database))
        named = [s for s in entries if s.is_directory and not s.name.startswith(".")]
        return [s.name for s in named if is_table(self.files, s.path)]

    def has_table(self, database: str, table: str) -> bool:
        """Return whether the directory of a table contains a schema file."""
        return is_table(self.files, self.table_location(database, table))

    def table_location(self, database: str, table: str) -> str:
        """Return the directory of a table, whether it exists or not."""
        return join_path(self.database_location(database), table)

    def register_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Do nothing: the schema file makes the table visible, and contains the properties."""

    def update_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Do nothing, because the schema file contains the properties."""

    def drop_table(self, database: str, table: str) -> None:
        """Delete the directory of a table."""
        drop_directory(self.files, self._find_table(database, table))

    def rename_table(self, database: str, table: str, new_database: str, new_table: str) -> None:
        """Move the directory of a table. Anything in the new directory is AlreadyExists."""
        source, target = self._find_table(database, table), self.table_location(new_database, new_table)
        if self.files.status(target) is not None:
            raise AlreadyExists("table", f"{new_database}.{new_table}", hint=explain_occupied_name(self.files, target))
        if self.files.status(self.database_location(new_database)) is None:
            raise NotFound("database", new_database)
        with shielded():  # a stop must not leave two tables
            move_directory(self.files, source, target)
            delete_moved_directory(self.files, source)

    def database_location(self, database: str) -> str:
        """Return the directory of a database, whether it exists or not."""
        return default_database_path(self.warehouse, database)

    def _find_table(self, database: str, table: str) -> str:
        """Return the directory of an existing table, or raise NotFound."""
        if not self.has_table(database, table):
            raise NotFound("table", f"{database}.{table}")
        return self.table_location(database, table)


def _no_properties() -> Unsupported:
    return Unsupported("properties of databases in a filesystem catalog", hint="leave them out, or use metastore=jdbc")
