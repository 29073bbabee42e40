"""KeyStores: the port for an index from primary keys to the places of their rows, on disk that only this process needs.

A place is a number that the caller defines, for instance a partition and a bucket. The index is rebuilt from the table,
so nothing of it outlives the process. Suite: `paimon.testing.contracts.key_stores`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.types.data_types import DataField

Places: TypeAlias = npt.NDArray[np.int64]
"""One place for each key: a number from 0 on, or -1 for a key that has none."""


class KeyStore(Protocol):
    """Keys with their places. One thread at a time uses a store."""

    def load(self, batches: Iterable[tuple[pa.RecordBatch, Places]], now_millis: int) -> int:
        """Add many keys that the store does not have yet.

        Parameters
        ----------
        batches : iterable of (pyarrow.RecordBatch, int64 array)
            The key columns, and the place of each row. They are read one after the other. If a key occurs twice, either
            place may be found.
        now_millis : int
            The present in epoch milliseconds. The time to live of the keys begins.

        Returns
        -------
        int
            The number of keys that were added.

        Raises
        ------
        StorageError
            The disk is full or cannot be written. The store contains some of the keys; the caller closes it.
        Exception
            An error of `batches` is passed on. The store contains some of the keys.
        """

    def find(self, keys: pa.RecordBatch) -> Places:
        """Return the place of each key.

        Parameters
        ----------
        keys : pyarrow.RecordBatch
            The key columns. A key may occur several times.

        Returns
        -------
        int64 array
            One place a row; -1 where the store does not have the key. Keys are equal if all columns are: null equals
            null, NaN equals NaN, and -0.0 does not equal 0.0.

        Raises
        ------
        StorageError
            The disk cannot be read.
        """

    def put(self, keys: pa.RecordBatch, places: Places, now_millis: int) -> None:
        """Set the places of keys, whether the store has them or not.

        Parameters
        ----------
        keys : pyarrow.RecordBatch
            The key columns, each key once.
        places : int64 array
            The place of each row.
        now_millis : int
            The present in epoch milliseconds, not before that of earlier calls. The time to live of the keys begins
            anew. Keys whose time to live is over by more than one eighth are dropped.

        Raises
        ------
        StorageError
            The disk is full or cannot be written. The store is in an unknown state; the caller closes it.
        """

    def close(self) -> None:
        """Drop all keys, and release memory and disk. The call is idempotent."""


class KeyStores(Protocol):
    """Creates key stores. Safe to use from several threads."""

    def open(self, keys: Sequence[DataField], memory_bytes: int, time_to_live_millis: int | None) -> KeyStore:
        """Create an empty store.

        Parameters
        ----------
        keys : sequence of DataField
            The key columns.
        memory_bytes : int
            The memory that the store may use. Files that are mapped into memory do not count, because the operating
            system drops their pages when memory is short.
        time_to_live_millis : int or None
            How long a key is kept after its last `load` or `put`; None: for ever.

        Returns
        -------
        KeyStore
            A new store, independent of others.
        """
