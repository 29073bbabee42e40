"""Sets of row ids, as ranges that are sorted and disjoint.

Invariant: ranges that are at most a few rows apart may be joined, so a set can have more rows than were given to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

_CLOSE_ROWS = 1_024
"""Row ids that are closer are in one range: decoding some rows costs less than another range."""
_END = np.iinfo(np.int64).max
_Bounds = npt.NDArray[np.int64]


@frozen(eq=False)
class RowIdRanges:
    """Row ids in ranges of a first id and an end, which is not included."""

    bounds: _Bounds

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> RowIdRanges:
        """Return the set with the ids of all ranges, in any order."""
        return cls(_join(np.array(list(ranges), np.int64).reshape(-1, 2), 0))

    @classmethod
    def of_ids(cls, ids: _Bounds) -> RowIdRanges:
        """Return a set with the ids, in any order, and perhaps some near them."""
        sorted_ids = np.sort(ids)
        return cls(_join(np.stack([sorted_ids, sorted_ids + 1], axis=1), _CLOSE_ROWS))

    @classmethod
    def all(cls) -> RowIdRanges:
        """Return the set of all ids."""
        return cls.of([(0, _END)])

    @property
    def is_empty(self) -> bool:
        """Whether no id is in the set."""
        return not len(self.bounds)

    @classmethod
    def union(cls, parts: Sequence[RowIdRanges]) -> RowIdRanges:
        """Return the ids of all parts, of which there is at least one."""
        return cls(_join(np.concatenate([part.bounds for part in parts]), 0))

    def unite(self, other: RowIdRanges) -> RowIdRanges:
        """Return the ids of both."""
        return RowIdRanges.union([self, other])

    def complement(self) -> RowIdRanges:
        """Return all ids that are not in the set."""
        edges = np.concatenate([[0], self.bounds.reshape(-1), [_END]]).reshape(-1, 2)
        return RowIdRanges(edges[edges[:, 0] < edges[:, 1]])

    def intersect(self, other: RowIdRanges) -> RowIdRanges:
        """Return the ids that are in both."""
        return self.complement().unite(other.complement()).complement()

    def cut(self, first: int, end: int) -> tuple[tuple[int, int], ...]:
        """Return the ranges of the ids from `first` to `end`, which is not included."""
        low = np.searchsorted(self.bounds[:, 1], first, side="right")
        high = np.searchsorted(self.bounds[:, 0], end, side="left")
        part = np.clip(self.bounds[low:high], first, end)
        return tuple(zip(part[:, 0].tolist(), part[:, 1].tolist(), strict=True))


def _join(ranges: _Bounds, gap: int) -> _Bounds:
    """Sort ranges, and join those with at most so many ids between them."""
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    if not len(ranges):
        return ranges
    ends = np.maximum.accumulate(ranges[:, 1])
    cuts = np.flatnonzero(ranges[1:, 0] - gap > ends[:-1]) + 1
    return np.stack([ranges[np.append(0, cuts), 0], ends[np.append(cuts - 1, len(ends) - 1)]], axis=1)
