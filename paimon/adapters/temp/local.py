"""LocalTempStore: a TempStore of Arrow IPC files in a local directory of this process (`ProcessDirectory`).

Invariant: the directory is created with the first file, is readable by this user only, and is removed when the store or
the process ends. The next process that creates its own directory removes those of killed processes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.undo import undo_on_failure
from paimon.ports.temp import JoinedBatch, StoredTable, to_temp_error

_CHUNK_BYTES = 256 * 1024
"""The size of a stored batch. Many spilled tables are read concurrently, with one batch of each in memory."""


class LocalTempStore:
    """See `paimon.ports.temp.TempStore`; files are below `parent`, with the codec ``"lz4"``, ``"zstd"`` or None."""

    def __init__(self, parent: str | None = None, compression: str | None = "lz4") -> None:
        self._parent = parent
        self._options = pa.ipc.IpcWriteOptions(compression=compression)
        self._directory: ProcessDirectory | None = None
        self._lock = threading.Lock()

    def abandon(self, _: Callable[[object], None]) -> None:
        """Leave the directory to the parent process; called in a forked child."""
        self._directory, self._lock = None, threading.Lock()

    def spill(self, table: pa.Table) -> str:
        """Write a table as one file, and return its path."""
        handle = self._new_handle("spill")
        try:
            with pa.OSFile(handle, "wb") as sink, pa.ipc.new_file(sink, table.schema, options=self._options) as writer:
                rows = max(1, table.num_rows * _CHUNK_BYTES // max(1, table.nbytes))
                writer.write_table(table, max_chunksize=rows)
        except OSError as error:
            self.drop(handle)
            raise to_temp_error(handle, "rows cannot be spilled", error) from error
        return handle

    def load(self, handle: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a spilled table in batches of at most `batch_rows`."""
        try:
            with pa.OSFile(handle) as source:  # pages of a memory map would count as memory of the process
                reader = pa.ipc.open_file(source)
                for index in range(reader.num_record_batches):
                    batch = reader.get_batch(index)
                    for start in range(0, batch.num_rows, batch_rows):
                        yield batch.slice(start, batch_rows)
        except OSError as error:
            raise to_temp_error(handle, "spilled rows cannot be read", error) from error

    def store(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, max_bytes: int) -> StoredTable | None:
        """Write batches uncompressed, to be mapped; None, and nothing on disk, if they exceed `max_bytes`."""
        handle = self._new_handle("stored")
        written = 0
        try:
            with undo_on_failure(lambda: self.drop(handle)):
                with pa.OSFile(handle, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
                    for batch in batches:
                        written += batch.nbytes
                        if written > max_bytes:
                            break
                        writer.write_batch(batch)
                size = os.stat(handle).st_size
        except OSError as error:
            raise to_temp_error(handle, "rows cannot be written", error) from error
        if max(written, size) > max_bytes:
            self.drop(handle)
            return None
        return StoredTable(handle, size)

    def map_batches(self, handle: str) -> Sequence[pa.RecordBatch]:
        """Return the stored batches as memory-mapped arrays."""
        try:
            with pa.memory_map(handle) as source:
                reader = pa.ipc.open_file(source)
                return [reader.get_batch(index) for index in range(reader.num_record_batches)]
        except (OSError, pa.ArrowInvalid) as error:
            raise to_temp_error(handle, "rows cannot be read", error) from error

    def store_joined(self, batches: Sequence[pa.RecordBatch]) -> JoinedBatch:
        """Write batches of one schema as one, without a copy in memory where the columns allow it."""
        if not can_join_columns(batches):
            stored = self.store([pa.concat_batches(batches)], batches[0].schema, sys.maxsize)
            assert stored is not None
            return JoinedBatch(stored.handle, self.map_batches(stored.handle)[0])
        handle = self._new_handle("joined")
        try:
            with pa.OSFile(handle, "wb") as sink:
                joined = write_joined_columns(sink, batches)
            return JoinedBatch(handle, map_joined_columns(handle, joined))
        except OSError as error:
            self.drop(handle)
            raise to_temp_error(handle, "rows cannot be stored", error) from error

    def drop(self, handle: str) -> None:
        """Delete the file, if it exists."""
        if os.path.exists(handle):
            os.unlink(handle)

    def _new_handle(self, kind: str) -> str:
        return os.path.join(self._find_directory(), f"{kind}-{uuid.uuid4()}.arrow")

    def _find_directory(self) -> str:
        """Return the directory of this store, and create it at the first call."""
        with self._lock:
            if self._directory is None:
                try:
                    self._directory = ProcessDirectory(self._parent)
                except OSError as error:
                    place = error.filename or self._parent or "TMPDIR"
                    raise to_temp_error(place, "a temporary directory cannot be created", error) from error
                weakref.finalize(self, self._directory.remove)
            return self._directory.path


# Write batches as one batch whose columns are mapped: each value is copied once, from the batches to the file.
#
# Columns without null of fixed-width values, text or binary values can be written so. Arrow's own file format needs
# each column as one array, which would be a second copy in memory.


_ALIGNMENT = 64
_MOST_TEXT_BYTES = 2**31 - 1
"""The size of the values of one array of text, whose offsets have 32 bits."""


class JoinedColumns(NamedTuple):
    """The layout of a file of `write_joined_columns`."""

    schema: pa.Schema
    rows: int
    # where each buffer ends in the file, padding included; it starts where the one before it ends
    ends: list[int]


def can_join_columns(batches: Sequence[pa.RecordBatch]) -> bool:
    """Return whether all columns of the batches can be written by `write_joined_columns`."""
    return all(
        _can_join([batch.column(place) for batch in batches], kind)
        for place, kind in enumerate(batches[0].schema.types)
    )


def write_joined_columns(sink: pa.NativeFile, batches: Sequence[pa.RecordBatch]) -> JoinedColumns:
    """Write the rows of batches, at least one, that `can_join_columns` accepts, for `map_joined_columns`."""
    ends: list[int] = []
    for place, kind in enumerate(batches[0].schema.types):
        columns = [batch.column(place) for batch in batches]
        if _is_text(kind):
            ends.append(_write_buffers(sink, [_join_offsets(columns)]))
            ends.append(_write_buffers(sink, map(_text_bytes, columns)))
        else:
            width = kind.bit_width // 8
            ends.append(_write_buffers(sink, (c.buffers()[1].slice(c.offset * width, len(c) * width) for c in columns)))
    return JoinedColumns(batches[0].schema, sum(batch.num_rows for batch in batches), ends)


def map_joined_columns(path: str, joined: JoinedColumns) -> pa.RecordBatch:
    """Return the rows of a file of `write_joined_columns` as memory-mapped arrays."""
    with pa.memory_map(path) as source:
        whole = source.read_buffer(joined.ends[-1])
    buffers = iter([whole.slice(start, end - start) for start, end in pairwise([0, *joined.ends])])
    arrays = [
        pa.Array.from_buffers(
            kind, joined.rows, [None, *(next(buffers) for _ in range(1 + _is_text(kind)))], null_count=0
        )
        for kind in joined.schema.types
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=joined.schema)


def _can_join(columns: Sequence[pa.Array], kind: pa.DataType) -> bool:
    if any(column.null_count or not len(column) for column in columns):
        return False
    if _is_text(kind):
        return sum(len(_text_bytes(column)) for column in columns) <= _MOST_TEXT_BYTES
    is_fixed = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    return bool(is_fixed and kind.bit_width % 8 == 0)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _offsets(column: pa.Array) -> npt.NDArray[np.int32]:
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]


