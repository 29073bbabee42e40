"""Directories of tables: what every catalog does to the files.

Law: a directory holds a table iff it has a schema file. It is dropped by moving it out of sight first where the storage
can move directories; elsewhere its schemas go last, so that a drop that was interrupted can be repeated.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from paimon.domain.paths import TablePaths, join
from paimon.ports.files import Directories, FileIO

_COPIED_AT_ONCE = 8 * 1024 * 1024


def is_table(files: FileIO, path: str) -> bool:
    """Whether the directory holds a schema file."""
    return any(s.name.startswith("schema-") for s in files.list(TablePaths(path).schemas))


def make_directory(files: FileIO, path: str, marker: str) -> None:
    """Make a directory; where the storage has none, an empty marker file stands for it."""
    if isinstance(files, Directories):
        files.make_directory(path)
    if files.status(path) is None:
        files.put_if_absent(join(path, marker), b"")


def drop_directory(files: FileIO, path: str) -> None:
    """Remove a directory with all that it holds."""
    if isinstance(files, Directories):
        parent, _, name = path.rpartition("/")
        hidden = join(parent, f".{name}.{uuid.uuid4()}.dropped")
        files.move_directory(path, hidden)
        files.delete_directory(hidden)
    else:
        files.delete(_in_drop_order(files, path))


def move_directory(files: FileIO, source: str, target: str) -> None:
    """Move a directory; where the storage cannot, its files are copied, schemas last."""
    if isinstance(files, Directories):
        files.move_directory(source, target)
        return
    for path in _in_drop_order(files, source):
        with files.open(path) as held, files.create(join(target, path.removeprefix(source))) as copy:
            while piece := held.read(_COPIED_AT_ONCE):
                copy.write(piece)
    drop_directory(files, source)


def _in_drop_order(files: FileIO, path: str) -> list[str]:
    """All files below, those that make it a table last."""
    schemas = TablePaths(path).schemas + "/"
    return sorted(_walk(files, path), key=lambda p: p.startswith(schemas))


def _walk(files: FileIO, path: str) -> Iterator[str]:
    for status in files.list(path):
        if status.is_directory:
            yield from _walk(files, status.path)
        else:
            yield status.path
