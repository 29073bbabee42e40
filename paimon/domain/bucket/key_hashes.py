"""The buckets of key hashes, in sorted arrays: about 8 bytes for each hash.

Invariant: each hash has one bucket, which never changes. The blocks are sorted and disjoint, so an insert copies only
the blocks that it changes. New hashes are merged as in an LSM tree: first in runs, later with the blocks. A state
machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from paimon.domain.bucket.hash_filter import HashFilter

Hashes = npt.NDArray[np.int32]
BucketNumbers = npt.NDArray[np.int16]
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
        """Add unknown, distinct hashes, in ascending order, with their buckets.

        The arrays are kept without a copy, so they must not change later.
        """
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
