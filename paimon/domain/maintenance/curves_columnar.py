"""The positions of rows on a Z-order curve and on a Hilbert curve, as bytes that sort as the rows do.

Invariant: the bytes of a row equal those of Java, and of `curves_reference`.
Source: `ZIndexer`, `ZOrderByteUtils`, `HilbertIndexer`, `ConvertBinaryUtil`, `HilbertCurve` of hilbert-curve.
"""

# Both curves map several columns to one position, so that rows which are close on the curve are close in each column.
# A file with a part of the curve then covers a small range of every column, and a condition on any of them skips files.
#
# Z-order. A column becomes 8 bytes that compare as its values do (text: its first `text_bytes` bytes). The position
# takes bits of the columns alternately, the most significant first; a column whose bits are used up is skipped:
#
#     x = 5 = 101      bits of x   1   0   1
#     y = 3 = 011      bits of y     0   1   1        position = 100111
#
# Hilbert. A column becomes a number of 63 bits. The position is computed for the square (or cube) of the highest bit
# first: its quadrant is a digit, and the lower bits are mirrored or exchanged so that the curve enters each quadrant
# next to where it left the last one. This is Skilling's algorithm (AIP Conf. Proc. 707, 381). The numpy arrays below
# have a row of the algorithm's variables for each column, and an element for each row of the table.
#
# The bytes are Java's, also where they do not keep the order: a Z-order of negative floats and of decimals, a Hilbert
# position of negative numbers (whose sign bit is dropped), and of more than seven columns, of which Java keeps the
# first 63 of the significant bytes. A sort by them is correct in any case; it only skips fewer files.

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.columns.buffers import to_stored_numbers
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import UNIT_NANOS
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.data_types import DataType

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]

TEXT_TYPES = (dt.CharType, dt.VarCharType, dt.BinaryType, dt.VarBinaryType)
_WORD_BYTES = 8
_SIGN = np.uint64(1 << 63)
_NULL_ON_HILBERT = (1 << 63) - 1
_HILBERT_BITS = 63
HILBERT_BYTES = 63
"""Java pads and cuts a position to as many bytes as a coordinate has bits."""
_TRUE_BYTE = 0x81
_NANOS_PER_MILLI = 1_000_000
_BLOCK_ROWS = 1 << 14
"""Rows whose bits are expanded at the same time."""


