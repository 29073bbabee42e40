"""The row ranges of a read: which part of a block of rows they cover, and the rows of a batch inside them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.types.arrow_arrays import from_numpy
from paimon.ports.formats import ReadRequest


@frozen(eq=False)
class RowRanges:
    """Ranges of row positions in ascending order; `ends` are exclusive."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, request: ReadRequest, row_count: int) -> RowRanges:
        """Return the ranges of a request for a file of so many rows."""
        ranges = ((0, row_count),) if request.row_ranges is None else request.row_ranges
        pairs = np.array(ranges, np.int64).reshape(-1, 2)
        return cls(pairs[:, 0], pairs[:, 1])

    @property
    def row_count(self) -> int:
        """The number of rows in all ranges."""
        return int((self.ends - self.starts).sum())

    def select_block(self, first: int, rows: int) -> RowRanges:
        """Return the parts of the ranges in a block of so many rows, relative to `first`, its first position."""
        begin = int(np.searchsorted(self.ends, first, side="right"))
        end = max(int(np.searchsorted(self.starts, first + rows)), begin)
        return RowRanges(np.maximum(self.starts[begin:end] - first, 0), np.minimum(self.ends[begin:end] - first, rows))

    def find_hull(self, first: int, rows: int) -> tuple[int, int]:
        """Return the smallest range with all wanted rows of a block (see `select_block`); empty without any."""
        inside = self.select_block(first, rows)
        return (int(inside.starts[0]), int(inside.ends[-1])) if len(inside.starts) else (0, 0)

    def cut(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return the wanted rows of a batch, of which the first one has the position `first`."""
        inside = self.select_block(first, batch.num_rows)
        if len(inside.starts) <= 1:
            low, high = self.find_hull(first, batch.num_rows)
            return batch if high - low == batch.num_rows else batch.slice(low, high - low)
        steps = np.zeros(batch.num_rows + 1, np.int64)
        np.add.at(steps, inside.starts, 1)
        np.add.at(steps, inside.ends, -1)
        return batch.filter(from_numpy(np.cumsum(steps[:-1]) > 0))
