"""Put a new table in the place of another one, in two moves of directories.

Invariant: readers see the old table or the new one. Between the two moves, which follow each other at once, a reader
may see no table. If the second move fails, the old table returns.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
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


def swap_tables(engine: Engine, new: TablePaths, paths: TablePaths) -> None:
    """Move the table at `new` to the place of another one, and delete that one."""
    directories = require_directories(engine)
    old = name_hidden_place(engine, paths, "replaced")
    directories.move_directory(paths.root, old.root)
    with undo_on_failure(lambda: directories.move_directory(old.root, paths.root)):
        directories.move_directory(new.root, paths.root)
    directories.delete_directory(old.root)
