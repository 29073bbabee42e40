"""The buckets of key hashes, in sorted arrays: about 8 bytes for each hash.

Invariant: each hash has one bucket, which never changes. Blocks are sorted and disjoint, so an insert copies only the
blocks that it changes. `KeyHashes` and `HashFilter` are state machines.
"""

# A partition can have hundreds of millions of hashes, and each batch of a writer looks up as many as it has rows, and
# adds some. A dict takes 100 bytes for a hash; arrays of 4 + 2 bytes are small, but an insert into a sorted array
# copies it. So new hashes are merged as in an LSM tree:
#
#     recent    run 2:  1,000    run 1:  5,000    run 0:  30,000      each has 4 times as many as all the newer ones
#     blocks    [lowest ...)  [starts[1] ...)  [starts[2] ...)        sorted and disjoint, up to 2**20 hashes each
#
# 1. `insert` appends a run, and merges the newest runs until sizes fall by the ratio again, so that a hash is copied a
#    few times only. When the runs are large in all, `_move_recent` merges them into the blocks, block after block.
# 2. `find` takes ascending hashes, searches in the block of each, and then in the runs for those that are still
#    unknown.
# 3. Most hashes of a batch are new ones. `HashFilter`, a Bloom filter whose bits lie in the order of the hashes, shows
#    which of them are certainly unknown, and so saves nearly all searches.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.int32]
BucketNumbers = npt.NDArray[np.int16]

_MIN_INDEX_BITS = 7
_MAX_INDEX_BITS = 26
"""A larger filter would have no bits of the hash left to select bits of a byte."""
_HASH_BITS = 32
_SIGN = np.uint32(1 << 31)
_MASKS = np.array([1 << (n & 7) | 1 << (n >> 3) for n in range(64)], np.uint8)


class HashFilter:
    """A set of hashes that may also report hashes that were never added.

    The highest bits of a hash select its byte, so that sorted hashes read the filter in order, and the next six select
    two bits of the byte. It takes two to four bytes for each of `count` expected hashes, and at most 64 MiB.
    """

    def __init__(self, count: int = 0) -> None:
        index_bits = max(_MIN_INDEX_BITS, min(_MAX_INDEX_BITS, (2 * count).bit_length()))
        self._shift = np.uint32(_HASH_BITS - index_bits)
        self._bits = np.zeros(1 << index_bits, np.uint8)

    @property
    def held_bytes(self) -> int:
        """The size of the filter."""
        return self._bits.nbytes

    def is_too_small(self, count: int) -> bool:
        """Return whether so many hashes need a larger filter, and one is possible."""
        return self._bits.size < min(count, 1 << _MAX_INDEX_BITS)

    def add(self, hashes: Hashes) -> None:
        """Add hashes."""
        np.bitwise_or.at(self._bits, *self._locate(hashes))

    def find_candidates(self, hashes: Hashes) -> npt.NDArray[np.int64]:
        """Return the positions of the hashes that may have been added, in ascending order."""
        places, masks = self._locate(hashes)
        return np.flatnonzero(self._bits[places] & masks == masks)

    def _locate(self, hashes: Hashes) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
        """Return the byte of each hash, and the bits in it; ascending hashes have ascending bytes."""
        numbers = hashes.view(np.uint32) ^ _SIGN
        masks = _MASKS[(numbers >> (self._shift - np.uint32(6))) & np.uint32(63)]
        return numbers >> self._shift, masks


_Run: TypeAlias = tuple[Hashes, BucketNumbers]
UNASSIGNED = -1
"""The bucket of a hash that is not known."""
_BLOCK_HASHES = 1 << 20
"""A block with more hashes is split."""
_RECENT_SHARE = 8
"""Recent hashes are moved to their blocks when they are more than a block, and than this part (1/n) of all."""
_MAX_RECENT_HASHES = 4 * _BLOCK_HASHES
"""More recent hashes are moved in any case, because a merge of runs needs four times their memory."""
_RUN_RATIO = 4
"""Each recent run is at least so many times as large as all the newer ones."""
_LOWEST = np.iinfo(np.int32).min
_EMPTY_RUN: _Run = (np.zeros(0, np.int32), np.zeros(0, np.int16))


