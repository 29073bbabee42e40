"""A key store of Arrow blocks in the temporary store: what an engine without a store of its own uses.

Invariant: newer blocks are searched first, a block holds a key once, and `find` of a block returns exactly the pairs of
rows with equal keys. Building a block needs at most the memory that was given.
"""

# The store maps keys to places; a place is the partition and the bucket of a key, as one number. It is a small LSM tree
# without deletes, whose runs are called blocks:
#
#     oldest                                                newest
#     [ block 0: 40 M keys, file ] [ block 1: 9 M, file ] [ block 2: 300 k ] [ block 3: 20 k ]
#       from `load`                  from `put`
#
# `find` searches from the newest block to the oldest, each for the keys that no newer block has. `put` adds a block.
# Then the last two are merged as long as the older one is less than twice as large, so the number of blocks grows with
# the logarithm of the puts until blocks are full. With a time to live, only blocks of about one age are merged, and a
# block is dropped as a whole when its newest key has expired. Large blocks are mapped files, small ones are in memory.
#
# Inside a block there are two ways to find a key:
#
# - The keys of a data file are in order, so a loaded block is a sequence of sorted runs. If the key is one column of
#   integers or text, each run is searched as it is, by a binary search.
# - Any block can get lookup hashes: a sorted array of hashes with the row of each. Building them costs one hash for
#   each row of the block, which a writer of few rows never earns back.
#
# A block of runs counts what its searches have cost more than hashes would have cost. Once that is as much as building
# the hashes costs, it builds them (`KeyBlock.needs_hashes`). So the cost is at most twice that of the better choice.
#
# Most runs are files of one bucket, whose keys all have the same place. So places are stored as one value for each run
# of equal ones where that is possible (`BlockPlaces`).
#
# `docs/decisions/key-store.md` has the alternatives and figures.

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import define, field, frozen

from paimon.domain.lsm.lookup_hashes import LOOKUP_HASHES_FIELD, Rows, add_lookup_hashes, find_equal_keys
from paimon.domain.lsm.ordered_keys import find_ordered_keys, is_ordered_block
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import KEY_PREFIX
from paimon.ports.key_stores import Places
from paimon.ports.temp import TempStore

_HASH_BYTES = 8
"""The bytes of the lookup hashes for each row."""
_PLACE_BYTES = 8
_TEXT_COST = 8
"""A binary search of a text takes so many times as long as the hash of a row; that of a number as long."""
_HASH_COST = 3
"""The search of lookup hashes takes so many times as long as the hash of a row."""
_PLACE = pa.field(f"{KEY_PREFIX}#place", pa.int64(), nullable=False)
"""The column of places in a file. No column of a table has such a name."""
_MEMORY_SHARE = 4
"""A block has at most this part (1/n) of the memory: it is copied when it is merged, indexed and written."""
_FILE_BYTES = 8 * 1024 * 1024
"""Smaller blocks stay in memory: all of them together are about twice as large."""
_AGES = 8
"""Blocks whose times differ by more than this part (1/n) of the time to live are not merged."""


class Piece(NamedTuple):
    """Some keys and their places, and whether the keys are in order."""

    keys: pa.RecordBatch
    places: Places
    is_run: bool


@frozen(eq=False)
class BlockPlaces:
    """The place (partition and bucket) of each row of a block, run-length encoded where that is possible."""

    # where each run of equal places ends; None if each row has its own value
    ends: npt.NDArray[np.int64] | None
    # the place of each run, or of each row if `ends` is None
    values: Places

    @classmethod
    def of(cls, parts: Sequence[Places]) -> BlockPlaces:
        """Return the places of successive rows."""
        if not all(map(_is_constant, parts)):
            return cls(None, np.concatenate(parts))
        return cls(np.cumsum([len(part) for part in parts]), np.array([part[0] for part in parts], np.int64))

    def take(self, rows: Rows) -> Places:
        """Return the places of some rows."""
        numbers = rows if self.ends is None else np.searchsorted(self.ends, rows, side="right")
        return self.values[numbers]


def _is_constant(places: Places) -> bool:
    """Return whether all places are equal, which the layout of a broadcast value shows."""
    return len(places) > 0 and (places.strides == (0,) or bool((places == places[0]).all()))


def find_run_ends(pieces: Sequence[Piece], fields: Sequence[DataField]) -> npt.NDArray[np.int64] | None:
    """Return where the sorted runs of successive pieces end; None if a piece is in no order."""
    if not all(piece.is_run for piece in pieces):
        return None
    ends = np.cumsum([piece.keys.num_rows for piece in pieces])
    borders = [
        pa.concat_batches([one.keys.slice(one.keys.num_rows - 1), other.keys.slice(0, 1)])
        for one, other in itertools.pairwise(pieces)
    ]
    is_end = [not is_ordered_block(border, fields) for border in borders]
    return ends[[*is_end, True]]


def count_bytes(keys: pa.RecordBatch) -> int:
    """Return the size of keys with a place and a lookup hash for each."""
    size: int = keys.nbytes + (_HASH_BYTES + _PLACE_BYTES) * keys.num_rows
    return size


class KeyBlock:
    """Keys with their places; `run_ends` are the ends of sorted runs, None if the keys are in no order."""

    def __init__(
        self,
        fields: Sequence[DataField],
        keys: pa.RecordBatch,
        places: BlockPlaces,
        run_ends: npt.NDArray[np.int64] | None,
    ) -> None:
        self._fields = fields
        self._run_ends = run_ends
        self._spent = 0
        self.keys = keys
        self.places = places
        self.hashes: pa.Array | None = None

    @property
    def nbytes(self) -> int:
        """The size with one place and one lookup hash for each row, whether the block has them or not."""
        return count_bytes(self.keys)

    def needs_hashes(self, wanted_rows: int) -> bool:
        """Count a search of so many keys, and return whether the lookup hashes have to be built before it."""
        if self.hashes is not None:
            return False
        if self._run_ends is None:
            return True
        cost = 1 if pa.types.is_integer(self.keys.column(0).type) else _TEXT_COST
        self._spent += wanted_rows * max(0, cost * len(self._run_ends) - _HASH_COST)
        rows: int = self.keys.num_rows
        return self._spent > rows

    def build_hashes(self) -> pa.Array:
        """Return the lookup hashes."""
        return add_lookup_hashes(self.keys, self._fields).column(LOOKUP_HASHES_FIELD.name)

    def find(self, wanted: pa.RecordBatch) -> tuple[Rows, Rows]:
        """Return the rows of `wanted` that the block has, ascending, and its row for each."""
        if self.hashes is not None:
            return find_equal_keys(wanted, self.keys.append_column(LOOKUP_HASHES_FIELD, self.hashes), self._fields)
        assert self._run_ends is not None
        row_of = np.full(wanted.num_rows, -1, np.int64)
        for start, end in itertools.pairwise([0, *self._run_ends.tolist()]):
            mine, theirs = find_ordered_keys(wanted, self.keys.slice(start, end - start), self._fields[0])
            row_of[mine] = theirs + start
        found = np.flatnonzero(row_of >= 0)
        return found, row_of[found]


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
    """A `KeyStore` of blocks on disk, old to new; keys live `time_to_live_millis`, or forever for None."""

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
            wanted = keys if len(missing) == keys.num_rows else keys.take(from_numpy(missing))
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
            keys = pa.concat_batches([block.keys.take(from_numpy(rows)) for block, rows in parts])
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
