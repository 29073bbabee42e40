"""FileSystemCatalogStore: a warehouse directory, ``WAREHOUSE/DATABASE.db/TABLE``.

Law: a table exists iff its directory holds a schema file. A table is dropped by moving it out of sight first where
the storage can move directories; elsewhere its schemas go last, so that a drop that was interrupted can be
repeated. Source: `FileSystemCatalog`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from attrs import frozen

from paimon.domain.errors import AlreadyExists, NotFound
from paimon.domain.paths import TablePaths, join
from paimon.ports.files import Directories, FileIO

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
        """Make its directory; where the storage has none, an empty marker file stands for it."""
        path = self._database(database)
        if self.files.status(path) is not None:
            raise AlreadyExists("database", database)
        if isinstance(self.files, Directories):
            self.files.make_directory(path)
        if self.files.status(path) is None:
            self.files.put_if_absent(join(path, _MARKER), b"")

    def drop_database(self, database: str) -> None:
        """Remove it with all that it holds."""
        path = self._database(database)
        if self.files.status(path) is None:
            raise NotFound("database", database)
        self._drop(path)

    def tables(self, database: str) -> Sequence[str]:
        """Names of its tables."""
        entries = self.files.list(self._database(database))
        return [
            s.name for s in entries if s.is_directory and not s.name.startswith(".") and self._is_table(s.path)
        ]

    def table_location(self, database: str, table: str) -> str:
        """The directory of a table, whether it exists or not."""
        return join(self._database(database), table)

    def drop_table(self, database: str, table: str) -> None:
        """Remove a table's directory."""
        self._drop(self._existing(database, table))

    def rename_table(self, database: str, table: str, new_database: str, new_table: str) -> None:
        """Move a table's directory; where the storage cannot, its files are copied, schemas last."""
        source, target = self._existing(database, table), self.table_location(new_database, new_table)
        if self.files.status(target) is not None:
            raise AlreadyExists("table", f"{new_database}.{new_table}")
        if self.files.status(self._database(new_database)) is None:
            raise NotFound("database", new_database)
        if isinstance(self.files, Directories):
            self.files.move_directory(source, target)
            return
        for path in self._in_drop_order(source):
            with self.files.create(join(target, path.removeprefix(source))) as copy:
                copy.write(self.files.read(path))
        self._drop(source)

    def _database(self, database: str) -> str:
        return join(self.warehouse, database + _SUFFIX)

    def _existing(self, database: str, table: str) -> str:
        path = self.table_location(database, table)
        if not self._is_table(path):
            raise NotFound("table", f"{database}.{table}")
        return path

    def _is_table(self, path: str) -> bool:
        return any(s.name.startswith("schema-") for s in self.files.list(TablePaths(path).schemas))

    def _drop(self, path: str) -> None:
        if isinstance(self.files, Directories):
            parent, _, name = path.rpartition("/")
            hidden = join(parent, f".{name}.{uuid.uuid4()}.dropped")
            self.files.move_directory(path, hidden)
            self.files.delete_directory(hidden)
        else:
            self.files.delete(list(self._in_drop_order(path)))

    def _in_drop_order(self, path: str) -> list[str]:
        """All files below, those that make it a table last."""
        schemas = TablePaths(path).schemas + "/"
        return sorted(self._walk(path), key=lambda p: p.startswith(schemas))

    def _walk(self, path: str) -> Iterator[str]:
        for status in self.files.list(path):
            if status.is_directory:
                yield from self._walk(status.path)
            else:
                yield status.path
