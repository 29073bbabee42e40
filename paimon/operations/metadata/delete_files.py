"""Delete files of a table, and drop them from the cache.

Invariant: a file that is deleted through this module is no longer cached by the engine. The cache of a long-lived
process contains only what the table contains.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.ports.engine import Engine


def delete_files(engine: Engine, paths: Sequence[str]) -> None:
    """Delete files and drop them from the engine's cache.

    Parameters
    ----------
    engine : Engine
        Has the storage and the cache.
    paths : sequence of str
        Files, or empty directories; missing ones are no error.

    Raises
    ------
    StorageError
        Not all were deleted. None of them is cached any more.
    """
    engine.cache.drop(paths)
    engine.files.delete(paths)
