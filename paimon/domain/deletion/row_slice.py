"""A range of the rows of a data file, without its deleted rows: what one shard reads of a file.

Invariant: positions are physical, so that slices of a file are disjoint whatever a predicate selects.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.deletion.vector import DeletionVector, Mask


@frozen(eq=False)
class RowSlice:
    """The rows of a file from one position to another.

    Parameters
    ----------
    first, end : int
        The position of the first row, and the position after the last row.
    deleted : DeletionVector, optional
        The deleted rows of the whole file.
    """

    first: int
    end: int
    deleted: DeletionVector | None = None

    def mask(self, first_row: int, row_count: int) -> Mask | None:
        """Mark the deleted rows in a range of the slice; None where no row is deleted.

        Parameters
        ----------
        first_row : int
            The position of the first row of the range in the slice.
        row_count : int
            The number of rows in the range.

        Returns
        -------
        numpy array of bool, or None
            One value for each row of the range; True is deleted.
        """
        return None if self.deleted is None else self.deleted.mask(self.first + first_row, row_count)
