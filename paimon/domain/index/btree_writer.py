"""Encode sorted keys and their row ids as a B-tree index file, block by block.

Invariant: keys come in ascending order, and the row ids of a key too. The bytes equal those that Java writes for the
same rows and block size, without compression. `btree_blocks` describes the file.
Source: `BTreeIndexWriter`, `SstFileWriter`.
"""

# Rows arrive in sorted pieces. An entry needs all row ids of its key, so the rows of the last key of a piece wait for
# the next one. Complete entries are encoded at once for the whole piece, and cut into blocks:
#
#     pieces     a:1 a:4 b:2 | b:7 c:3 c:5           entries  a[1 4]            from the first piece
#                                                             b[2 7]            from the second one, c waits
#
# A block ends with the entry that makes it larger than the block size. Java counts 5 bytes for the end of a block and,
# unless all entries have one length, 4 more for each entry. `_count_entries` finds this entry by binary search over the
# sums of the lengths; what is left of the entries waits for the next piece.

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from paimon.domain.index.btree_blocks import (
    TRAILER_BYTES,
    Bytes,
    Footer,
    KeyBounds,
    Lengths,
    Numbers,
    Place,
    encode_block,
    encode_varints,
    join_parts,
    sum_groups,
)
from paimon.domain.index.btree_keys import BtreeKeys

_END_BYTES = 5
_START_BYTES = 4


class BtreeWriter:
    """Encode one file. A state machine: `add_nulls` and `add` return bytes to append to the file, `finish` the rest."""

    def __init__(self, keys: BtreeKeys, block_bytes: int) -> None:
        self._keys = keys
        self._block_bytes = block_bytes
        self._nulls = BitMap64()
        # the last key as an array of one, and its row ids, which more may follow
        self._key: pa.Array | None = None
        self._ids: list[Numbers] = []
        # complete entries that do not fill a block, and the length of the key of each
        self._entries = _EntryBuffer()
        self._index = _EntryBuffer()
        self._offset = 0
        self._first: bytes | None = None
        self._last: bytes | None = None
        self.row_count = 0

    def add_nulls(self, row_ids: Numbers) -> None:
        """Add rows of null."""
        self._nulls |= _to_bitmap(row_ids)
        self.row_count += len(row_ids)

    def add(self, keys: pa.Array, row_ids: Numbers) -> Iterator[bytes]:
        """Add rows with sortable keys that follow all earlier ones; yield full blocks."""
        if not len(keys):
            return
        self.row_count += len(keys)
        starts = _find_groups(keys)
        keys = keys.take(pa.array(starts))
        if self._key is not None:
            shift = sum(map(len, self._ids))
            joined = pa.concat_arrays([self._key, keys])
            goes_on = len(_find_groups(joined.slice(0, 2))) == 1
            keys = keys if goes_on else joined
            starts = np.append(0, starts[int(goes_on) :] + shift)
        self._ids.append(row_ids)
        self._key = keys.slice(len(keys) - 1)
        if len(keys) > 1:
            ids, complete = np.concatenate(self._ids), int(starts[-1])
            self._ids = [ids[complete:].copy()]
            yield from self._encode(keys.slice(0, len(keys) - 1), ids[:complete], starts[:-1])

    def finish(self) -> Iterator[bytes]:
        """Yield what remains of the file."""
        if self._key is not None:
            yield from self._encode(self._key, np.concatenate(self._ids), np.zeros(1, np.int64))
            self._key = None
        if len(self._entries):
            yield self._cut_block(len(self._entries))
        nulls = None
        if self._nulls:
            self._nulls.run_optimize()
            data = self._nulls.serialize()
            nulls = Place(self._offset, len(data))
            yield self._place(data + struct.pack("<I", zlib.crc32(data)))
        block = encode_block(self._index.data.tobytes(), self._index.lengths)
        place = Place(self._offset, len(block) - TRAILER_BYTES)
        yield self._place(block)
        yield self._place(Footer(place, nulls).encode())

    @property
    def bounds(self) -> KeyBounds:
        """The metadata of the finished file."""
        return KeyBounds(self._first, self._last, bool(self._nulls))

    @property
    def file_size(self) -> int:
        """The number of bytes so far."""
        return self._offset

    def _encode(self, keys: pa.Array, row_ids: Numbers, starts: Numbers) -> Iterator[bytes]:
        """Encode keys, the row ids of each of which begin at a start, and yield the blocks that they fill."""
        stored, key_lengths = self._keys.encode(keys)
        ids, id_lengths = encode_varints(row_ids)
        counts, count_lengths = encode_varints(np.diff(np.append(starts, len(row_ids))))
        id_lengths = sum_groups(id_lengths, starts)
        value_lengths = encode_varints(count_lengths + id_lengths)
        parts = [
            encode_varints(key_lengths), (stored, key_lengths), value_lengths, (counts, count_lengths),
            (ids, id_lengths),
        ]  # fmt: skip
        data, lengths = join_parts(parts)
        self._entries.append(data, lengths, stored, key_lengths)
        if self._first is None:
            self._first = self._entries.key_at(0)
        self._last = self._entries.key_at(len(self._entries) - 1)
        while (count := _count_entries(self._entries.lengths, self._block_bytes)) is not None:
            yield self._cut_block(count)

    def _cut_block(self, count: int) -> bytes:
        """Return the block of the first entries, and name it in the index."""
        last = self._entries.key_at(count - 1)
        data, lengths = self._entries.take(count)
        block = encode_block(data, lengths)
        handle, handle_length = join_parts(
            [encode_varints(np.array([n], np.int64)) for n in (self._offset, len(block) - TRAILER_BYTES)]
        )
        key = np.frombuffer(last, np.uint8), np.array([len(last)], np.int64)
        entry, length = join_parts(
            [encode_varints(key[1]), key, encode_varints(handle_length), (handle, handle_length)]
        )
        self._index.append(entry, length, *key)
        return self._place(block)

    def _place(self, data: bytes) -> bytes:
        self._offset += len(data)
        return data


