"""LocalTempStore: Arrow tables in a directory of this process, as Arrow IPC files.

Law: the directory is made at the first file, readable by this user only, and removed when the store or the process
ends; what a killed process leaves goes when the next one makes its own (`owned.py`).
"""

from __future__ import annotations

import os
import threading
import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from paimon.adapters.temp.owned import OwnedDirectory
from paimon.domain.errors import StorageError
from paimon.ports.temp import Kept

_CHUNK_BYTES = 256 * 1024
"""Rows that are read back at once: many spilled tables are read side by side, a batch of each is held."""


class LocalTempStore:
    """See `paimon.ports.temp.TempStore`.

    Parameters
    ----------
    parent : str, optional
        Where the directory is made; the system's temporary directory otherwise.
    compression : str, optional
        ``"lz4"``, ``"zstd"`` or None.
    """

    def __init__(self, parent: str | None = None, compression: str | None = "lz4") -> None:
        self._parent = parent
        self._options = pa.ipc.IpcWriteOptions(compression=compression)
        self._directory: OwnedDirectory | None = None
        self._lock = threading.Lock()

    def spill(self, table: pa.Table) -> str:
        """Write the table; the answer is its handle."""
        handle = self._new_handle("spill")
        try:
            with pa.OSFile(handle, "wb") as sink, pa.ipc.new_file(sink, table.schema, options=self._options) as writer:
                rows = max(1, table.num_rows * _CHUNK_BYTES // max(1, table.nbytes))
                writer.write_table(table, max_chunksize=rows)
        except OSError as error:
            self.drop(handle)
            raise StorageError(handle, f"cannot spill: {error}", hint="free some disk, or raise the budget") from error
        return handle

    def load(self, handle: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The table's rows in order, in batches of at most `batch_rows`."""
        try:
            with pa.OSFile(handle) as source:  # of a map, what was read would count as memory of the process
                reader = pa.ipc.open_file(source)
                for index in range(reader.num_record_batches):
                    batch = reader.get_batch(index)
                    for start in range(0, batch.num_rows, batch_rows):
                        yield batch.slice(start, batch_rows)
        except OSError as error:
            raise StorageError(handle, f"cannot read spilled data: {error}") from error

    def keep(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, max_bytes: int) -> Kept | None:
        """Write the batches as they are, to be mapped; None where they are larger than that."""
        handle = self._new_handle("kept")
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
            raise StorageError(handle, f"cannot keep a local copy: {error}") from error
        except BaseException:
            self.drop(handle)
            raise
        if max(written, size) > max_bytes:
            self.drop(handle)
            return None
        return Kept(handle, size)

    def mapped(self, handle: str) -> Sequence[pa.RecordBatch]:
        """What was kept, in memory as far as it is touched."""
        try:
            with pa.memory_map(handle) as source:
                reader = pa.ipc.open_file(source)
                return [reader.get_batch(index) for index in range(reader.num_record_batches)]
        except (OSError, pa.ArrowInvalid) as error:
            raise StorageError(handle, f"cannot read a local copy: {error}") from error

    def drop(self, handle: str) -> None:
        """Remove the file; no error where it is gone."""
        if os.path.exists(handle):
            os.unlink(handle)

    def _new_handle(self, kind: str) -> str:
        return os.path.join(self._own_directory(), f"{kind}-{uuid.uuid4()}.arrow")

    def _own_directory(self) -> str:
        with self._lock:
            if self._directory is None:
                self._directory = OwnedDirectory(self._parent)
                weakref.finalize(self, self._directory.remove)
            return self._directory.path