def compute_zorder_positions(columns: Sequence[pa.Array], types: Sequence[DataType], text_bytes: int) -> pa.Array:
    """Return the position of each row as bytes; text and bytes count with their first `text_bytes` bytes."""
    images = [_to_ordered_bytes(column, kind, text_bytes) for column, kind in zip(columns, types, strict=True)]
    widths = [image.shape[1] * 8 for image in images]
    starts = np.cumsum([0, *widths])
    bit_order = sorted((bit, column) for column, width in enumerate(widths) for bit in range(width))
    taken = np.array([starts[column] + bit for bit, column in bit_order])
    rows = len(columns[0])
    positions = np.empty((rows, int(starts[-1]) // 8), np.uint8)
    for start in range(0, rows, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        bits = np.unpackbits(np.concatenate([image[block] for image in images], axis=1), axis=1)
        positions[block] = np.packbits(bits[:, taken], axis=1)
    return _to_binary(positions)


def compute_hilbert_positions(columns: Sequence[pa.Array], types: Sequence[DataType]) -> pa.Array:
    """Return the position of each row as 63 bytes."""
    points = [_to_coordinate(column, kind).view(np.uint64) for column, kind in zip(columns, types, strict=True)]
    rows = len(columns[0])
    positions = np.empty((rows, HILBERT_BYTES), np.uint8)
    for start in range(0, rows, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        positions[block] = _to_position_bytes(_transpose([point[block].copy() for point in points]))
    return _to_binary(positions)


def _to_ordered_bytes(column: pa.Array, kind: DataType, text_bytes: int) -> Bytes:
    """Return the bytes of each value, which are zero for null."""
    if isinstance(kind, TEXT_TYPES):
        image = _take_prefixes(column, text_bytes)
    elif isinstance(kind, dt.DecimalType):
        image = _take_decimal_bytes(column)
    elif isinstance(kind, dt.BooleanType):
        image = np.zeros((len(column), _WORD_BYTES), np.uint8)
        image[:, 0] = np.where(to_numpy(column.fill_null(False)), _TRUE_BYTE, 0)
    elif isinstance(kind, dt.FloatType | dt.DoubleType):
        bits = _to_float_bits(column)
        image = _to_big_endian((bits ^ ((bits >> 31) | np.int64(-(1 << 63)))).view(np.uint64))
    else:
        image = _to_big_endian(_to_numbers(column, kind).view(np.uint64) ^ _SIGN)
    if column.null_count:
        image[np.asarray(column.is_null())] = 0
    return image


def _to_coordinate(column: pa.Array, kind: DataType) -> Longs:
    """Return the coordinate of each value, which is the largest one for null."""
    if isinstance(kind, TEXT_TYPES):
        longs = _take_short_texts(column)
    elif isinstance(kind, dt.DecimalType):
        whole = column.cast(pa.decimal128(38, 0), safe=False)
        longs = np.frombuffer(whole.buffers()[1], "<i8", 2 * len(whole), 16 * whole.offset)[0::2].copy()
    elif isinstance(kind, dt.BooleanType):
        longs = np.where(to_numpy(column.fill_null(False)), np.int64(_NULL_ON_HILBERT), np.int64(0))
    elif isinstance(kind, dt.FloatType | dt.DoubleType):
        longs = _to_float_bits(column)
    elif isinstance(kind, dt.TinyIntType):
        longs = _to_numbers(column, kind) & 0xFF
    else:
        longs = _to_numbers(column, kind)
    if column.null_count:
        longs[np.asarray(column.is_null())] = _NULL_ON_HILBERT
    return longs


def _to_numbers(column: pa.Array, kind: DataType) -> Longs:
    """Return whole numbers, days, or milliseconds."""
    numbers = to_stored_numbers(column).astype(np.int64)
    if not isinstance(kind, dt.TIMESTAMP_TYPES):
        return numbers
    nanos = UNIT_NANOS[column.type.unit]
    return (
        numbers * (nanos // _NANOS_PER_MILLI) if nanos >= _NANOS_PER_MILLI else numbers // (_NANOS_PER_MILLI // nanos)
    )


def _to_float_bits(column: pa.Array) -> Longs:
    """Return the bits of each value as DOUBLE; all NaN have the same."""
    values = np.asarray(to_numpy(column.fill_null(0)), np.float64)
    return np.where(np.isnan(values), np.nan, values).view(np.int64)


def _to_big_endian(words: Words) -> Bytes:
    return words.astype(">u8").view(np.uint8).reshape(len(words), _WORD_BYTES)


def _take_prefixes(column: pa.Array, width: int) -> Bytes:
    """Return the first bytes of each value, with zeros after its end."""
    starts, lengths, data = _read_texts(column)
    places = np.arange(width)
    padded = np.append(data, np.zeros(1, np.uint8))
    found = padded[np.minimum(starts[:, None] + places, len(data))]
    return np.where(places < lengths[:, None], found, 0)


def _take_short_texts(column: pa.Array) -> Longs:
    """Return the first 8 bytes of each value as one number; shorter ones have zeros in front."""
    lengths = _read_texts(column)[1]
    words = _take_prefixes(column, _WORD_BYTES).view(">u8").reshape(len(column)).astype(np.uint64)
    missing = 8 * (_WORD_BYTES - np.minimum(lengths, _WORD_BYTES)).astype(np.uint64)
    return np.where(missing < 64, words >> np.minimum(missing, np.uint64(63)), np.uint64(0)).view(np.int64)


def _read_texts(column: pa.Array) -> tuple[Longs, Longs, Bytes]:
    """Return where each value begins, its length, and the bytes of all values."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset).astype(np.int64)
    return bounds[:-1], np.diff(bounds), np.frombuffer(data or b"", np.uint8)


def _take_decimal_bytes(column: pa.Array) -> Bytes:
    """Return the first 8 of the significant bytes of each unscaled value, with zeros after the last one."""
    stored = np.frombuffer(column.buffers()[1], np.uint8, 16 * len(column), 16 * column.offset)
    reversed_bytes = np.ascontiguousarray(stored.reshape(len(column), 16)[:, ::-1])
    first = _count_sign_bytes(reversed_bytes)
    padded = np.concatenate([reversed_bytes, np.zeros((len(column), _WORD_BYTES), np.uint8)], axis=1)
    return np.take_along_axis(padded, first[:, None] + np.arange(_WORD_BYTES), axis=1)


def _count_sign_bytes(numbers: Bytes) -> Longs:
    """Count the leading bytes that only repeat the sign bit of what follows; the last byte is not one of them."""
    signs = np.where(numbers[:, 1:] & 0x80, np.uint8(0xFF), np.uint8(0))
    repeats: Longs = np.logical_and.accumulate(numbers[:, :-1] == signs, axis=1).sum(axis=1, dtype=np.int64)
    return repeats


def _transpose(x: list[Words]) -> list[Words]:
    """Replace coordinates by the transposed position: number j has the bits j, j + n, j + 2n, … of the position."""
    zero = np.uint64(0)
    for bit in range(_HILBERT_BITS - 1, 0, -1):
        tested, below = np.uint64(1 << bit), np.uint64((1 << bit) - 1)
        for number in x:
            is_set = (number & tested) != zero
            exchanged = np.where(is_set, zero, (x[0] ^ number) & below)
            x[0] ^= np.where(is_set, below, exchanged)
            if number is not x[0]:
                np.bitwise_xor(number, exchanged, out=number)
    for before, number in itertools.pairwise(x):
        np.bitwise_xor(number, before, out=number)
    mask = np.zeros_like(x[0])
    for bit in range(_HILBERT_BITS - 1, 0, -1):
        mask ^= np.where(x[-1] & np.uint64(1 << bit), np.uint64((1 << bit) - 1), zero)
    return [number ^ mask for number in x]


def _to_position_bytes(transposed: list[Words]) -> Bytes:
    """Return the bytes of positions as Java does: significant bytes with zeros in front, or the first 63 of them."""
    rows = len(transposed[0])
    bits = np.stack([np.unpackbits(_to_big_endian(t), axis=1)[:, 1:] for t in transposed], axis=2).reshape(rows, -1)
    size = max(bits.shape[1] // 8 + 1, HILBERT_BYTES)  # with room for a sign bit
    unused = np.zeros((rows, 8 * size - bits.shape[1]), np.uint8)
    whole = np.packbits(np.concatenate([unused, bits], axis=1), axis=1)
    first = np.minimum(_count_sign_bytes(whole), size - HILBERT_BYTES)
    return np.take_along_axis(whole, first[:, None] + np.arange(HILBERT_BYTES), axis=1)


def _to_binary(rows: Bytes) -> pa.Array:
    """Return the rows of a matrix as an Arrow array of bytes."""
    count, width = rows.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(rows)])