class _EntryBuffer:
    """Encoded entries, one after the other, and their keys. A state machine."""

    def __init__(self) -> None:
        self.data: Bytes = np.empty(0, np.uint8)
        self.lengths: Lengths = np.empty(0, np.int64)
        self._keys: Bytes = np.empty(0, np.uint8)
        self._key_ends: Lengths = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.lengths)

    def key_at(self, number: int) -> bytes:
        """Return the stored key of an entry."""
        start = int(self._key_ends[number - 1]) if number else 0
        return self._keys[start : int(self._key_ends[number])].tobytes()

    def append(self, data: Bytes, lengths: Lengths, keys: Bytes, key_lengths: Lengths) -> None:
        """Append entries with their keys."""
        self.data = np.concatenate([self.data, data])
        self.lengths = np.concatenate([self.lengths, lengths])
        self._key_ends = np.concatenate([self._key_ends, len(self._keys) + np.cumsum(key_lengths)])
        self._keys = np.concatenate([self._keys, keys])

    def take(self, count: int) -> tuple[bytes, Lengths]:
        """Remove the first entries, and return their bytes and lengths."""
        size, key_bytes, lengths = int(self.lengths[:count].sum()), int(self._key_ends[count - 1]), self.lengths[:count]
        data, self.data = self.data[:size].tobytes(), self.data[size:]
        self.lengths = self.lengths[count:]
        self._keys, self._key_ends = self._keys[key_bytes:], self._key_ends[count:] - key_bytes
        return data, lengths


def _count_entries(lengths: Lengths, block_bytes: int) -> int | None:
    """Return how many entries the next block has; None if all of them do not fill it."""
    if not len(lengths):
        return None
    ends = np.cumsum(lengths[: block_bytes + 2])  # an entry has at least 3 bytes
    different = np.flatnonzero(lengths[: len(ends)] != lengths[0])
    aligned = int(different[0]) if len(different) else len(ends)
    sizes = ends + _END_BYTES
    sizes[aligned:] += _START_BYTES * np.arange(aligned + 1, len(ends) + 1)
    full = np.flatnonzero(sizes > block_bytes)
    return int(full[0]) + 1 if len(full) else None


def _find_groups(keys: pa.Array) -> Numbers:
    """Return the position of the first row of each key."""
    changed = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))
    return np.concatenate([[0], np.flatnonzero(np.asarray(changed)) + 1]).astype(np.int64)


def _to_bitmap(row_ids: Numbers) -> BitMap64:
    numbers = array("Q")
    numbers.frombytes(row_ids.astype(np.uint64).tobytes())
    return BitMap64(numbers)
