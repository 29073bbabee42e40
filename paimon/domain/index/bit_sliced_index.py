"""The file index `bsi`, and numbers of rows as one bitmap for each binary digit, which `range-bitmap` uses, too.

Invariant: the bytes equal those that Java writes for the same column. What does not fit together is a `ValueError`.
Source: `BitSliceIndexBitmapFileIndex`, `BitSliceIndexRoaringBitmap`, `BitSliceIndexBitmap`; O'Neil and Quass, Improved
query performance with variant indexes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from pyroaring import BitMap

from paimon.domain.index.index_bytes import IndexBytes, mask_to_bitmap, pack_bitmap, pack_int, pack_long, to_bitmap
from paimon.domain.index.index_keys import Key, Keys, NumberedRows
from paimon.domain.predicate.expression import Operator
from paimon.domain.types.arrow_arrays import to_numpy

# The rows 0, 1, 2, 3 with the numbers 5, 2, null, 3:
#
#     existing   {0, 1, 3}
#     slice 0    {0, 3}        the rows whose lowest digit is 1
#     slice 1    {1, 3}
#     slice 2    {0}
#
# A comparison goes from the highest digit to the lowest and keeps the rows that are equal so far. Where the digit of
# the wanted number is 1, those with 0 become smaller; where it is 0, those with 1 become larger.


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


_VERSION = b"\x01"
_MOST_SLICES = 64
_EMPTY = BitSlices(0, 0, BitMap(), ())
_SMALLEST = -(1 << 63)


def encode_bit_sliced_index(column: NumberedRows) -> bytes | None:
    """Encode the rows of a column of numbers; None if it has the smallest number of 64 bits, which has no opposite."""
    keys = to_numpy(column.keys)
    if len(keys) and keys.min() == _SMALLEST:
        return None
    numbers, rows = keys[column.numbers], column.rows
    is_negative = numbers < 0
    positive = _encode_slices(numbers[~is_negative], rows[~is_negative])
    return _VERSION + pack_int(column.row_count) + positive + _encode_slices(-numbers[is_negative], rows[is_negative])


def _encode_slices(numbers: Keys, rows: Keys) -> bytes:
    if not len(numbers):
        return b"\x00"
    maximum = int(numbers.max())
    slices = BitSlices.of(numbers, rows, maximum, maximum.bit_length())
    head = b"\x01" + _VERSION + pack_long(0) + pack_long(maximum) + pack_bitmap(slices.existing)
    return head + pack_int(len(slices.slices)) + b"".join(map(pack_bitmap, slices.slices))


@frozen(eq=False)
class BitSlicedIndex:
    """The slices of the numbers from 0, and of the absolute values of the others."""

    row_count: int
    positive: BitSlices
    negative: BitSlices

    @classmethod
    def decode(cls, data: bytes, row_count: int) -> BitSlicedIndex:
        """Decode an index of a file with so many rows; a `ValueError` if it is damaged."""
        source = IndexBytes(data)
        source.read_version(1)
        if source.read_int() != row_count:
            raise ValueError("the number of rows differs")
        positive = _decode_slices(source, row_count)
        return cls(row_count, positive, _decode_slices(source, row_count))

    def select(self, operator: Operator, key: Key) -> BitMap:
        """Return the rows that the comparison with a number selects."""
        assert isinstance(key, int)
        if key >= 0:
            rows = self.positive.select(operator, key)
            return rows | self.negative.existing if operator in _FOR_ALL_NEGATIVE else rows
        rows = self.negative.select(_OPPOSITES.get(operator, operator), -key)
        return rows | self.positive.existing if operator in _FOR_ALL_POSITIVE else rows

    def select_nulls(self) -> BitMap:
        """Return the rows with null."""
        return BitMap(range(self.row_count)) - self.positive.existing - self.negative.existing


_FOR_ALL_NEGATIVE = (Operator.LT, Operator.LE, Operator.NE)
_FOR_ALL_POSITIVE = (Operator.GT, Operator.GE, Operator.NE)
_OPPOSITES = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}


def _decode_slices(source: IndexBytes, row_count: int) -> BitSlices:
    if not source.read_flag():
        return _EMPTY
    source.read_version(1)
    minimum, maximum = source.read_long(), source.read_long()
    existing = source.read_bitmap(row_count)
    count = source.read_count()
    if count > _MOST_SLICES or minimum < 0 or count != (maximum - minimum).bit_length():
        raise ValueError(f"{count} slices for the numbers from {minimum} to {maximum}")
    return BitSlices(minimum, maximum, existing, [source.read_bitmap(row_count) for _ in range(count)])
