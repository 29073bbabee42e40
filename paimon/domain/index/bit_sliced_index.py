"""The file index `bsi`: the numbers of a column by their binary digits, positive and negative ones apart.

Invariant: the bytes equal those that Java writes for the same column. What does not fit together is a `ValueError`.
Source: `BitSliceIndexBitmapFileIndex`, `BitSliceIndexRoaringBitmap`.
"""

from __future__ import annotations

from attrs import frozen
from pyroaring import BitMap

from paimon.domain.index.bit_slices import BitSlices
from paimon.domain.index.grouped_rows import NumberedRows
from paimon.domain.index.index_bytes import IndexBytes, pack_bitmap, pack_int, pack_long
from paimon.domain.index.index_keys import Key, Keys
from paimon.domain.predicate.expression import Operator
from paimon.domain.types.arrow_arrays import to_numpy

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
