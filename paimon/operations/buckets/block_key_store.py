"""A key store of Arrow blocks in the temporary store: what an engine without a store of its own uses.

A block holds keys and their places (`key_blocks`). Large blocks are mapped files, small ones are in memory. A put adds
a block, and adjacent blocks of similar size are merged, so their number grows with the logarithm of the puts until
blocks are full. `docs/decisions/key-store.md` has the alternatives and figures.

Invariant: newer blocks are searched first. Building a block needs at most the memory that was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from attrs import define, field

from paimon.domain.lsm.lookup_hashes import LOOKUP_HASHES_FIELD, Rows
from paimon.domain.lsm.ordered_keys import is_ordered_block
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import KEY_PREFIX
from paimon.operations.buckets.key_blocks import (
    BlockPlaces,
    KeyBlock,
    Piece,
    count_bytes,
    find_run_ends,
)
from paimon.ports.key_stores import Places
from paimon.ports.temp import TempStore

_PLACE = pa.field(f"{KEY_PREFIX}#place", pa.int64(), nullable=False)
"""The column of places in a file. No column of a table has such a name."""
_MEMORY_SHARE = 4
"""A block has at most this part (1/n) of the memory: it is copied when it is merged, indexed and written."""
_FILE_BYTES = 8 * 1024 * 1024
"""Smaller blocks stay in memory: all of them together are about twice as large."""
_AGES = 8
"""Blocks whose times differ by more than this part (1/n) of the time to live are not merged."""


@define(eq=False)
class _StoredBlock:
    """A block, the handles of its files, and the time of its newest key."""

    block: KeyBlock
    put_millis: int
    handles: list[str] = field(factory=list)


class BlockKeyStores:
    """See `paimon.ports.key_stores.KeyStores`."""

    def __init__(self, temp: TempStore) -> None:
        self._temp = temp

    def open(self, keys: Sequence[DataField], memory_bytes: int, time_to_live_millis: int | None) -> BlockKeyStore:
        """Create an empty store that keeps each key for `time_to_live_millis`; None keeps keys forever."""
        return BlockKeyStore(self._temp, keys, memory_bytes, time_to_live_millis)


class BlockKeyStore:
    """A `KeyStore` of blocks on local disk, from old to new.

    Keys are kept for `time_to_live_millis`; None keeps them forever. `memory_bytes` limits the memory for building a
    block.
    """

    def __init__(
        self, temp: TempStore, keys: Sequence[DataField], memory_bytes: int, time_to_live_millis: int | None
    ) -> None:
        self._temp = temp
        self._keys = tuple(keys)
        self._block_bytes = max(1, memory_bytes // _MEMORY_SHARE)
        self._time_to_live_millis = time_to_live_millis
        self._schema = arrow_schema(self._keys)
        self._blocks: list[_StoredBlock] = []

    def load(self, batches: Iterable[tuple[pa.RecordBatch, Places]], now_millis: int) -> int:
        """Add keys in blocks that are as large as possible, sorted runs apart from other keys."""
        held: list[Piece] = []
        held_bytes = added = 0
        for piece in (piece for keys, places in batches for piece in self._cut(keys, places)):
            size = count_bytes(piece.keys)
            if held and (held_bytes + size > self._block_bytes or piece.is_run != held[-1].is_run):
                self._append(held, now_millis)
                held, held_bytes = [], 0
            held.append(piece)
            held_bytes += size
            added += piece.keys.num_rows
        if held:
            self._append(held, now_millis)
        return added

    def find(self, keys: pa.RecordBatch) -> Places:
        """Search the blocks, the newest first, for the keys that no newer block has."""
        places = np.full(keys.num_rows, -1, np.int64)
        missing = np.arange(keys.num_rows)
        for stored in reversed(self._blocks):
            if not len(missing):
                break
            wanted = keys if len(missing) == keys.num_rows else keys.take(pa.array(missing))
            mine, theirs = self._find_in(stored, wanted)
            places[missing[mine]] = stored.block.places.take(theirs)
            missing = np.delete(missing, mine)
        return places

    def put(self, keys: pa.RecordBatch, places: Places, now_millis: int) -> None:
        """Add a block, merge it with older ones of similar size, and drop blocks whose time to live is over.

        Each key occurs once in `keys`. Raises `StorageError` if the disk is full or cannot be written.
        """
        for piece in self._cut(keys, places):
            self._append([piece], now_millis)
            self._merge_last_blocks()
        if self._time_to_live_millis is not None:
            before = now_millis - self._time_to_live_millis
            for block in [b for b in self._blocks if b.put_millis < before]:
                self._remove(block)

    def close(self) -> None:
        """Drop all blocks."""
        for block in list(self._blocks):
            self._remove(block)

    def _cut(self, keys: pa.RecordBatch, places: Places) -> Iterator[Piece]:
        """Cut rows into parts that fit into a block."""
        columns = [keys.column(f.name) for f in self._keys]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        size = max(1, rows.num_rows * self._block_bytes // max(1, count_bytes(rows)))
        for start in range(0, rows.num_rows, size):
            part = rows.slice(start, size)
            yield Piece(part, places[start : start + size], is_ordered_block(part, self._keys))

    def _append(self, pieces: Sequence[Piece], put_millis: int) -> None:
        places = BlockPlaces.of([piece.places for piece in pieces])
        run_ends = find_run_ends(pieces, self._keys)
        rows = [piece.keys for piece in pieces]
        if places.ends is None:
            rows = [piece.keys.append_column(_PLACE, pa.array(piece.places)) for piece in pieces]
        handles, joined = self._join(rows, sum(count_bytes(piece.keys) for piece in pieces))
        if places.ends is None:
            places = BlockPlaces(None, np.asarray(joined.column(_PLACE.name)))
        block = KeyBlock(self._keys, joined.select(self._schema.names), places, run_ends)
        self._blocks.append(_StoredBlock(block, put_millis, handles))

    def _join(self, batches: Sequence[pa.RecordBatch], block_bytes: int) -> tuple[list[str], pa.RecordBatch]:
        """Return the handles of the file of a large block, and the rows of the block as one batch."""
        if block_bytes < min(_FILE_BYTES, self._block_bytes // 4):
            return [], pa.concat_batches(batches)
        stored = self._temp.store_joined(batches)
        return [stored.handle], stored.batch

    def _find_in(self, stored: _StoredBlock, wanted: pa.RecordBatch) -> tuple[Rows, Rows]:
        """Return the rows of `wanted` that a block has, and its rows."""
        if stored.block.needs_hashes(wanted.num_rows):
            hashes = pa.record_batch([stored.block.build_hashes()], schema=pa.schema([LOOKUP_HASHES_FIELD]))
            handles, mapped = self._join([hashes], stored.block.nbytes)
            stored.handles += handles
            stored.block.hashes = mapped.column(0)
        return stored.block.find(wanted)

    def _merge_last_blocks(self) -> None:
        """Merge the last two blocks as long as the older is not twice as large, and both fit into one."""
        while len(self._blocks) > 1:
            old, new = self._blocks[-2:]
            sizes = old.block.nbytes, new.block.nbytes
            if sizes[0] > 2 * sizes[1] or sum(sizes) > self._block_bytes or not self._are_of_one_age(old, new):
                return
            replaced = self._find_in(old, new.block.keys)[1]
            kept = np.delete(np.arange(old.block.keys.num_rows), replaced)
            parts = [(old.block, kept), (new.block, np.arange(new.block.keys.num_rows))]
            keys = pa.concat_batches([block.keys.take(pa.array(rows)) for block, rows in parts])
            places = np.concatenate([block.places.take(rows) for block, rows in parts])
            self._remove(old)
            self._remove(new)
            self._append([Piece(keys, places, is_ordered_block(keys, self._keys))], new.put_millis)

    def _are_of_one_age(self, old: _StoredBlock, new: _StoredBlock) -> bool:
        """Return whether the older block may live as long as the newer one."""
        if self._time_to_live_millis is None:
            return True
        window = max(1, self._time_to_live_millis // _AGES)
        return old.put_millis // window == new.put_millis // window

    def _remove(self, stored: _StoredBlock) -> None:
        self._blocks.remove(stored)
        for handle in stored.handles:
            self._temp.drop(handle)
