"""Hashes of many rows at once, computed from columns.

Invariant: `hash_rows(columns)[i]` is `hash_bytes(encode(row i))`. No row is built: the words of the rows are mixed
column by column. Rows with nested values, which no bucket key has, are encoded one by one.
Source: `MurmurHashUtils`, `BinaryRow`.
"""

# The hash is Murmur3 over the words (4 bytes, little endian) of the BinaryRow that the key columns would form. No row
# is built. For the keys (INT, STRING), a row of 24 bytes and more:
#
#     words 0-1     header: row kind, and a bit for each null
#     words 2-3     INT: the number, and 0
#     words 4-5     STRING up to 7 bytes: its bytes, and the length with a mark; longer: its length, and its offset
#     words 6-...   the longer text itself, padded to 8 bytes
#
# The state of all rows of a block is one array, and `_mix` mixes one word of every row into it. Fixed words come column
# by column. The offset of a variable part depends on the lengths of those before it, so `end` is carried along as a
# number or an array. Long texts follow: step n mixes word n of all rows that still have one; a few rows with very long
# texts are finished one by one (`_mix_long`), so that they do not cost a pass over all others for each word.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.row.binary_row import encode, serialize
from paimon.domain.row.binary_row_columns import (
    Array,
    ColumnWords,
    Text,
    Words,
    column_words,
    is_columnar,
    text_word,
    valid_rows,
)
from paimon.domain.row.row_hash import hash_bytes
from paimon.domain.row.values import to_values
from paimon.domain.types.data_types import DataType, VarBinaryType

_BLOCK_ROWS = 1 << 16
"""Rows hashed together; their state fits into the processor's cache."""
_FEW_ROWS = 16
"""If at most so many rows have words left, each is hashed alone, so one long text costs only its own length."""


def hash_rows(columns: Sequence[pa.Array], types: Sequence[DataType]) -> Array:
    """Return the signed 32-bit hash of each row of canonical Arrow arrays without chunks."""
    if not all(map(is_columnar, types)):
        rows = _rows(columns, types)
        return np.array([hash_bytes(encode(row, types)) for row in rows], np.int32)
    count = len(columns[0]) if columns else 0
    out = np.empty(count, np.int32)
    for start in range(0, count, _BLOCK_ROWS):
        block = [column.slice(start, _BLOCK_ROWS) for column in columns]
        out[start : start + _BLOCK_ROWS] = _hash_block(block, types)
    return out


def hash_texts(column: pa.Array) -> Array:
    """Return `hash_bytes` of each value of a text or binary column without nulls and chunks."""
    text = column_words(column, VarBinaryType()).text
    state = np.full(len(column), 42, np.uint32)
    if text is None:
        return state.view(np.int32)
    words = text.lengths // 4
    _mix_text(state, text, words)
    for i in range(3):
        rows = np.flatnonzero(text.lengths % 4 > i)
        part = state[rows]
        _mix(part, text.data[text.starts[rows] + 4 * words[rows] + i].view(np.int8).astype(np.int32).view(np.uint32))
        state[rows] = part
    return _finish_hash(state, text.lengths)


def serialize_rows(columns: Sequence[pa.Array], types: Sequence[DataType]) -> list[bytes]:
    """Serialize each row as a BinaryRow; made for few rows, such as partitions, first and last keys."""
    return [serialize(row, types) for row in _rows(columns, types)]


