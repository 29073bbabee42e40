"""Deletion vectors: which rows of a data file are gone, by physical position from 0.

Law: a vector is a value: marking rows answers another one, and deleting is for ever. Positions are kept as roaring
bitmaps, one for each high word, so that writing a vector again gives the bytes that Java would write. Source:
`DeletionVector`, `BitmapDeletionVector`, `Bitmap64DeletionVector`.
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
    """The deleted rows of one file.

    Parameters
    ----------
    words : tuple of BitMap
        The low 32 bits of the positions whose high 32 bits are the place in the tuple. Never changed.
    """

    words: tuple[BitMap, ...] = ()

    @classmethod
    def of(cls, positions: Any) -> DeletionVector:
        """The vector of these positions, in any order."""
        return cls().with_deleted(positions)

    @property
    def cardinality(self) -> int:
        """How many rows are deleted."""
        return sum(len(word) for word in self.words)

    @property
    def last(self) -> int | None:
        """The largest position; None where nothing is deleted."""
        return max((word.max() + (i << _WORD_BITS) for i, word in enumerate(self.words) if word), default=None)

    @property
    def positions(self) -> Positions:
        """All positions, ascending: an array that is made for each call."""
        parts = [np.asarray(w.to_array()).astype(np.int64) + (i << _WORD_BITS) for i, w in enumerate(self.words)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def mask(self, first_row: int, row_count: int) -> Mask:
        """Marks the deleted ones among `row_count` rows from `first_row` on."""
        marked = np.zeros(row_count, dtype=bool)
        end = first_row + row_count
        for i in range(first_row >> _WORD_BITS, min(len(self.words), (end >> _WORD_BITS) + 1)):
            base = i << _WORD_BITS
            span = range(max(0, first_row - base), min(1 << _WORD_BITS, end - base))
            if span:
                within = np.asarray((self.words[i] & BitMap(span)).to_array()).astype(np.int64)
                marked[within + (base - first_row)] = True
        return marked

    def with_deleted(self, positions: Any) -> DeletionVector:
        """The vector with these positions too."""
        added = np.asarray(positions, dtype=np.int64)
        if not len(added):
            return self
        if added.min() < 0:
            raise ValueError(f"row positions start at 0, not at {added.min()}")
        highs = added >> _WORD_BITS
        count = max(len(self.words), int(highs.max()) + 1)
        old = [*self.words, *(BitMap() for _ in range(count - len(self.words)))]
        return DeletionVector(tuple(word | _bitmap(added[highs == i]) for i, word in enumerate(old)))


def _bitmap(positions: Positions) -> BitMap:
    low = array("I")
    low.frombytes(positions.astype(np.uint32).tobytes())
    return BitMap(low)


def runs_packed(words: Iterable[BitMap]) -> tuple[BitMap, ...]:
    """Copies whose containers are runs where that is shorter, as they are stored."""
    packed = tuple(word.copy() for word in words)
    for word in packed:
        word.run_optimize()
    return packed
