"""Deletion vectors: the deleted rows of a data file, by physical position from 0.

Positions are stored as roaring bitmaps, one for each value of the high 32 bits. An encoded vector therefore has the
bytes that Java writes.

Invariant: A vector is immutable. Adding positions returns a new vector, and a deleted row is never restored.
Source: `DeletionVector`, `BitmapDeletionVector`, `Bitmap64DeletionVector`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen
from pyroaring import BitMap

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

_WORD_BITS = 32


@frozen(eq=False)
class DeletionVector:
    """The positions of the deleted rows of one file."""

    # low 32 bits of the positions; the tuple index is their high 32 bits; the bitmaps are never modified
    words: tuple[BitMap, ...] = ()

    @classmethod
    def of(cls, positions: Any) -> DeletionVector:
        """Return a vector with these positions, in any order."""
        return cls().with_deleted(positions)

    @property
    def cardinality(self) -> int:
        """The number of deleted rows."""
        return sum(len(word) for word in self.words)

    @property
    def last(self) -> int | None:
        """The largest position; None if nothing is deleted."""
        return max((word.max() + (i << _WORD_BITS) for i, word in enumerate(self.words) if word), default=None)

    @property
    def positions(self) -> Positions:
        """All positions in ascending order; each call creates a new array."""
        parts = [np.asarray(w.to_array()).astype(np.int64) + (i << _WORD_BITS) for i, w in enumerate(self.words)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def mask(self, first_row: int, row_count: int) -> Mask:
        """Mark the deleted rows in a range of rows."""
        marked = np.zeros(row_count, dtype=bool)
        end = first_row + row_count
        for i in range(first_row >> _WORD_BITS, min(len(self.words), (end >> _WORD_BITS) + 1)):
            base = i << _WORD_BITS
            span = range(max(0, first_row - base), min(1 << _WORD_BITS, end - base))
            if span:
                within = np.asarray((self.words[i] & BitMap(span)).to_array()).astype(np.int64)
                marked[within + (base - first_row)] = True
        return marked

    def cut(self, first_row: int, row_count: int) -> DeletionVector:
        """Return the vector of a file that has a range of the rows of this file, with the positions in that file."""
        return DeletionVector.of(np.flatnonzero(self.mask(first_row, row_count)))

    def with_deleted(self, positions: Any) -> DeletionVector:
        """Return a new vector with these positions added, in any order; the same object if there are none."""
        added = np.asarray(positions, dtype=np.int64)
        if not len(added):
            return self
        if added.min() < 0:
            raise ValueError(f"Row position {added.min()} is negative")
        highs = added >> _WORD_BITS
        count = max(len(self.words), int(highs.max()) + 1)
        old = [*self.words, *(BitMap() for _ in range(count - len(self.words)))]
        return DeletionVector(tuple(word | _to_bitmap(added[highs == i]) for i, word in enumerate(old)))


def _to_bitmap(positions: Positions) -> BitMap:
    low = array("I")
    low.frombytes(positions.astype(np.uint32).tobytes())
    return BitMap(low)


def pack_runs(words: Iterable[BitMap]) -> tuple[BitMap, ...]:
    """Return copies of the bitmaps, with containers stored as runs where runs are shorter."""
    packed = tuple(word.copy() for word in words)
    for word in packed:
        word.run_optimize()
    return packed
