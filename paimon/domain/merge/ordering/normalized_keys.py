"""Encode columns as unsigned integers with the same order: normalized keys.

Invariant: comparing the words of two rows from left to right orders the rows as Java orders keys: null first, text
and bytes by unsigned bytes, floats in the total order. Equal words mean equal values. The reference is
`paimon.domain.lsm.keys`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.buffers import combine_column, read_validity, to_stored_numbers
from paimon.domain.columns.java_float_order import to_float_ordinals
from paimon.domain.merge.ordering.fixed_width_text import LONGEST_TEXT, pack_fixed_width_text
from paimon.domain.types.arrow_arrays import to_numpy

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.integer[Any]]
_WRAP = 1 << 64


class Part(NamedTuple):
    """Some bits of the sort key of each row: values below `1 << bits`."""

    values: Words
    bits: int


def pack_keys(parts: Iterable[Part]) -> list[Words]:
    """Pack parts into as few words as hold them, most significant first; no word where all rows are equal."""
    words: list[Words] = []
    used = 64
    for values, bits in parts:
        if bits == 0:
            continue
        if used + bits > 64:
            words.append(values)
            used = bits
        else:
            words[-1] = (words[-1] << np.uint64(bits)) | values
            used += bits
    return words


def to_key_parts(column: pa.Array, descending: bool = False) -> list[Part]:
    """Return the parts of one column, most significant first; nulls are first also where `descending`."""
    if len(column) == 0 or column.null_count == len(column):
        return []
    valid = read_validity(column) if column.null_count else None
    parts = [_narrow_range(numbers, valid, descending) for numbers in _numbers(column)]
    if valid is not None:
        parts.insert(0, Part(valid.astype(np.uint64), 1))
    return parts


def to_key_parts_by_chunk(column: pa.ChunkedArray | pa.Array) -> list[Part]:
    """Return the parts of one column as `to_key_parts` does; chunks of fixed-width text are not combined first."""
    if isinstance(column, pa.ChunkedArray) and column.num_chunks > 1 and _is_text(column.type):
        even = pack_fixed_width_text(column.chunks)
        if even is not None:
            return [_narrow_range(words, None, False) for words in even]
    return to_key_parts(_whole(column))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _narrow_range(numbers: Integers, valid: npt.NDArray[np.bool_] | None, descending: bool) -> Part:
    """Return the distance from the smallest (or largest) valid value, in as few bits as it needs."""
    present = numbers if valid is None else _fill_nulls(numbers, valid)
    low, high = int(present.min()), int(present.max())
    words = numbers.astype(np.int64, copy=False).view(np.uint64)  # differences below are exact modulo 2 to the 64
    values = np.uint64(high % _WRAP) - words if descending else words - np.uint64(low % _WRAP)
    if valid is not None:
        values = values & (-valid.astype(np.int64)).view(np.uint64)
    return Part(values, (high - low).bit_length())


def _fill_nulls(numbers: Integers, valid: npt.NDArray[np.bool_]) -> Integers:
    """Return the numbers with a valid one in place of nulls, which is cheaper than to remove them."""
    some = numbers[int(valid.argmax())]
    filled: Integers = some ^ ((numbers ^ some) & -valid.astype(numbers.dtype))
    return filled


def _numbers(column: pa.Array) -> list[Integers]:
    """Return integers that sort as the column does, most significant first; any integer where it is null."""
    kind = column.type
    if pa.types.is_floating(kind):
        return [_float_numbers(column)]
    if pa.types.is_decimal(kind):
        return _decimal_numbers(column, kind.precision)
    if pa.types.is_boolean(kind):
        return [to_numpy(pc.cast(column.fill_null(False), pa.int8()))]
    if _is_text(kind):
        return _text_numbers(column)
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return [to_stored_numbers(column)]
    return [_ranks(column)]


def _float_numbers(column: pa.Array) -> Integers:
    return to_float_ordinals(np.asarray(to_numpy(column.fill_null(0)), dtype=np.float64))


def _decimal_numbers(column: pa.Array, precision: int) -> list[Integers]:
    pairs = np.frombuffer(column.buffers()[1], dtype="<i8", count=2 * len(column), offset=16 * column.offset)
    low, high = pairs[0::2], pairs[1::2]
    if precision <= 18:
        return [low]
    return [high, low.astype(np.int64).view(np.uint64)]


def _ranks(column: pa.Array) -> Integers:
    """Return the ranks of the distinct values, for any type that Arrow can sort."""
    encoded = column.dictionary_encode()
    order = to_numpy(pc.sort_indices(encoded.dictionary))
    ranks = np.empty(len(order), dtype=np.uint64)
    ranks[order] = np.arange(len(order), dtype=np.uint64)
    codes: Words = ranks[to_numpy(encoded.indices.fill_null(0))]
    return codes


def _text_numbers(column: pa.Array) -> list[Integers]:
    even = pack_fixed_width_text([column])
    if even is not None:
        return list(even)
    offsets = np.frombuffer(column.buffers()[1], dtype="<i4", count=len(column) + 1, offset=4 * column.offset)
    data = column.buffers()[2]
    if data is None or offsets[0] == offsets[-1]:
        return []
    prefix = _common_prefix(column)
    lengths = offsets[1:] - offsets[:-1]
    longest = int(lengths.max())
    if longest - prefix > LONGEST_TEXT:
        return [_ranks(column)]
    text = np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]]
    starts = (offsets[:-1] - offsets[0]).astype(np.int64)
    return _ragged_numbers(text, starts + prefix, lengths - prefix, longest - prefix)


def _ragged_numbers(
    text: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32], longest: int
) -> list[Integers]:
    words: list[Integers] = [_gathered_word(text, starts + at, lengths - at) for at in range(0, longest, 8)]
    if (text == 0).any():  # "a" and "a\0" differ in nothing but their length
        words.append(lengths)
    return words


def _common_prefix(column: pa.Array) -> int:
    """Return the number of bytes that all values share: those that the smallest and the largest value share."""
    bounds = pc.min_max(column.cast(pa.binary())).as_py()
    low, high = bounds["min"], bounds["max"]
    return next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))


def _gathered_word(text: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32]) -> Words:
    """Return up to 8 bytes from each start as one big-endian number, with zeros after the end of the value."""
    padded = np.concatenate([text, np.zeros(8, dtype=np.uint8)])
    windows: npt.NDArray[np.uint64] = np.ndarray(shape=(len(padded) - 7,), dtype=">u8", buffer=padded, strides=(1,))
    words = windows[np.minimum(starts, len(text))].astype(np.uint64)
    missing = (8 - np.clip(lengths, 0, 8)).astype(np.uint64) * np.uint64(8)
    shift = np.minimum(missing, np.uint64(63))
    return np.where(missing < 64, words >> shift << shift, np.uint64(0))


def combine_chunks(columns: Sequence[pa.ChunkedArray | pa.Array]) -> list[pa.Array]:
    """Return the columns as arrays without chunks."""
    return [_whole(c) for c in columns]


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return combine_column(column) if isinstance(column, pa.ChunkedArray) else column
