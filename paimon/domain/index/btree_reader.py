"""Find the rows of a B-tree index file whose keys are in intervals.

Invariant: each row of an interval is in the result. A damaged file is a ValueError.
Source: `BTreeIndexReader`, `SstFileReader`.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from attrs import field, frozen
from pyroaring import BitMap64

from paimon.domain.index.btree_blocks import (
    CRC_BYTES,
    FOOTER_BYTES,
    TRAILER_BYTES,
    Block,
    Footer,
    KeyBounds,
    Numbers,
    Place,
    decode_footer,
)
from paimon.domain.index.btree_keys import BtreeKeys, Interval, Key

ReadRange: TypeAlias = Callable[[int, int], bytes]
"""Returns bytes of a file by their offset and number; fewer if the file ends before."""
_LEAST_BYTES = 1 << 20
_MOST_BYTES = 64 << 20
_MOST_NULLS = 32_000_000
"""A short bitmap can name more rows than there is memory for their ids."""
_MOST_SHARE = 4
"""A condition that selects more than 1/n of a large file is not worth its reading."""


@frozen(eq=False, slots=False)
class BtreeFile:
    """One index file, whose parts are read when a condition needs them."""

    size: int
    keys: BtreeKeys
    bounds: KeyBounds
    read: ReadRange
    _blocks: dict[int, Block] = field(factory=dict, init=False)

    def find_nulls(self) -> Numbers | None:
        """Return the row ids of null; None if they are too many to read."""
        place = self._footer.nulls if self.bounds.has_nulls else None
        if place is None:
            return np.empty(0, np.int64)
        if place.length > self._most_bytes:
            return None
        data = self._read_place(place, CRC_BYTES)
        if zlib.crc32(data[:-CRC_BYTES]) != int.from_bytes(data[-CRC_BYTES:], "little"):
            raise ValueError("its rows of null have a wrong checksum")
        try:
            rows = BitMap64.deserialize(data[:-CRC_BYTES])
        except (ValueError, MemoryError, OverflowError) as error:
            raise ValueError("its rows of null are no bitmap") from error
        return None if len(rows) > _MOST_NULLS else np.asarray(rows.to_array()).astype(np.int64)

    def find_rows(self, intervals: Sequence[Interval]) -> Numbers | None:
        """Return the row ids whose keys are in one of the intervals, in any order; None if they are too many."""
        wanted = [interval for interval in intervals if overlaps_bounds(self.keys, self.bounds, interval)]
        if not wanted:
            return np.empty(0, np.int64)
        spans = [self._find_blocks(interval) for interval in wanted]
        numbers = {number for span in spans for number in span}
        places = {number: self._index.place_at(number) for number in sorted(numbers)}
        if sum(place.length for place in places.values()) > self._most_bytes:
            return None
        found = [np.empty(0, np.int64)]
        for interval, span in zip(wanted, spans, strict=True):
            found += [self._select(self._load(number, places[number]), interval) for number in span]
        return np.concatenate(found)

    @property
    def _most_bytes(self) -> int:
        return min(max(self.size // _MOST_SHARE, _LEAST_BYTES), _MOST_BYTES)

    @cached_property
    def _footer(self) -> Footer:
        return decode_footer(self.read(max(0, self.size - FOOTER_BYTES), FOOTER_BYTES), self.size)

    @cached_property
    def _index(self) -> Block:
        return Block.decode(self._read_place(self._footer.index, TRAILER_BYTES))

    def _find_blocks(self, interval: Interval) -> range:
        """Return the numbers of the blocks that can have a key of an interval; the index has the last key of each."""
        low, high = interval
        first, last = self._search(self._index, low, 0), self._search(self._index, high, len(self._index))
        return range(first, min(last + 1, len(self._index)))

    def _search(self, block: Block, key: Key | None, default: int) -> int:
        """Return the number of the first entry of a block that is not below a key."""
        return default if key is None else bisect_left(range(len(block)), key, key=lambda i: self._key_at(block, i))

    def _key_at(self, block: Block, number: int) -> Key:
        return self.keys.decode(block.key_at(number))

    def _select(self, block: Block, interval: Interval) -> Numbers:
        low, high = interval
        return block.row_ids(self._search(block, low, 0), self._search(block, high, len(block)))

    def _load(self, number: int, place: Place) -> Block:
        if number not in self._blocks:
            self._blocks[number] = Block.decode(self._read_place(place, TRAILER_BYTES))
        return self._blocks[number]

    def _read_place(self, place: Place, more: int) -> bytes:
        if place.offset + place.length + more > self.size:
            raise ValueError("it names a part outside of it")
        data = self.read(place.offset, place.length + more)
        if len(data) != place.length + more:
            raise ValueError("it is shorter than its manifest entry names")
        return data

    def read_row_ids(self) -> Iterator[Numbers | None]:
        """Yield the row ids of each block, then those of null; this reads and checks the whole file."""
        for number in range(len(self._index)):
            place = self._index.place_at(number)
            block = Block.decode(self._read_place(place, TRAILER_BYTES))
            yield block.row_ids(0, len(block))
        yield self.find_nulls()

    def read_all(self) -> Iterator[tuple[Key, Numbers]]:
        """Yield each key with its row ids; for checks and tests."""
        for number in range(len(self._index)):
            block = self._load(number, self._index.place_at(number))
            for entry in range(len(block)):
                yield self._key_at(block, entry), block.row_ids(entry, entry + 1)


def overlaps_bounds(keys: BtreeKeys, bounds: KeyBounds, interval: Interval) -> bool:
    """Return whether a file with these first and last keys can have a key of an interval."""
    if bounds.first is None or bounds.last is None or (not keys.is_text and not bounds.last):
        return False
    low, high = interval
    return _is_below(keys.decode(bounds.first), high) and _is_at_least(keys.decode(bounds.last), low)


def _is_below(key: Key, high: Key | None) -> bool:
    return high is None or bool(key < high)  # type: ignore[operator]


def _is_at_least(key: Key, low: Key | None) -> bool:
    return low is None or bool(key >= low)  # type: ignore[operator]
