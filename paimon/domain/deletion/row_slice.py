"""A range of the rows of a data file, without its deleted rows: what one shard reads of a file.

Invariant: positions are physical, so that slices of a file are disjoint whatever a predicate selects.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.deletion.vector import DeletionVector, Mask


@frozen(eq=False)
class RowSlice:
    """The rows of a file from position `first` up to, but not including, `end`."""

    first: int
    end: int
    deleted: DeletionVector | None = None

    def mask(self, first_row: int, row_count: int) -> Mask | None:
        """Mark the deleted rows in a range of the slice; None where no row is deleted."""
        return None if self.deleted is None else self.deleted.mask(self.first + first_row, row_count)
