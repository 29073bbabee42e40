"""Deletion of a table's files, together with what is cached of them.

Invariant: what an operation deletes through here is no longer cached by its engine, so the cache of a long-lived
process holds what the table holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.ports.engine import Engine


def delete_files(engine: Engine, paths: Sequence[str]) -> None:
    """Delete files and drop them from the engine's cache.

    Parameters
    ----------
    engine : Engine
        Whose storage and cache they are in.
    paths : sequence of str
        Files, or directories that are empty; missing ones are no error.

    Raises
    ------
    StorageError
        Not all were deleted. None of them is cached any more.
    """
    engine.cache.drop(paths)
    engine.files.delete(paths)
