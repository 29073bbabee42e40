"""Numbers of rows as one bitmap for each binary digit, and comparisons of all rows with one number.

Source: `BitSliceIndexRoaringBitmap`, `BitSliceIndexBitmap`; O'Neil and Quass, Improved query performance with variant
indexes.
"""

# The rows 0, 1, 2, 3 with the numbers 5, 2, null, 3:
#
#     existing   {0, 1, 3}
#     slice 0    {0, 3}        the rows whose lowest digit is 1
#     slice 1    {1, 3}
#     slice 2    {0}
#
# A comparison goes from the highest digit to the lowest and keeps the rows that are equal so far. Where the digit of
# the wanted number is 1, those with 0 become smaller; where it is 0, those with 1 become larger.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from pyroaring import BitMap

from paimon.domain.index.index_bytes import mask_to_bitmap, to_bitmap
from paimon.domain.index.index_keys import Keys
from paimon.domain.predicate.expression import Operator


@frozen(eq=False)
class BitSlices:
    """The numbers of rows, each reduced by `minimum`; the lowest digit is the first."""

    minimum: int
    maximum: int
    existing: BitMap
    slices: Sequence[BitMap]

    @classmethod
    def of(cls, numbers: Keys, rows: Keys, maximum: int, slice_count: int) -> BitSlices:
        """Return the slices of numbers from 0 to `maximum`; `rows` ascend."""
        size = int(rows[-1]) + 1 if len(rows) else 0
        largest = max(maximum, 0)
        spread = np.zeros(size, np.min_scalar_type(largest))  # narrow numbers are masked faster
        spread[rows] = numbers
        slices = [mask_to_bitmap(spread & (1 << digit) != 0) for digit in range(largest.bit_length())]
        slices += [BitMap()] * (slice_count - len(slices))
        return cls(0, maximum, to_bitmap(rows), slices)

    def select(self, operator: Operator, number: int) -> BitMap:
        """Return the existing rows for which the comparison is true."""
        if not self.minimum <= number <= self.maximum:
            return self._select_beyond(operator, number > self.maximum)
        larger, smaller, equal = BitMap(), BitMap(), self.existing
        wanted = number - self.minimum
        for digit in range(len(self.slices) - 1, -1, -1):
            ones = equal & self.slices[digit]
            if wanted >> digit & 1:
                smaller |= equal - ones
                equal = ones
            else:
                larger |= ones
                equal = equal - ones
        match operator:
            case Operator.EQ:
                return equal
            case Operator.NE:
                return self.existing - equal
            case Operator.LT:
                return smaller
            case Operator.LE:
                return smaller | equal
            case Operator.GT:
                return larger
            case Operator.GE:
                return larger | equal

    def _select_beyond(self, operator: Operator, is_above: bool) -> BitMap:
        """Compare with a number that is larger, or smaller, than all."""
        smaller = operator in (Operator.LT, Operator.LE)
        larger = operator in (Operator.GT, Operator.GE)
        selects_all = operator is Operator.NE or (smaller if is_above else larger)
        return self.existing if selects_all else BitMap()
