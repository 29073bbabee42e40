"""Ranges of the rows of a data file, without its deleted rows: what a shard or a selective condition reads of a file.

Invariant: positions are physical, so that slices of a file are disjoint whatever a predicate selects.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from attrs import field, frozen
from pyroaring import BitMap

from paimon.domain.deletion.vector import DeletionVector, Mask, Positions

_CLOSE_ROWS = 1_024
"""Selected rows that are closer are in one range: decoding some rows costs less than another range."""

Ranges = tuple[tuple[int, int], ...]


@frozen(eq=False)
class RowSlice:
    """The rows of a file in ascending ranges of positions; the end of a range is exclusive."""

    ranges: Ranges
    deleted: DeletionVector | None = None
    # the rows in the ranges that can match a condition; None: all
    selected: BitMap | None = field(default=None, repr=False)

    @classmethod
    def of_rows(cls, rows: BitMap, deleted: DeletionVector | None = None) -> RowSlice:
        """Return the slice with these rows, in few ranges."""
        positions = np.asarray(rows.to_array()).astype(np.int64)
        cuts = np.flatnonzero(np.diff(positions) > _CLOSE_ROWS)
        starts = positions[np.concatenate([[0], cuts + 1])] if len(positions) else positions
        ends = positions[np.concatenate([cuts, [len(positions) - 1]])] + 1 if len(positions) else positions
        return cls(tuple(zip(starts.tolist(), ends.tolist(), strict=True)), deleted, rows)

    @property
    def row_count(self) -> int:
        """The number of rows in the ranges, with deleted ones."""
        return sum(end - start for start, end in self.ranges)

    def cut(self, first_row: int, row_count: int) -> RowSlice:
        """Return the slice of a file that has consecutive rows of this file, with the positions in that file."""
        end = first_row + row_count
        ranges = ((max(a, first_row) - first_row, min(b, end) - first_row) for a, b in self.ranges)
        deleted = None if self.deleted is None else self.deleted.cut(first_row, row_count)
        selected = None
        if self.selected is not None:
            selected = next(iter(DeletionVector((self.selected,)).cut(first_row, row_count).words), BitMap())
        return RowSlice(tuple((a, b) for a, b in ranges if a < b), deleted, selected)

    def find_positions(self, first_row: int, row_count: int) -> Positions:
        """Return the positions in the file of consecutive rows of the slice."""
        bounds = np.array(self.ranges, np.int64).reshape(-1, 2)
        ends = np.cumsum(bounds[:, 1] - bounds[:, 0])
        rows = np.arange(first_row, first_row + row_count)
        places = np.searchsorted(ends, rows, side="right")
        positions: Positions = bounds[places, 1] - (ends[places] - rows)
        return positions

    def mask(self, first_row: int, row_count: int) -> Mask | None:
        """Mark the rows to leave out among consecutive rows of the slice; None if no row can be left out."""
        if not row_count or (self.deleted is None and self.selected is None):
            return None
        positions = self.find_positions(first_row, row_count)
        first, last = int(positions[0]), int(positions[-1])
        marked = np.zeros(row_count, dtype=bool)
        if self.deleted is not None:
            marked |= self.deleted.mask(first, last + 1 - first)[positions - first]
        if self.selected is not None:
            wanted = DeletionVector((self.selected,)).mask(first, last + 1 - first)
            marked |= ~wanted[positions - first]
        return marked


def _to_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


@frozen(eq=False)
class RowSelection:
    """The rows of a file that a predicate can select."""

    # ascending positions; None: all rows
    rows: BitMap | None
    # the indexes that leave out rows, such as "bitmap(color)"
    indexes: tuple[str, ...] = field(converter=_to_names, default=())

    @property
    def is_empty(self) -> bool:
        """Whether no row can be selected, so that the file need not be read."""
        return self.rows is not None and not self.rows

    def intersect(self, other: RowSelection) -> RowSelection:
        """Return the rows that both can select."""
        if self.rows is None or other.rows is None:
            return self if other.rows is None else other
        return RowSelection(self.rows & other.rows, self.indexes + other.indexes)

    def unite(self, other: RowSelection) -> RowSelection:
        """Return the rows that one of them can select."""
        if self.rows is None or other.rows is None:
            return ALL_ROWS
        return RowSelection(self.rows | other.rows, self.indexes + other.indexes)


ALL_ROWS = RowSelection(None)
NO_ROWS = RowSelection(BitMap())