def _text_bytes(column: pa.Array) -> pa.Buffer:
    """Return the values of a column, one after the other."""
    offsets = _offsets(column)
    return (column.buffers()[2] or pa.py_buffer(b"")).slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _join_offsets(columns: Sequence[pa.Array]) -> npt.NDArray[np.int32]:
    """Return the offsets of the values of all columns."""
    joined = np.zeros(sum(map(len, columns)) + 1, np.int32)
    start = 1
    for column in columns:
        offsets = _offsets(column)
        np.add(offsets[1:], joined[start - 1] - offsets[0], out=joined[start : start + len(column)])
        start += len(column)
    return joined


def _write_buffers(sink: pa.NativeFile, buffers: Iterable[pa.Buffer | npt.NDArray[np.int32]]) -> int:
    """Write buffers and the padding after them, and return the size of the file."""
    for buffer in buffers:
        sink.write(buffer)
    sink.write(bytes(-sink.tell() % _ALIGNMENT))
    return int(sink.tell())


# ProcessDirectory: a directory that exists as long as its process, however the process ends.
#
# Invariant: a process locks its directory. A process that creates one removes the directories of the same user that no
# process locks, because a killed process cannot remove its own. Without file locks (outside Unix), only processes that
# end normally remove their directories.


with contextlib.suppress(ImportError):  # Windows has no such locks
    import fcntl


_HAS_LOCKS = "fcntl" in globals()
_PREFIX = "paimon-temp-"
_LOCK = "owner.lock"
_YOUNG_SECONDS = 60
"""A younger directory may not be locked yet."""


class ProcessDirectory:
    """A new directory of this process below `parent` (None: the system's), for its user only."""

    def __init__(self, parent: str | None) -> None:
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        self._owner = os.getpid()
        self._lock = _lock_file(Path(self.path, _LOCK))
        if self._lock is not None:
            _remove_abandoned(Path(self.path))

    def remove(self) -> None:
        """Delete the directory with its content. In a forked child, only release the lock."""
        if os.getpid() == self._owner:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()


def _remove_abandoned(new: Path) -> None:
    """Remove the directories of processes that were killed; a new directory shows the present time of the storage."""
    now = new.stat().st_mtime
    for found in new.parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # other processes may remove it at the same time
            if now - found.stat().st_mtime > _YOUNG_SECONDS and found.stat().st_uid == os.getuid():
                lock = _lock_file(found / _LOCK)
                if lock is not None:
                    shutil.rmtree(found, ignore_errors=True)
                    lock.close()


def _lock_file(path: Path) -> IO[bytes] | None:
    """Open and lock a file. Return None if another process has locked it, or there are no locks."""
    if not _HAS_LOCKS:
        return None
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock
