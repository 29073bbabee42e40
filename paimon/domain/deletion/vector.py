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
from attrs import field, frozen
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
    positions : ndarray
        The same positions, ascending.
    """

    words: tuple[BitMap, ...] = ()
    positions: Positions = field(init=False)

    @positions.default
    def _positions(self) -> Positions:
        parts = [np.asarray(w.to_array()).astype(np.int64) + (i << _WORD_BITS) for i, w in enumerate(self.words)]
        found: Positions = np.concatenate([np.empty(0, np.int64), *parts])
        found.setflags(write=False)
        return found

    @classmethod
    def of(cls, positions: Any) -> DeletionVector:
        """The vector of these positions, in any order."""
        return cls().with_deleted(positions)

    @property
    def cardinality(self) -> int:
        """How many rows are deleted."""
        return len(self.positions)

    def mask(self, first_row: int, row_count: int) -> Mask:
        """Marks the deleted ones among `row_count` rows from `first_row` on."""
        marked = np.zeros(row_count, dtype=bool)
        low, high = np.searchsorted(self.positions, [first_row, first_row + row_count])
        marked[self.positions[low:high] - first_row] = True
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
