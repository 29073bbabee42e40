"""Create, move and delete the directories of databases and tables, for every catalog.

Invariant: a directory is a table if and only if it contains a schema file. Where the storage can move directories, a
dropped one is first moved to a hidden name. Elsewhere its schema files are deleted last, so that an interrupted drop
can be repeated.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator

from paimon.domain.paths import TablePaths, join_path
from paimon.ports.files import Directories, FileIO

DATABASE_SUFFIX = ".db"
_DATABASE_MARKER = "_database"
_COPY_BYTES = 8 * 1024 * 1024


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
        files.delete(_list_in_drop_order(files, path))


def move_directory(files: FileIO, source: str, target: str) -> None:
    """Move a directory to a path where nothing exists.

    A storage without directories gets copies of the files, the schema files last. Then the source is deleted. A copied
    schema file ends with one more line break, so that it is the schema of another table for commits in progress: the
    copy lacks the files that they write meanwhile, also if the table is renamed back before they are published.
    """
    if isinstance(files, Directories):
        files.move_directory(source, target)
        return
    references = [p for p in _list_recursively(files, source) if _is_reference(p.removeprefix(source))]
    _copy_files(files, references, source, target)
    # Files are written before what references them. So this second list has all files that the copied ones reference.
    others = [p for p in _list_in_drop_order(files, source) if not _is_reference(p.removeprefix(source))]
    _copy_files(files, others, source, target)
    drop_directory(files, source)


def _is_reference(path: str) -> bool:
    """Return whether a file of a table, by its path below the directory, references manifests."""
    return any(f"/{folder}/" in path for folder in ("snapshot", "tag", "changelog"))


def _copy_files(files: FileIO, paths: Iterable[str], source: str, target: str) -> None:
    for path in paths:
        name = path.removeprefix(source)
        with files.open(path) as original, files.create(join_path(target, name)) as copy:
            while piece := original.read(_COPY_BYTES):
                copy.write(piece)
            if "/schema/schema-" in name:
                copy.write(b"\n")


def _list_in_drop_order(files: FileIO, path: str) -> list[str]:
    """List all files below a directory, the schema files last."""
    schemas = TablePaths(path).schemas + "/"
    return sorted(_list_recursively(files, path), key=lambda p: p.startswith(schemas))


def _list_recursively(files: FileIO, path: str) -> Iterator[str]:
    """Yield the paths of all files below a directory."""
    for status in files.list(path):
        if status.is_directory:
            yield from _list_recursively(files, status.path)
        else:
            yield status.path
