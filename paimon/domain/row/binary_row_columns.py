"""Compute the 32-bit words of binary rows column by column, so that hashes and buckets need no row as bytes.

Invariant: the words equal those that `binary_writer` writes row by row. A column contributes two words of the fixed
part. In the variable part it contributes the same number of words for each row, or a text whose length differs by row.
Source: `BinaryRowWriter`.
"""

# `paimon.domain.row.binary_row` shows a row as bytes. Here, the bytes of a field are two words, `low` and `high`:
#
#     7 as INT                 low 7          high 0
#     'orders'                 low 'orde'     high 'rs' 0 0x86
#     '0123456789'             text           low and high (length, offset) depend on the texts before it in the row
#     a TIMESTAMP(6)           low nanos      high None: the offset; the milliseconds are two `variable` words

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.types.data_types import (
    BYTES_TYPES,
    CHARACTER_TYPES,
    NESTED_TYPES,
    TIMESTAMP_TYPES,
    BlobType,
    BooleanType,
    DataType,
    DecimalType,
    VariantType,
)

Array: TypeAlias = np.ndarray[Any, Any]
Words: TypeAlias = Array | int
"""One word a row, or the same word for all."""

_SAME_BYTES: dict[int, np.dtype[Any]] = {1: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4")}
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_TAIL_BYTES = 8


@frozen(eq=False)
class Text:
    """Text or bytes of a column."""

    # the bytes of all rows, with spare bytes at the end, so that whole words can be read
    data: Array
    # where the text of each row starts in `data`
    starts: Array
    # in bytes; 0 for null
    lengths: Array


@frozen(eq=False)
class ColumnWords:
    """The 32-bit words of one column in binary rows."""

    # the first word of the fixed part
    low: Words
    # the second word of the fixed part; None: it is the offset of the variable part
    high: Words | None
    # the words that every row has in the variable part
    variable: tuple[Words, ...] = ()
    # set if the length of the variable part differs by row; `low` and `high` are then those of short texts
    text: Text | None = None


def is_columnar(data_type: DataType) -> bool:
    """Return whether columns of this type can be converted to words: all but nested types and variants."""
    return not isinstance(data_type, (*NESTED_TYPES, VariantType))


def column_words(array: pa.Array, data_type: DataType) -> ColumnWords:
    """Return the words of a canonical Arrow array without chunks."""
    valid = valid_rows(array)
    if isinstance(data_type, DecimalType):
        return _decimal_words(_numbers(array, np.dtype("<u8")).reshape(-1, 2), data_type.precision, valid)
    if isinstance(data_type, TIMESTAMP_TYPES):
        return _timestamp_words(
            _clear_nulls(_numbers(array, np.dtype("<i8")), valid), array.type.unit, data_type.precision
        )
    if isinstance(data_type, (*CHARACTER_TYPES, *BYTES_TYPES, BlobType)):
        return _text_words(array, valid)
    if isinstance(data_type, BooleanType):
        array = array.cast(pa.uint8())
    width = array.type.bit_width // 8
    if width == 8:
        return ColumnWords(*_halves(_clear_nulls(_numbers(array, np.dtype("<u8")), valid)))
    return ColumnWords(_clear_nulls(_numbers(array, _SAME_BYTES[width]), valid).astype(np.uint32), 0)


def valid_rows(array: pa.Array) -> Array | None:
    """Return which values are not null, as a boolean array; None where all are."""
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def _numbers(array: pa.Array, dtype: np.dtype[Any]) -> Array:
    per_row = max(1, array.type.bit_width // 8 // dtype.itemsize)
    if len(array) == 0:
        return np.empty(0, dtype)
    start = array.offset * per_row
    return np.frombuffer(array.buffers()[1], dtype, (array.offset + len(array)) * per_row)[start:]


def _clear_nulls(values: Array, valid: Array | None) -> Array:
    return values if valid is None else np.where(valid, values, values.dtype.type(0))


def _halves(values: Array) -> tuple[Array, Array]:
    pairs = np.ascontiguousarray(values).view(np.uint32).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _timestamp_words(values: Array, unit: str, precision: int) -> ColumnWords:
    per_second = _PER_SECOND[unit]
    if precision <= 3:
        return ColumnWords(*_halves(values * (1000 // per_second)))
    per_milli = per_second // 1000
    millis = values // per_milli
    nanos = (values - millis * per_milli) * (1_000_000 // per_milli)
    return ColumnWords(nanos.astype(np.uint32), None, _halves(millis))


def _decimal_words(halves: Array, precision: int, valid: Array | None) -> ColumnWords:
    if precision <= 18:
        return ColumnWords(*_halves(_clear_nulls(halves[:, 0], valid)))
    big_endian = np.ascontiguousarray(halves[:, ::-1]).byteswap().view(np.uint8)
    lengths = _minimal_lengths(big_endian)
    places = np.arange(16) + (16 - lengths)[:, None]
    data = np.take_along_axis(big_endian, np.minimum(places, 15), axis=1)
    data[places > 15] = 0
    if valid is not None:
        data[~valid] = 0
        lengths = np.where(valid, lengths, 0)
    words = data.view(np.uint32)
    return ColumnWords(lengths.astype(np.uint32), None, tuple(words[:, i] for i in range(4)))


def _minimal_lengths(big_endian: Array) -> Array:
    """Return the bytes that two's-complement numbers need, without leading bytes that only repeat the sign."""
    sign = np.where(big_endian[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    differs = big_endian != sign
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), 15)
    lead = np.take_along_axis(big_endian, first[:, None], axis=1)
    keeps_sign = ((lead ^ sign) < 0x80)[:, 0]
    return np.where(keeps_sign, 16 - first, 17 - first)


def _text_words(array: pa.Array, valid: Array | None) -> ColumnWords:
    if len(array) == 0:
        return ColumnWords(0, 0)
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, array.offset + len(array) + 1)[array.offset :].astype(np.int64)
    size = offsets[-1] - offsets[0]
    data = np.zeros(size + _TAIL_BYTES, np.uint8)
    if size:
        data[:size] = np.frombuffer(data_buffer, np.uint8, size, offsets[0])
    text = Text(data, offsets[:-1] - offsets[0], _clear_nulls(np.diff(offsets), valid))
    low, high = text_word(text, 0), text_word(text, 1)
    high |= (text.lengths.astype(np.uint32) | np.uint32(0x80)) << np.uint32(24)
    return ColumnWords(low, _clear_nulls(high, valid), (), text)


_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF], np.uint32)


def text_word(text: Text, step: int, rows: Array | None = None) -> Array:
    """Return the 32-bit word at byte `4 * step` of texts (None: of all rows), with zeros after the end."""
    starts, lengths = (text.starts, text.lengths) if rows is None else (text.starts[rows], text.lengths[rows])
    # A view of all overlapping words: row starts are not aligned, and reading one word beats reading four bytes.
    words: Array = np.ndarray((len(text.data) - 3,), "<u4", text.data.data, strides=(1,))
    places = np.minimum(starts + 4 * step, len(words) - 1)
    rest = np.clip(lengths - 4 * step, 0, 4)
    found: Array = words[places] & _MASKS[rest]
    return found
