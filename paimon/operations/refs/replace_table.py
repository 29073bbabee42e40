"""Put a new table in the place of another one, in two moves of directories.

Invariant: readers see the old table or the new one. Between the two moves, which follow each other at once, a reader
may see no table. If the second move fails, the old table returns. If the process dies between them, there is no table:
the old one is in the hidden directory `.NAME.UUID.replaced` next to its place, and can be moved back.
"""

from __future__ import annotations

from paimon.domain.errors import PaimonError, StorageError, Unsupported
from paimon.domain.paths import TablePaths
from paimon.domain.undo import undo_on_failure
from paimon.ports.engine import Engine
from paimon.ports.files import Directories


def require_directories(engine: Engine) -> Directories:
    """Return the directories of the storage; `Unsupported` for object stores and JDBC catalogs."""
    if not isinstance(engine.files, Directories):
        hint = "drop the table first, or overwrite its rows"
        raise Unsupported("replacing a table where files cannot be moved with their directory", hint=hint)
    return engine.files


def name_hidden_place(engine: Engine, paths: TablePaths, why: str) -> TablePaths:
    """Return a place next to a table that no catalog lists."""
    parent, _, name = paths.root.rpartition("/")
    return TablePaths(f"{parent}/.{name}.{engine.ids.uuid()}.{why}")


def swap_tables(engine: Engine, new: TablePaths, paths: TablePaths) -> TablePaths:
    """Move the table at `new` to the place of another one, and return the hidden place of that one, to delete."""
    directories = require_directories(engine)
    old = name_hidden_place(engine, paths, "replaced")
    directories.move_directory(paths.root, old.root)
    with undo_on_failure(lambda: _move_back(directories, old, paths)):
        directories.move_directory(new.root, paths.root)
    return old


def _move_back(directories: Directories, old: TablePaths, paths: TablePaths) -> None:
    try:
        directories.move_directory(old.root, paths.root)
    except PaimonError as error:
        raise StorageError(old.root, "has the replaced table; move it back") from error
