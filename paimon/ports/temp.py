"""TempStore: the port for local disk space that only this process needs: spilled rows and lookup files.

Invariant: the data is gone when the store is, also when the process was killed. A handle is valid in the process that
received it. Suite: `paimon.testing.contracts.temp`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from paimon.domain.errors import StorageError

_FULL = ("No space left on device", "Disk quota exceeded", "max_temp_directory_size")
"""What the operating system and DuckDB say when a temporary directory is full."""


def to_temp_error(path: str, action: str, error: BaseException) -> StorageError:
    """Return an error of the temporary directory; a full disk is named.

    Parameters
    ----------
    path : str
        The file or directory.
    action : str
        What failed, such as ``"rows cannot be spilled"``.
    error : BaseException
        The error of the operating system or of a library.

    Returns
    -------
    StorageError
        The error to raise.
    """
    if is_temp_full(error):
        hint = "free space there, or set TMPDIR to a larger directory and start again"
        return StorageError(path, f"{action}, because the disk of temporary files is full", hint=hint)
    return StorageError(path, f"{action}: {error}")


def is_temp_full(error: BaseException) -> bool:
    """Return whether an error says that the disk of temporary files is full.

    Parameters
    ----------
    error : BaseException
        The error of the operating system or of a library.

    Returns
    -------
    bool
        True if it does.
    """
    return any(text in str(error) for text in _FULL)


class StoredTable(NamedTuple):
    """The result of `TempStore.store`: the handle, and the size on disk in bytes."""

    handle: str
    bytes: int


class JoinedBatch(NamedTuple):
    """The result of `TempStore.store_joined`: the handle, and the rows as memory-mapped arrays."""

    handle: str
    batch: pa.RecordBatch


class TempStore(Protocol):
    """Arrow data on local disk.

    All methods are safe to call from several threads. Nothing is flushed to the disk, because nothing outlives the
    process.
    """

    def spill(self, table: pa.Table) -> str:
        """Write a table as one temporary file.

        Parameters
        ----------
        table : pyarrow.Table
            The rows, possibly none.

        Returns
        -------
        str
            A new handle for `load`.

        Raises
        ------
        StorageError
            The disk is full or cannot be written. No file remains.
        """

    def load(self, handle: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a spilled table in their order.

        Parameters
        ----------
        handle : str
            The result of `spill`. It may be loaded several times until it is dropped.
        batch_rows : int
            The largest number of rows of a batch.

        Yields
        ------
        pyarrow.RecordBatch
            Batches with the schema of the table. The iterator holds about one batch in memory.

        Raises
        ------
        StorageError
            The file cannot be read.
        """

    def store(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, max_bytes: int) -> StoredTable | None:
        """Write batches, unchanged and in their order, as one file that `map_batches` can map.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Read one after the other. Not all of them are read if they exceed `max_bytes`.
        schema : pyarrow.Schema
            The schema of each batch.
        max_bytes : int
            The largest size, in memory and on disk.

        Returns
        -------
        StoredTable or None
            None if the batches need more than `max_bytes`. Then no file remains.

        Raises
        ------
        StorageError
            The disk is full or cannot be written. No file remains.
        Exception
            An error of `batches` is passed on. No file remains.
        """

    def map_batches(self, handle: str) -> Sequence[pa.RecordBatch]:
        """Return the batches of `store` as memory-mapped arrays.

        The call reads no rows. An access to a row reads the disk pages of this row.

        Parameters
        ----------
        handle : str
            The handle of a `StoredTable`.

        Returns
        -------
        sequence of pyarrow.RecordBatch
            The batches as they were stored. They stay valid after `drop`.

        Raises
        ------
        StorageError
            The file cannot be read.
        """

    def store_joined(self, batches: Sequence[pa.RecordBatch]) -> JoinedBatch:
        """Write batches as one batch, and map it.

        Parameters
        ----------
        batches : sequence of pyarrow.RecordBatch
            At least one; all have the same schema.

        Returns
        -------
        JoinedBatch
            The handle, and all rows in their order. The rows stay valid after `drop`.

        Raises
        ------
        StorageError
            The disk is full, or cannot be written or read. No file remains.
        """

    def drop(self, handle: str) -> None:
        """Delete the file of a handle. The call is idempotent.

        Parameters
        ----------
        handle : str
            The result of `spill`, or the handle of a `StoredTable` or a `JoinedBatch`.
        """