class KeyHashes:
    """A map from key hashes to buckets."""

    def __init__(self) -> None:
        self._blocks = [_EMPTY_RUN]
        self._starts = np.array([_LOWEST], np.int32)
        # Inserts go here first, so that they do not copy all blocks. The oldest and largest run is the first.
        self._recent: list[_Run] = []
        self._filter = HashFilter()

    def __len__(self) -> int:
        return _count([*self._blocks, *self._recent])

    @property
    def held_bytes(self) -> int:
        """The size of the arrays."""
        runs = sum(hashes.nbytes + buckets.nbytes for hashes, buckets in [*self._blocks, *self._recent])
        return runs + self._filter.held_bytes

    def find(self, hashes: Hashes) -> BucketNumbers:
        """Return the bucket of each hash, `UNASSIGNED` for unknown ones; `hashes` must be in ascending order."""
        candidates = self._filter.find_candidates(hashes)
        if len(candidates) == len(hashes):
            return self._search(hashes)
        found = np.full(len(hashes), UNASSIGNED, np.int16)
        found[candidates] = self._search(hashes[candidates])
        return found

    def insert(self, hashes: Hashes, buckets: BucketNumbers) -> None:
        """Insert unknown, distinct, ascending hashes with their buckets; keeps both arrays without a copy."""
        if not len(hashes):
            return
        size, first = len(hashes), len(self._recent)
        while first and len(self._recent[first - 1][0]) < _RUN_RATIO * size:
            first -= 1
            size += len(self._recent[first][0])
        self._recent[first:] = [_merge_runs([*self._recent[first:], (hashes, buckets)])]
        total = len(self)
        if _count(self._recent) > min(max(_BLOCK_HASHES, total // _RECENT_SHARE), _MAX_RECENT_HASHES):
            self._move_recent()
        if self._filter.is_too_small(total):
            self._filter = HashFilter(total)
            for known, _ in [*self._blocks, *self._recent]:
                self._filter.add(known)
        else:
            self._filter.add(hashes)

    def select(self, bucket: int) -> Hashes:
        """Return the hashes of a bucket."""
        return np.concatenate([known[buckets == bucket] for known, buckets in [*self._blocks, *self._recent]])

    def _search(self, hashes: Hashes) -> BucketNumbers:
        found = np.empty(len(hashes), np.int16)
        for number, start, end in self._cut(hashes):
            found[start:end] = _find_in(*self._blocks[number], hashes[start:end])
        for run in self._recent:
            missing = np.flatnonzero(found == UNASSIGNED)
            found[missing] = _find_in(*run, hashes[missing])
        return found

    def _move_recent(self) -> None:
        """Move the recent hashes to their blocks, one block after the other, so that few copies exist at a time."""
        pieces: list[list[_Run]] = [[] for _ in self._blocks]
        for hashes, buckets in self._recent:
            for number, start, end in self._cut(hashes):
                pieces[number].append((hashes[start:end], buckets[start:end]))
        self._recent.clear()
        merged: list[_Run] = []
        for number, block in enumerate(self._blocks):
            merged.extend(_split_block(*_merge_runs([block, *pieces[number]])))
            self._blocks[number], pieces[number] = _EMPTY_RUN, []
        self._blocks = merged
        self._starts = np.array([_LOWEST, *(known[0] for known, _ in self._blocks[1:])], np.int32)

    def _cut(self, hashes: Hashes) -> Iterator[tuple[int, int, int]]:
        """Yield the number of each block that `hashes` fall into, and the range of these hashes."""
        ends = np.append(np.searchsorted(hashes, self._starts[1:]), len(hashes)).tolist()
        start = 0
        for number, end in enumerate(ends):
            if end > start:
                yield number, start, end
            start = end


def _find_in(known: Hashes, buckets: BucketNumbers, hashes: Hashes) -> BucketNumbers:
    if not len(known):
        return np.full(len(hashes), UNASSIGNED, np.int16)
    places = np.searchsorted(known, hashes)
    places[places == len(known)] = 0
    return np.where(known[places] == hashes, buckets[places], np.int16(UNASSIGNED))


def _merge_runs(runs: Sequence[_Run]) -> _Run:
    """Return the hashes of all runs in ascending order, with their buckets."""
    if len(runs) == 1:
        return runs[0]
    # A stable sort (Timsort) merges sorted runs of 64-bit numbers faster than a search for the place of each hash.
    packed = np.empty(_count(runs), np.int64)
    start = 0
    for hashes, buckets in runs:
        part = packed[start : start + len(hashes)]
        part[:] = hashes
        part <<= 16
        part |= buckets
        start += len(hashes)
    packed.sort(kind="stable")
    return (packed >> 16).astype(np.int32), (packed & 0xFFFF).astype(np.int16)


def _count(runs: Sequence[_Run]) -> int:
    return sum(len(hashes) for hashes, _ in runs)


def _split_block(hashes: Hashes, buckets: BucketNumbers) -> Iterator[tuple[Hashes, BucketNumbers]]:
    if len(hashes) <= _BLOCK_HASHES:
        yield hashes, buckets
        return
    size = _BLOCK_HASHES // 2
    for start in range(0, len(hashes), size):
        # Copies, because a view keeps the whole block in memory.
        yield hashes[start : start + size].copy(), buckets[start : start + size].copy()
