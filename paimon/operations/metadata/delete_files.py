"""Delete files of a table and drop them from the cache, and undo the effects of a block that fails.

Invariant: a file that is deleted through this module is no longer cached by the engine. The cache of a long-lived
process contains only what the table contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paimon.ports.engine import Engine

_CHUNK_FILES = 1_000
"""Files that one task deletes."""


def delete_files(engine: Engine, paths: Sequence[str]) -> None:
    """Delete files on the executor, and from the cache; StorageError if some stay. Missing ones are fine."""
    engine.cache.drop(paths)
    if len(paths) <= _CHUNK_FILES:
        engine.files.delete(paths)
        return
    chunks = [paths[start : start + _CHUNK_FILES] for start in range(0, len(paths), _CHUNK_FILES)]
    done = 0
    for count in engine.executor.map(partial(_delete_chunk, engine), chunks):
        done += count
        engine.observer.progress("deleting files", done, len(paths))


def delete_empty_directories(engine: Engine, directory: str) -> None:
    """Delete a directory and those below it, as far as they contain no file."""
    for status in engine.files.list(directory):
        if status.is_directory:
            delete_empty_directories(engine, status.path)
    engine.files.delete([directory])


def _delete_chunk(engine: Engine, paths: Sequence[str]) -> int:
    """Delete files, and return their number."""
    engine.files.delete(paths)
    return len(paths)
