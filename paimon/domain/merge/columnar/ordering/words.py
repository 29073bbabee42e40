"""Columns as unsigned integers that sort as the columns sort.

Law: comparing the words of two rows from left to right orders the rows as Java orders their keys: null first, text
and bytes by unsigned bytes, -0.0 before 0.0, NaN last; equal words mean equal values. Twin: `paimon.domain.lsm.keys`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.stored import stored, validity
from paimon.domain.merge.columnar.ordering.even_text import LONGEST_TEXT, even_words

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.integer[Any]]
_WRAP = 1 << 64


class Part(NamedTuple):
    """Some bits of a row's sort key: values below `1 << bits`."""

    values: Words
    bits: int


def packed(parts: Iterable[Part]) -> list[Words]:
    """The parts side by side in as few words as hold them, most significant first; none where all rows are equal."""
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


def parts_of(column: pa.Array, descending: bool = False) -> list[Part]:
    """The parts of one column, most significant first; nulls come first also where `descending`."""
    if len(column) == 0 or column.null_count == len(column):
        return []
    valid = validity(column) if column.null_count else None
    parts = [_narrowed(numbers, valid, descending) for numbers in _numbers(column)]
    if valid is not None:
        parts.insert(0, Part(valid.astype(np.uint64), 1))
    return parts


def parts_of_chunks(column: pa.ChunkedArray | pa.Array) -> list[Part]:
    """Like `parts_of` of the column without chunks, which texts that are all equally long need not become."""
    if isinstance(column, pa.ChunkedArray) and column.num_chunks > 1 and _is_text(column.type):
        even = even_words(column.chunks)
        if even is not None:
            return [_narrowed(words, None, False) for words in even]
    return parts_of(_whole(column))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _narrowed(numbers: Integers, valid: npt.NDArray[np.bool_] | None, descending: bool) -> Part:
    """The distance from the smallest (or largest) valid value, in as few bits as it needs."""
    present = numbers if valid is None else _filled(numbers, valid)
    low, high = int(present.min()), int(present.max())
    words = numbers.astype(np.int64, copy=False).view(np.uint64)  # differences below are exact modulo 2 to the 64
    values = np.uint64(high % _WRAP) - words if descending else words - np.uint64(low % _WRAP)
    if valid is not None:
        values = values & (-valid.astype(np.int64)).view(np.uint64)
    return Part(values, (high - low).bit_length())


def _filled(numbers: Integers, valid: npt.NDArray[np.bool_]) -> Integers:
    """The numbers with a valid one wherever they are not: cheaper than cutting them out."""
    some = numbers[int(valid.argmax())]
    filled: Integers = some ^ ((numbers ^ some) & -valid.astype(numbers.dtype))
    return filled


def _numbers(column: pa.Array) -> list[Integers]:
    """Integers that sort as the column does, most significant first; whatever where it is null."""
    kind = column.type
    if pa.types.is_floating(kind):
        return [_float_numbers(column)]
    if pa.types.is_decimal(kind):
        return _decimal_numbers(column, kind.precision)
    if pa.types.is_boolean(kind):
        return [np.asarray(pc.cast(column.fill_null(False), pa.int8()))]
    if _is_text(kind):
        return _text_numbers(column)
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return [stored(column)]
    return [_ranks(column)]


def _float_numbers(column: pa.Array) -> Integers:
    values = np.array(column.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64)
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)


def _decimal_numbers(column: pa.Array, precision: int) -> list[Integers]:
    pairs = np.frombuffer(column.buffers()[1], dtype="<i8", count=2 * len(column), offset=16 * column.offset)
    low, high = pairs[0::2], pairs[1::2]
    if precision <= 18:
        return [low]
    return [high, low.astype(np.int64).view(np.uint64)]


def _ranks(column: pa.Array) -> Integers:
    """Ranks of the distinct values: exact for whatever Arrow can sort."""
    encoded = column.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    ranks = np.empty(len(order), dtype=np.uint64)
    ranks[order] = np.arange(len(order), dtype=np.uint64)
    codes: Words = ranks[np.asarray(encoded.indices.fill_null(0))]
    return codes


def _text_numbers(column: pa.Array) -> list[Integers]:
    even = even_words([column])
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
    """Bytes that all values share: those that the smallest and the largest share."""
    bounds = pc.min_max(column.cast(pa.binary())).as_py()
    low, high = bounds["min"], bounds["max"]
    return next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))


def _gathered_word(text: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32]) -> Words:
    """Up to 8 bytes from each start as one big-endian number, zeros behind the end of the value."""
    padded = np.concatenate([text, np.zeros(8, dtype=np.uint8)])
    windows: npt.NDArray[np.uint64] = np.ndarray(shape=(len(padded) - 7,), dtype=">u8", buffer=padded, strides=(1,))
    words = windows[np.minimum(starts, len(text))].astype(np.uint64)
    missing = (8 - np.clip(lengths, 0, 8)).astype(np.uint64) * np.uint64(8)
    shift = np.minimum(missing, np.uint64(63))
    return np.where(missing < 64, words >> shift << shift, np.uint64(0))


def concatenated(columns: Sequence[pa.ChunkedArray | pa.Array]) -> list[pa.Array]:
    """The columns without chunks."""
    return [_whole(c) for c in columns]


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column
