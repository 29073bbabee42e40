"""Bounds of one column read out of the statistics of many files at once.

Law: equals `stats.codec.column_stats` file by file. Fixed-width parts of BinaryRows are gathered as numpy words, text
by its offsets; what a row does not hold is unknown, and an offset that leaves its row is an unknown bound, never a
read of the neighbour. Source: `SimpleStats`, `BinaryRow`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.predicate.pruning_columnar import Bounds, Mask
from paimon.domain.stats.simple_stats import SimpleStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow_arrays import make_scalar, to_numpy
from paimon.domain.types.data_types import DataType

Integers = npt.NDArray[np.int64]

_ARITY_BYTES = 4
_NEGATIVE_ZERO, _POSITIVE_ZERO, _NAN = -1, 0, 2**63 - 1
"""Ordinals of special floats."""
_MAX_WIDE_MILLIS = 9_000_000_000_000
"""Below this, nanoseconds since the epoch fit 64 bits."""


@frozen(eq=False)
class _Rows:
    """Serialised rows in one buffer, each given by its start and end (arity included)."""

    buffer: npt.NDArray[np.uint8]
    starts: Integers
    ends: Integers

    def words(self, at: Integers) -> Integers:
        """Eight bytes, little-endian, at absolute positions (0 where they leave the buffer)."""
        if len(self.buffer) < 8:
            return np.zeros(len(at), dtype=np.int64)
        inside = (at >= 0) & (at + 8 <= len(self.buffer))
        # Eight bytes from every place on, without a copy: overlapping words one byte apart.
        every = np.ndarray((len(self.buffer) - 7,), dtype="<i8", buffer=self.buffer.data, strides=(1,))
        words: Integers = every[at if bool(inside.all()) else np.where(inside, at, 0)]
        return words * inside


def bounds_of(stats: pa.StructArray, position: int, width: int, data_type: DataType) -> Bounds:
    """Statistics of the column at `position`, which has this type; rows of another number of columns tell nothing.

    Parameters
    ----------
    stats : pa.StructArray
        `_MIN_VALUES`, `_MAX_VALUES` (serialised rows), `_NULL_COUNTS` (lists).
    width : int
        How many columns the rows must have.
    """
    low, low_known = _ordinals(stats.field("_MIN_VALUES"), position, width, data_type)
    high, high_known = _ordinals(stats.field("_MAX_VALUES"), position, width, data_type)
    return Bounds(low, high, low_known, high_known, _null_counts(stats.field("_NULL_COUNTS"), position, width))


def exact_bounds(rows: pa.BinaryArray, position: int, width: int, data_type: DataType) -> Bounds:
    """Rows taken as the statistics of one row each: both bounds are its value, and null counts 0 or 1."""
    values, known = _ordinals(rows, position, width, data_type)
    return Bounds(values, values, known, known, np.where(known, 0, 1))


def stats_array(stats: Sequence[SimpleStats]) -> pa.StructArray:
    """Statistics as the columns that `bounds_of` takes."""
    counts = pa.array([list(s.null_counts) for s in stats], pa.list_(pa.int64()))
    low, high = ([getattr(s, name) for s in stats] for name in ("min_values", "max_values"))
    parts = [pa.array(low, pa.binary()), pa.array(high, pa.binary()), counts]
    return pa.StructArray.from_arrays(parts, ["_MIN_VALUES", "_MAX_VALUES", "_NULL_COUNTS"])


def all_null(row_counts: Integers) -> Bounds:
    """Statistics of a column that the files do not have."""
    nothing = np.zeros(len(row_counts), dtype=np.int64)
    unknown = np.zeros(len(row_counts), dtype=bool)
    return Bounds(nothing, nothing, unknown, unknown, row_counts)


def without_bounds(bounds: Bounds) -> Bounds:
    """The null counts alone."""
    unknown = np.zeros(len(bounds.null_counts), dtype=bool)
    return evolve(bounds, lower_known=unknown, upper_known=unknown)


def floating_bounds(bounds: Bounds, in_orc: Mask) -> Bounds:
    """Bounds of a floating column as far as they hold in Java's order.

    Either zero may stand for the other one. ORC leaves NaN, the largest value, out of its bounds, or makes it both of
    them.
    """
    lower = np.where(bounds.lower == _POSITIVE_ZERO, _NEGATIVE_ZERO, bounds.lower)
    upper = np.where(bounds.upper == _NEGATIVE_ZERO, _POSITIVE_ZERO, bounds.upper)
    lower_known = bounds.lower_known & ~(in_orc & (lower == _NAN))
    return Bounds(lower, upper, lower_known, bounds.upper_known & ~in_orc, bounds.null_counts)


def _null_counts(counts: pa.ListArray, position: int, width: int) -> Integers:
    offsets = to_numpy(counts.offsets)
    held = to_numpy(counts.is_valid()) & (offsets[1:] - offsets[:-1] == width)
    values = to_numpy(counts.values.fill_null(make_scalar(-1, counts.values.type)))
    found = np.full(len(counts), -1, dtype=np.int64)
    found[held] = values[offsets[:-1][held] + position]
    return found


def _rows_of(array: pa.BinaryArray) -> _Rows:
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    data = array.buffers()[2]
    buffer = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    return _Rows(buffer, offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64))


def _ordinals(array: pa.BinaryArray, position: int, width: int, data_type: DataType) -> tuple[Any, Mask]:
    rows = _rows_of(array)
    arity = rows.words(rows.starts).astype("<i8").view("<u4")[::2].byteswap().astype(np.int64)
    null_area = (arity + 63 + 8) // 64 * 8
    fixed = rows.starts + _ARITY_BYTES + null_area + 8 * position
    known = (arity == width) & (fixed + 8 <= rows.ends)
    bit = 8 + position
    null_at = np.minimum(rows.starts + _ARITY_BYTES + bit // 8, max(len(rows.buffer) - 1, 0))
    if len(rows.buffer):
        known &= (rows.buffer[null_at] >> (bit % 8) & 1) == 0
    decode = _DECODERS.get(type(data_type), _nothing)
    return decode(rows, np.where(known, fixed, 0), known, data_type)


Decoded = tuple[Any, Mask]


def _whole(bits: int) -> Callable[[_Rows, Integers, Mask, DataType], Decoded]:
    shift = 64 - bits

    def decode(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
        return (rows.words(fixed) << shift) >> shift, known

    return decode


def _double(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    return _float_ordinals(rows.words(fixed).view("<f8")), known


def _float(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    return _float_ordinals(rows.words(fixed).astype("<i4").view("<f4").astype("<f8")), known


def _float_ordinals(values: npt.NDArray[np.float64]) -> Integers:
    bits = values.view("<i8")
    ordered = np.where(bits >= 0, bits, -(bits & np.int64(2**63 - 1)) - 1)
    found: Integers = np.where(np.isnan(values), np.int64(_NAN), ordered)
    return found


def _decimal(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    assert isinstance(data_type, dt.DecimalType)
    if data_type.precision <= 18:
        return rows.words(fixed), known
    words = rows.words(fixed)
    starts, lengths = rows.starts + _ARITY_BYTES + (words >> 32), words & 0xFFFFFFFF
    known = known & (lengths <= 16) & (starts >= rows.starts) & (starts + lengths <= rows.ends)
    data = rows.buffer.tobytes()
    values = [
        int.from_bytes(data[start : start + length], "big", signed=True) if ok else 0
        for start, length, ok in zip(starts.tolist(), lengths.tolist(), known.tolist(), strict=True)
    ]
    return np.array(values, dtype=object), known


def _timestamp(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    precision: int = data_type.precision  # type: ignore[attr-defined]
    words = rows.words(fixed)
    if precision <= 3:
        return _nanos(words, np.zeros(len(words), dtype=np.int64), known), known
    at = rows.starts + _ARITY_BYTES + (words >> 32)
    known = known & (at >= rows.starts) & (at + 8 <= rows.ends)
    return _nanos(rows.words(np.where(known, at, 0)), words & 0xFFFFFFFF, known), known


def _nanos(millis: Integers, nanos: Integers, known: Mask) -> npt.NDArray[Any]:
    if bool((np.abs(millis[known]) < _MAX_WIDE_MILLIS).all()):
        return millis * 1_000_000 + nanos
    wide: npt.NDArray[Any] = millis.astype(object) * 1_000_000 + nanos.astype(object)
    return wide


def _text(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    words = rows.words(fixed)
    mark = (words >> 56) & 0xFF
    inline = mark >= 0x80
    starts = np.where(inline, fixed, rows.starts + _ARITY_BYTES + (words >> 32))
    lengths = np.where(inline, mark & 0x7F, words & 0xFFFFFFFF)
    known = known & (starts >= rows.starts) & (starts + lengths <= rows.ends)
    lengths = np.where(known, lengths, 0)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    index = np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
    data = rows.buffer[index] if len(index) else np.zeros(0, dtype=np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers), known


def _nothing(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    """Types that have no bounds."""
    return np.zeros(len(known), dtype=np.int64), np.zeros(len(known), dtype=bool)


_DECODERS: Mapping[type[DataType], Callable[[_Rows, Integers, Mask, DataType], Decoded]] = {
    dt.BooleanType: _whole(8),
    dt.TinyIntType: _whole(8),
    dt.SmallIntType: _whole(16),
    dt.IntType: _whole(32),
    dt.DateType: _whole(32),
    dt.TimeType: _whole(32),
    dt.BigIntType: _whole(64),
    dt.FloatType: _float,
    dt.DoubleType: _double,
    dt.DecimalType: _decimal,
    dt.TimestampType: _timestamp,
    dt.LocalZonedTimestampType: _timestamp,
    dt.VarCharType: _text,
    dt.VarBinaryType: _text,
    dt.BinaryType: _text,
    dt.CharType: _text,
}
