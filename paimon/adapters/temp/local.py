"""LocalTempStore: a TempStore of Arrow IPC files in a local directory of this process.

Invariant: the directory is created with the first file, is readable by this user only, and is removed when the store or
the process ends. The next process that creates its own directory removes those of killed processes.
"""

from __future__ import annotations

import os
import sys
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from paimon.adapters.temp.joined_columns import can_join_columns, map_joined_columns, write_joined_columns
from paimon.adapters.temp.process_directories import ProcessDirectory
from paimon.ports.temp import JoinedBatch, StoredTable, to_temp_error

_CHUNK_BYTES = 256 * 1024
"""The size of a stored batch. Many spilled tables are read concurrently, with one batch of each in memory."""


class LocalTempStore:
    """See `paimon.ports.temp.TempStore`.

    Files are in a new directory below `parent`, by default the system's temporary directory. `compression` is the codec
    of spilled rows: ``"lz4"``, ``"zstd"`` or None.
    """

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
        """Write batches without compression, so that they can be mapped.

        None means that they need more than `max_bytes` in memory or on disk; nothing stays on disk then.
        """
        handle = self._new_handle("stored")
        written = 0
        try:
            with pa.OSFile(handle, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
                for batch in batches:
                    written += batch.nbytes
                    if written > max_bytes:
                        break
                    writer.write_batch(batch)
            size = os.stat(handle).st_size
        except OSError as error:
            self.drop(handle)
            raise to_temp_error(handle, "rows cannot be written", error) from error
        except BaseException:
            self.drop(handle)
            raise
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
        """Write batches as one batch, without a copy in memory where the columns allow it.

        There is at least one batch, and all have the same schema.
        """
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
