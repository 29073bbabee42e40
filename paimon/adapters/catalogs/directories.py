"""Create, move and delete the directories of databases and tables, for every catalog.

Invariant: a directory is a table if and only if it contains a schema file. Where the storage can move directories, a
dropped one is first moved to a hidden name. Elsewhere files are copied and deleted.
"""

from __future__ import annotations

import uuid

from paimon.adapters.catalogs.copied_directories import copy_table, delete_copied_table, delete_directory
from paimon.domain.paths import TablePaths, join_path
from paimon.ports.files import Directories, FileIO

DATABASE_SUFFIX = ".db"
_DATABASE_MARKER = "_database"


def is_table(files: FileIO, path: str) -> bool:
    """Return whether the directory contains a schema file."""
    return any(s.name.startswith("schema-") for s in files.list(TablePaths(path).schemas))


def default_database_path(warehouse: str, database: str) -> str:
    """Return the directory of a database in a warehouse, ``WAREHOUSE/DATABASE.db``."""
    return join_path(warehouse, database + DATABASE_SUFFIX)


def make_database_directory(files: FileIO, path: str) -> None:
    """Create a directory, or an empty marker file in it where the storage has no directories. Idempotent."""
    if isinstance(files, Directories):
        files.make_directory(path)
    if files.status(path) is None:
        files.put_if_absent(join_path(path, _DATABASE_MARKER), b"")


def drop_directory(files: FileIO, path: str) -> None:
    """Delete a directory with all its content."""
    if isinstance(files, Directories):
        parent, _, name = path.rpartition("/")
        hidden = join_path(parent, f".{name}.{uuid.uuid4()}.dropped")
        files.move_directory(path, hidden)
        files.delete_directory(hidden)
    else:
        delete_directory(files, path)


def move_directory(files: FileIO, source: str, target: str) -> None:
    """Move a table's directory to a new path; a storage without directories needs `delete_moved_directory` after."""
    if isinstance(files, Directories):
        files.move_directory(source, target)
    else:
        copy_table(files, source, target)


def delete_moved_directory(files: FileIO, source: str) -> None:
    """Delete what a move by copies left of a table."""
    if not isinstance(files, Directories):
        delete_copied_table(files, source)
