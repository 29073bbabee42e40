"""Decode the bounds of one column from the statistics of many files at once.

Fixed-width parts of BinaryRows (`paimon.domain.row.binary_row`) are gathered as numpy words, text by its offsets.

Invariant: The result equals `simple_stats.from_simple_stats` for each file. A missing value is unknown. An offset
outside its row makes the bound unknown, and the adjacent row is never read.
Source: `SimpleStats`, `BinaryRow`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.columns.java_float_order import (
    NAN_ORDINAL,
    NEGATIVE_ZERO_ORDINAL,
    POSITIVE_ZERO_ORDINAL,
    to_float_ordinals,
)
from paimon.domain.predicate.pruning_columnar import Bounds, Mask
from paimon.domain.stats.simple_stats import SimpleStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow_arrays import make_array, make_scalar, to_numpy
from paimon.domain.types.data_types import DataType

Integers = npt.NDArray[np.int64]
Decoded = tuple[Any, Mask]

_ARITY_BYTES = 4
_MAX_WIDE_MILLIS = 9_000_000_000_000
"""Times below this fit into 64 bits as nanoseconds since the epoch."""


@frozen(eq=False)
class _Rows:
    """Serialized rows in one buffer; each has a start and an end, arity included."""

    buffer: npt.NDArray[np.uint8]
    starts: Integers
    ends: Integers

    def words(self, at: Integers) -> Integers:
        """Return eight bytes, little-endian, at absolute positions; 0 where they leave the buffer."""
        if len(self.buffer) < 8:
            return np.zeros(len(at), dtype=np.int64)
        inside = (at >= 0) & (at + 8 <= len(self.buffer))
        # A view without a copy: overlapping words, one at each byte.
        every = np.ndarray((len(self.buffer) - 7,), dtype="<i8", buffer=self.buffer.data, strides=(1,))
        words: Integers = every[at if bool(inside.all()) else np.where(inside, at, 0)]
        return words * inside


def read_bounds(stats: pa.StructArray, position: int, width: int, data_type: DataType) -> Bounds:
    """Return the statistics of one column in all files, with bounds as ordinals.

    `stats` has one struct for each file, as `stats_array` builds it. Bounds are unknown in rows that do not have
    `width` columns.
    """
    low, low_known = _decode_ordinals(stats.field("_MIN_VALUES"), position, width, data_type)
    high, high_known = _decode_ordinals(stats.field("_MAX_VALUES"), position, width, data_type)
    return Bounds(low, high, low_known, high_known, _decode_null_counts(stats.field("_NULL_COUNTS"), position, width))


def read_exact_bounds(rows: pa.BinaryArray, position: int, width: int, data_type: DataType) -> Bounds:
    """Return the statistics of one column for serialized rows, each of which counts as a file with one row.

    Both bounds are the value of the row. Values are unknown in rows that do not have `width` columns.
    """
    values, known = _decode_ordinals(rows, position, width, data_type)
    return Bounds(values, values, known, known, np.where(known, 0, 1))


def stats_array(stats: Sequence[SimpleStats]) -> pa.StructArray:
    """Return statistics as the Arrow columns that `read_bounds` reads."""
    counts = make_array([list(s.null_counts) for s in stats], pa.list_(pa.int64()))
    low, high = ([getattr(s, name) for s in stats] for name in ("min_values", "max_values"))
    parts = [make_array(low, pa.binary()), make_array(high, pa.binary()), counts]
    return pa.StructArray.from_arrays(parts, ["_MIN_VALUES", "_MAX_VALUES", "_NULL_COUNTS"])


def all_null(row_counts: Integers) -> Bounds:
    """Return the statistics of a column that the files do not have: every row counts as null."""
    nothing = np.zeros(len(row_counts), dtype=np.int64)
    unknown = np.zeros(len(row_counts), dtype=bool)
    return Bounds(nothing, nothing, unknown, unknown, row_counts)


def without_bounds(bounds: Bounds) -> Bounds:
    """Return the null counts with unknown bounds."""
    unknown = np.zeros(len(bounds.null_counts), dtype=bool)
    return evolve(bounds, lower_known=unknown, upper_known=unknown)


def floating_bounds(bounds: Bounds, in_orc: Mask) -> Bounds:
    """Return the bounds of a FLOAT or DOUBLE column that are valid in Java's order; misleading bounds become unknown.

    Both zeros count as bounds for each other. ORC statistics (`in_orc`, by file) leave out NaN, the largest value, or
    use NaN as both bounds.
    """
    lower = np.where(bounds.lower == POSITIVE_ZERO_ORDINAL, NEGATIVE_ZERO_ORDINAL, bounds.lower)
    upper = np.where(bounds.upper == NEGATIVE_ZERO_ORDINAL, POSITIVE_ZERO_ORDINAL, bounds.upper)
    lower_known = bounds.lower_known & ~(in_orc & (lower == NAN_ORDINAL))
    return Bounds(lower, upper, lower_known, bounds.upper_known & ~in_orc, bounds.null_counts)


def _decode_null_counts(counts: pa.ListArray, position: int, width: int) -> Integers:
    offsets = to_numpy(counts.offsets)
    has_count = to_numpy(counts.is_valid()) & (offsets[1:] - offsets[:-1] == width)
    values = to_numpy(counts.values.fill_null(make_scalar(-1, counts.values.type)))
    found = np.full(len(counts), -1, dtype=np.int64)
    found[has_count] = values[offsets[:-1][has_count] + position]
    return found


def _to_rows(array: pa.BinaryArray) -> _Rows:
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    data = array.buffers()[2]
    buffer = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    return _Rows(buffer, offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64))


def _decode_ordinals(array: pa.BinaryArray, position: int, width: int, data_type: DataType) -> Decoded:
    values, known, _ = decode_field(array, position, width, data_type)
    return values, known


def decode_field(
    array: pa.BinaryArray, position: int, width: int, data_type: DataType
) -> tuple[npt.NDArray[Any] | pa.BinaryArray, Mask, Mask]:
    """Return one field of serialized rows, which rows have it, and where it is null; text as bytes, else ordinals.

    A field that is neither was not read: the row is damaged or has another width, or the type has no bounds.
    """
    rows = _to_rows(array)
    arity = rows.words(rows.starts).astype("<i8").view("<u4")[::2].byteswap().astype(np.int64)
    null_area = (arity + 63 + 8) // 64 * 8
    fixed = rows.starts + _ARITY_BYTES + null_area + 8 * position
    whole = (arity == width) & (fixed + 8 * (width - position) <= rows.ends)
    bit = 8 + position
    null_at = np.minimum(rows.starts + _ARITY_BYTES + bit // 8, max(len(rows.buffer) - 1, 0))
    is_null = np.zeros(len(whole), dtype=bool)
    if len(rows.buffer):
        is_null = (rows.buffer[null_at] >> (bit % 8) & 1) != 0
    decode = _DECODERS.get(type(data_type), _decode_nothing)
    known = (arity == width) & (fixed + 8 <= rows.ends) & ~is_null
    values, known = decode(rows, np.where(known, fixed, 0), known, data_type)
    return values, known, whole & is_null


def _decode_integers(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType, *, bits: int) -> Decoded:
    """Decode sign-extended integers with this number of bits."""
    shift = 64 - bits
    return (rows.words(fixed) << shift) >> shift, known


def _decode_double(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    return to_float_ordinals(rows.words(fixed).view("<f8")), known


def _decode_float(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    return to_float_ordinals(rows.words(fixed).astype("<i4").view("<f4").astype("<f8")), known


def _decode_decimal(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
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


def _decode_timestamp(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    precision: int = data_type.precision  # type: ignore[attr-defined]
    words = rows.words(fixed)
    if precision <= 3:
        return _to_nanos(words, np.zeros(len(words), dtype=np.int64), known), known
    at = rows.starts + _ARITY_BYTES + (words >> 32)
    known = known & (at >= rows.starts) & (at + 8 <= rows.ends)
    return _to_nanos(rows.words(np.where(known, at, 0)), words & 0xFFFFFFFF, known), known


def _to_nanos(millis: Integers, nanos: Integers, known: Mask) -> npt.NDArray[Any]:
    if bool((np.abs(millis[known]) < _MAX_WIDE_MILLIS).all()):
        return millis * 1_000_000 + nanos
    wide: npt.NDArray[Any] = millis.astype(object) * 1_000_000 + nanos.astype(object)
    return wide


def _decode_text(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    words = rows.words(fixed)
    mark = (words >> 56) & 0xFF  # of a text in place: 0x80 + its length
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


def _decode_nothing(rows: _Rows, fixed: Integers, known: Mask, data_type: DataType) -> Decoded:
    """Return unknown bounds, for types without bounds."""
    return np.zeros(len(known), dtype=np.int64), np.zeros(len(known), dtype=bool)


_DECODERS: Mapping[type[DataType], Callable[[_Rows, Integers, Mask, DataType], Decoded]] = {
    dt.BooleanType: partial(_decode_integers, bits=8),
    dt.TinyIntType: partial(_decode_integers, bits=8),
    dt.SmallIntType: partial(_decode_integers, bits=16),
    dt.IntType: partial(_decode_integers, bits=32),
    dt.DateType: partial(_decode_integers, bits=32),
    dt.TimeType: partial(_decode_integers, bits=32),
    dt.BigIntType: partial(_decode_integers, bits=64),
    dt.FloatType: _decode_float,
    dt.DoubleType: _decode_double,
    dt.DecimalType: _decode_decimal,
    dt.TimestampType: _decode_timestamp,
    dt.LocalZonedTimestampType: _decode_timestamp,
    dt.VarCharType: _decode_text,
    dt.VarBinaryType: _decode_text,
    dt.BinaryType: _decode_text,
    dt.CharType: _decode_text,
}