def count_row_bytes(columns: Sequence[pa.Array], types: Sequence[DataType]) -> Array:
    """Return the size in bytes of each row as a BinaryRow, from canonical Arrow arrays without chunks."""
    if not all(map(is_columnar, types)):
        return np.array([len(encode(row, types)) for row in _rows(columns, types)], np.int64)
    sizes = np.full(len(columns[0]) if columns else 0, (len(columns) + 71) // 64 * 8 + 8 * len(columns), np.int64)
    for column, data_type in zip(columns, types, strict=True):
        sizes += _variable_bytes(column_words(column, data_type))
    return sizes


def _rows(columns: Sequence[pa.Array], types: Sequence[DataType]) -> list[tuple[object, ...]]:
    return list(zip(*(to_values(c, t) for c, t in zip(columns, types, strict=True)), strict=True))


def _hash_block(columns: Sequence[pa.Array], types: Sequence[DataType]) -> Array:
    state = np.full(len(columns[0]), 42, np.uint32)
    parts = [column_words(c, t) for c, t in zip(columns, types, strict=True)]
    for word in _header_words(columns):
        _mix(state, word)
    end: Words = (len(columns) + 71) // 64 * 8 + 8 * len(columns)
    for part in parts:
        low, high = _fixed_words(part, end)
        _mix(state, low)
        _mix(state, high)
        end = end + _variable_bytes(part)
    for part in parts:
        for word in part.variable:
            _mix(state, word)
        if part.text is not None:
            lengths = part.text.lengths
            _mix_text(state, part.text, np.where(lengths > 7, (lengths + 7) // 8 * 2, 0))
    return _finish_hash(state, end)


def _header_words(columns: Sequence[pa.Array]) -> list[Words]:
    words: list[Words] = [0] * ((len(columns) + 71) // 64 * 2)
    for i, column in enumerate(columns):
        valid = valid_rows(column)
        if valid is not None:
            at, bit = divmod(8 + i, 32)
            words[at] = words[at] | (~valid).astype(np.uint32) << np.uint32(bit)
    return words


def _fixed_words(part: ColumnWords, end: Words) -> tuple[Words, Words]:
    if part.high is None:
        return part.low, end
    if part.text is None:
        return part.low, part.high
    outside = part.text.lengths > 7
    return np.where(outside, part.text.lengths, part.low), np.where(outside, end, part.high)


def _variable_bytes(part: ColumnWords) -> Words:
    if part.text is None:
        return 4 * len(part.variable)
    lengths = part.text.lengths
    return np.where(lengths > 7, (lengths + 7) & ~7, 0)


def _mix(state: Array, word: Words) -> None:
    """Mix one word a row into the state, in place."""
    if isinstance(word, int):
        mixed = word * 0xCC9E2D51 & 0xFFFFFFFF
        mixed = (mixed << 15 | mixed >> 17) * 0x1B873593 & 0xFFFFFFFF
        state ^= np.uint32(mixed)
    else:
        k = word.astype(np.uint32)
        k *= np.uint32(0xCC9E2D51)
        _rotate(k, 15)
        k *= np.uint32(0x1B873593)
        state ^= k
    _rotate(state, 13)
    state *= np.uint32(5)
    state += np.uint32(0xE6546B64)


def _rotate(values: Array, bits: int) -> None:
    carried = values >> np.uint32(32 - bits)
    values <<= np.uint32(bits)
    values |= carried


def _mix_text(state: Array, text: Text, counts: Array) -> None:
    """Mix the first words of each text into the state; `counts` says how many."""
    rows = np.flatnonzero(counts)
    step = 0
    while len(rows) > _FEW_ROWS:
        if len(rows) == len(state):
            _mix(state, text_word(text, step))
        else:
            part = state[rows]
            _mix(part, text_word(text, step, rows))
            state[rows] = part
        step += 1
        rows = rows[counts[rows] > step]
    for row in rows.tolist():
        _mix_long(state[row : row + 1], text, row, step, int(counts[row]))


def _mix_long(state: Array, text: Text, row: int, step: int, count: int) -> None:
    start = int(text.starts[row])
    end = start + min(int(text.lengths[row]), 4 * count)
    data = text.data[start + 4 * step : end].tobytes().ljust(4 * (count - step), b"\0")
    value = int(state[0])
    for word in np.frombuffer(data, "<u4").tolist():
        k = word * 0xCC9E2D51 & 0xFFFFFFFF
        k = (k << 15 | k >> 17) * 0x1B873593 & 0xFFFFFFFF
        value ^= k
        value = (value << 13 | value >> 19) * 5 + 0xE6546B64 & 0xFFFFFFFF
    state[0] = value


def _finish_hash(state: Array, length: Words) -> Array:
    state ^= np.uint32(length) if isinstance(length, int) else length.astype(np.uint32)
    state ^= state >> np.uint32(16)
    state *= np.uint32(0x85EBCA6B)
    state ^= state >> np.uint32(13)
    state *= np.uint32(0xC2B2AE35)
    state ^= state >> np.uint32(16)
    return state.view(np.int32)
