"""Put metadata files whose names may be taken, delete files and drop them from the cache, and copy files as streams.

Invariant: what a caller deletes after a put, it deletes after the new file is durable. A file that is deleted through
this module is no longer cached by the engine. The cache of a long-lived process contains only what the table contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paimon.domain.errors import NotFound, StorageError
from paimon.domain.json_text import SCHEMA_FILE
from paimon.ports.engine import Engine
from paimon.ports.files import DeferredFlush, FileIO, PutOutcome


def put_file(files: FileIO, path: str, data: bytes) -> bool:
    """Put a file if it is absent; return False if another file has its name.

    If the storage reports that the file exists, or nothing, the content decides: an earlier request may have put it.
    Raises StorageError if the file is visible but not durable.
    """
    outcome = files.put_if_absent(path, data)
    check_flushed(path, outcome)
    if outcome is PutOutcome.CREATED:
        return True
    try:
        if files.read(path, SCHEMA_FILE.max_bytes) != data:
            return False
        flush_found(files, path)
    except NotFound as error:
        raise StorageError(path, "the storage does not show whether the file was written", hint="try again") from error
    return True


def check_flushed(path: str, outcome: PutOutcome) -> None:
    """Raise StorageError if a put made a file visible that a power loss may take."""
    if outcome is PutOutcome.NOT_DURABLE:
        reason = "the file is visible, but the storage failed to flush it to disk"
        raise StorageError(path, reason, hint="look whether the file is there, once the storage is repaired")


def flush_found(files: FileIO, path: str) -> None:
    """Flush a file that was found instead of put: the flush of the call that put it may have failed."""
    if isinstance(files, DeferredFlush):
        files.flush_and_create([path], {})


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


_PIECE_BYTES = 8 * 1024 * 1024


def copy_stream(source: FileIO, path: str, target: FileIO, target_path: str) -> int:
    """Copy a file piece by piece, and return its size in bytes; the copy is visible when it is complete."""
    with source.open(path) as reader:
        size = reader.size()
        with target.create(target_path) as sink:
            while piece := reader.read(_PIECE_BYTES):
                sink.write(piece)
            if sink.tell() != size:
                raise StorageError(path, f"has {size} bytes, and {sink.tell()} were read")
    return int(size)
