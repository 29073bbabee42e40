"""FileSystemCatalogStore: a warehouse directory, ``WAREHOUSE/DATABASE.db/TABLE``.

Law: what the directories say is the catalog: a table exists iff its directory holds a schema file. Source:
`FileSystemCatalog`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from paimon.adapters.catalogs.directories import drop_directory, is_table, make_directory, move_directory
from paimon.domain.errors import AlreadyExists, NotFound
from paimon.domain.paths import join
from paimon.ports.files import FileIO

_SUFFIX = ".db"
_MARKER = "_database"


@frozen(eq=False)
class FileSystemCatalogStore:
    """See `paimon.ports.catalogs.CatalogStore`."""

    files: FileIO
    warehouse: str

    def databases(self) -> Sequence[str]:
        """Names of the directories that end in ``.db``, without it."""
        names = (s.name for s in self.files.list(self.warehouse) if s.is_directory)
        return [n.removesuffix(_SUFFIX) for n in names if n.endswith(_SUFFIX) and not n.startswith(".")]

    def create_database(self, database: str) -> None:
        """Make its directory."""
        path = self.database_location(database)
        if self.files.status(path) is not None:
            raise AlreadyExists("database", database)
        make_directory(self.files, path, _MARKER)

    def drop_database(self, database: str) -> None:
        """Remove it with all that it holds."""
        path = self.database_location(database)
        if self.files.status(path) is None:
            raise NotFound("database", database)
        drop_directory(self.files, path)

    def tables(self, database: str) -> Sequence[str]:
        """Names of its tables."""
        entries = self.files.list(self.database_location(database))
        named = [s for s in entries if s.is_directory and not s.name.startswith(".")]
        return [s.name for s in named if is_table(self.files, s.path)]

    def has_table(self, database: str, table: str) -> bool:
        """Whether its directory holds a schema file."""
        return is_table(self.files, self.table_location(database, table))

    def table_location(self, database: str, table: str) -> str:
        """The directory of a table, whether it exists or not."""
        return join(self.database_location(database), table)

    def register_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Nothing: the schema file says it."""

    def update_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Nothing: the schema file says it."""

    def drop_table(self, database: str, table: str) -> None:
        """Remove a table's directory."""
        drop_directory(self.files, self._existing(database, table))

    def rename_table(self, database: str, table: str, new_database: str, new_table: str) -> None:
        """Move a table's directory."""
        source, target = self._existing(database, table), self.table_location(new_database, new_table)
        if self.files.status(target) is not None:
            raise AlreadyExists("table", f"{new_database}.{new_table}")
        if self.files.status(self.database_location(new_database)) is None:
            raise NotFound("database", new_database)
        move_directory(self.files, source, target)

    def database_location(self, database: str) -> str:
        """The directory of a database, whether it exists or not."""
        return join(self.warehouse, database + _SUFFIX)

    def _existing(self, database: str, table: str) -> str:
        if not self.has_table(database, table):
            raise NotFound("table", f"{database}.{table}")
        return self.table_location(database, table)
