"""MemoryKeyStores: key stores that are dictionaries, for tests and as the reference of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.row.binary_row import encode
from paimon.domain.row.values import to_values
from paimon.domain.types.data_types import DataField
from paimon.ports.key_stores import Places


class MemoryKeyStores:
    """See `paimon.ports.key_stores.KeyStores`."""

    def open(self, keys: Sequence[DataField], memory_bytes: int, time_to_live_millis: int | None) -> MemoryKeyStore:
        """Create an empty store.

        Parameters
        ----------
        keys : sequence of DataField
            The key columns.
        memory_bytes : int
            Not used.
        time_to_live_millis : int or None
            How long a key is kept.

        Returns
        -------
        MemoryKeyStore
            A new store.
        """
        return MemoryKeyStore(keys, time_to_live_millis)


class MemoryKeyStore:
    """See `paimon.ports.key_stores.KeyStore`.

    Parameters
    ----------
    keys : sequence of DataField
        The key columns.
    time_to_live_millis : int or None
        How long a key is kept.
    """

    def __init__(self, keys: Sequence[DataField], time_to_live_millis: int | None) -> None:
        self._keys = tuple(keys)
        self._time_to_live_millis = time_to_live_millis
        self._entries: dict[bytes, tuple[int, int]] = {}

    def load(self, batches: Iterable[tuple[pa.RecordBatch, Places]], now_millis: int) -> int:
        """Add keys."""
        added = 0
        for keys, places in batches:
            self.put(keys, places, now_millis)
            added += keys.num_rows
        return added

    def find(self, keys: pa.RecordBatch) -> Places:
        """Return the places of keys."""
        return np.array([self._entries.get(key, (-1, 0))[0] for key in self._encode(keys)], np.int64)

    def put(self, keys: pa.RecordBatch, places: Places, now_millis: int) -> None:
        """Set the places of keys, and drop those whose time to live is over.

        Parameters
        ----------
        keys : pyarrow.RecordBatch
            The key columns, each key once.
        places : int64 array
            The place of each row.
        now_millis : int
            The present in epoch milliseconds.
        """
        for key, place in zip(self._encode(keys), places.tolist(), strict=True):
            self._entries[key] = (place, now_millis)
        if self._time_to_live_millis is not None:
            before = now_millis - self._time_to_live_millis
            self._entries = {key: entry for key, entry in self._entries.items() if entry[1] >= before}

    def close(self) -> None:
        """Drop all keys."""
        self._entries.clear()

    def _encode(self, keys: pa.RecordBatch) -> list[bytes]:
        columns = (to_values(keys.column(f.name), f.type) for f in self._keys)
        types = [f.type for f in self._keys]
        return [encode(values, types) for values in zip(*columns, strict=True)]
