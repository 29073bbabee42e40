"""Columns as unsigned integers that sort as the columns sort.

Law: comparing the words of two rows from left to right orders the rows as Java orders their keys: null first, text
and bytes by unsigned bytes, -0.0 before 0.0, NaN last; equal words mean equal values. Twin: `paimon.domain.lsm.keys`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.uint64]
LONGEST_TEXT = 32
"""Bytes (after the common prefix) up to which text becomes words; longer text is ranked through its distinct values."""


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
    valid = np.asarray(column.is_valid()) if column.null_count else None
    parts = [_narrowed(words, valid, descending) for words in _raw_words(column)]
    if valid is not None:
        parts.insert(0, Part(valid.astype(np.uint64), 1))
    return parts


def _narrowed(words: Words, valid: npt.NDArray[np.bool_] | None, descending: bool) -> Part:
    """The distance from the smallest (or largest) valid value, in as few bits as it needs."""
    present = words if valid is None else words[valid]
    low, high = int(present.min()), int(present.max())
    values = np.uint64(high) - words if descending else words - np.uint64(low)
    if valid is not None:
        values = np.where(valid, values, np.uint64(0))
    return Part(values, (high - low).bit_length())


def _raw_words(column: pa.Array) -> list[Words]:
    kind = column.type
    if pa.types.is_floating(kind):
        return [_float_words(column)]
    if pa.types.is_decimal(kind):
        return _decimal_words(column, kind.precision)
    if pa.types.is_boolean(kind):
        return [_signed(np.asarray(pc.cast(column.fill_null(False), pa.int8())))]
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _text_words(column)
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return [_signed(_fixed_width(column))]
    return [_rank_words(column)]


def _fixed_width(column: pa.Array) -> npt.NDArray[np.signedinteger[npt.NBitBase]]:
    width = column.type.bit_width // 8
    data = column.buffers()[1]
    return np.frombuffer(data, dtype=f"<i{width}", count=len(column), offset=column.offset * width)


def _signed(values: npt.NDArray[np.signedinteger[npt.NBitBase]]) -> Words:
    return values.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)


def _float_words(column: pa.Array) -> Words:
    values = np.array(column.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64)
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    return _signed(np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits))


def _decimal_words(column: pa.Array, precision: int) -> list[Words]:
    pairs = np.frombuffer(column.buffers()[1], dtype="<i8", count=2 * len(column), offset=16 * column.offset)
    low, high = pairs[0::2], pairs[1::2]
    if precision <= 18:
        return [_signed(low)]
    return [_signed(high), low.astype(np.int64).view(np.uint64)]


def _rank_words(column: pa.Array) -> Words:
    """Ranks of the distinct values: exact for whatever Arrow can sort."""
    encoded = column.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    ranks = np.empty(len(order), dtype=np.uint64)
    ranks[order] = np.arange(len(order), dtype=np.uint64)
    codes: Words = ranks[np.asarray(encoded.indices.fill_null(0))]
    return codes


def _text_words(column: pa.Array) -> list[Words]:
    offsets = np.frombuffer(column.buffers()[1], dtype="<i4", count=len(column) + 1, offset=4 * column.offset)
    data = column.buffers()[2]
    if data is None or offsets[0] == offsets[-1]:
        return []
    prefix = _common_prefix(column)
    starts = offsets[:-1].astype(np.int64) + prefix
    lengths = np.maximum(offsets[1:] - starts, 0)
    longest = int(lengths.max())
    if longest > LONGEST_TEXT:
        return [_rank_words(column)]
    text = np.frombuffer(data, dtype=np.uint8)[: offsets[-1]]
    if int(lengths.min()) == longest and column.null_count == 0:
        rows = text[offsets[0] :].reshape(len(column), prefix + longest)[:, prefix:]
        return [_matrix_word(rows[:, at : at + 8]) for at in range(0, longest, 8)]
    words = [_gathered_word(text, starts + at, lengths - at) for at in range(0, longest, 8)]
    if (text[offsets[0] :] == 0).any():  # "a" and "a\0" differ in nothing but their length
        words.append(lengths.astype(np.uint64))
    return words


def _common_prefix(column: pa.Array) -> int:
    """Bytes that all values share: those that the smallest and the largest share."""
    bounds = pc.min_max(column.cast(pa.binary())).as_py()
    low, high = bounds["min"], bounds["max"]
    return next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))


def _matrix_word(rows: npt.NDArray[np.uint8]) -> Words:
    """Up to 8 bytes of each row as one big-endian number."""
    padded = np.zeros((len(rows), 8), dtype=np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view(">u8").ravel().astype(np.uint64)


def _gathered_word(text: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Words:
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
