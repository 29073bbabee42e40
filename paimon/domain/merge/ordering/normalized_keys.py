"""Encode columns as unsigned integers with the same order: normalized keys.

Texts of equal length are read in place, chunk by chunk, because the cost here is the allocation of memory.

Invariant: comparing the words of two rows from left to right orders the rows as Java orders keys: null first, text
and bytes by unsigned bytes, floats in the total order. Equal words mean equal values. The reference is
`paimon.domain.lsm.keys`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.buffers import Numbers, combine_column, read_validity, to_stored_numbers
from paimon.domain.columns.java_float_order import to_float_ordinals
from paimon.domain.types.arrow_arrays import to_numpy

# Text keys are often ids of one length: "order-000017", "2026-11-26". Then a column is a matrix of bytes, and eight
# columns of it are a big-endian word, without a copy of the text:
#
#     o r d e r - 0 0 | 0 0 1 7          width 12: the last word begins at 4, so that it lies inside of the value
#     all rows begin with "order-0000"   the first word that differs is found (`_find_varying_bits`)
#     r - 0 0 0 0 1 7                    only the last bytes vary, and all of them are digits: the number 17
#
# 1. The bits in which rows differ are the OR of all rows without the AND of all rows: one pass, no comparison of pairs.
# 2. If all varying bytes are digits, eight of them spell a number below 100,000,000 (`_spell`): pairs of digits become
#    numbers below 100, pairs of those below 10,000, and so on, for all rows at once. Such numbers are dense, so that
#    keys need no sort (`key_groups`).
# 3. Words are converted block by block: a block stays in the processor's cache.

# A normalized key is a list of 64-bit words, each an array with one number a row. Rows sort by the first word, then by
# the second one. Few words make a fast sort, and a single word with small numbers needs none: its numbers are slots of
# an array. So each column is reduced to as few bits as the values at hand need.
#
#     columns      id INT        day DATE          name STRING
#     values       1003, 1001    19723, 19724      "ab7", "ab9"
#     integers     1003, 1001    19723, 19724      "7", "9" as bytes (the common prefix says nothing)
#     ranges       2, 0          0, 1              0, 2
#     bits         2             1                 2
#     word         10 0 00       00 1 10           one word of 5 bits for the whole key
#
# 1. `_numbers` converts a column to integers that sort as its values do: floats by their bits in Java's total order, a
#    wide decimal as two integers, text as big-endian words of 8 bytes; text of equal length, and of digits, is cheaper
#    (`fixed_width_text`). Long or other values become ranks among their distinct values.
# 2. `_narrow_range` subtracts the smallest one. Null needs one bit in front. Descending columns count from the largest.
# 3. `pack_keys` puts parts next to each other until a word is full. A column with equal values needs no bit.
#
# The words depend on the values of the table at hand: they compare rows of one table, and never rows of two tables.


KeyWord = npt.NDArray[np.uint64]
"""64 bits of the normalized key of each row."""
Integers = npt.NDArray[np.integer[Any]]
_WRAP = 1 << 64
_BLOCK_ROWS = 1 << 16
"""The rows that are packed together, so that their numbers stay in the processor's cache."""


class KeyPart(NamedTuple):
    """Some bits of the sort key of each row: values below `1 << bits`."""

    values: KeyWord
    bits: int


def pack_keys(parts: Iterable[KeyPart]) -> list[KeyWord]:
    """Pack parts into as few words as hold them, most significant first; no word where all rows are equal."""
    words: list[KeyWord] = []
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


def to_key_parts(column: pa.Array, descending: bool = False) -> list[KeyPart]:
    """Return the parts of one column, most significant first; nulls are first also where `descending`."""
    if len(column) == 0 or column.null_count == len(column):
        return []
    valid = read_validity(column) if column.null_count else None
    parts = [_narrow_range(numbers, valid, descending) for numbers in _numbers(column)]
    if valid is not None:
        parts.insert(0, KeyPart(valid.astype(np.uint64), 1))
    return parts


def to_key_parts_by_chunk(column: pa.ChunkedArray | pa.Array) -> list[KeyPart]:
    """Return the parts of one column as `to_key_parts` does; chunks of fixed-width text are not combined first."""
    if isinstance(column, pa.ChunkedArray) and column.num_chunks > 1 and _is_text(column.type):
        fixed = pack_fixed_width_text(column.chunks)
        if fixed is not None:
            return [_narrow_range(word, None, False) for word in fixed]
    return to_key_parts(_whole(column))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _narrow_range(numbers: Integers, valid: npt.NDArray[np.bool_] | None, descending: bool) -> KeyPart:
    """Return the distance from the smallest (or largest) valid value, in as few bits as it needs."""
    present = numbers if valid is None else _fill_nulls(numbers, valid)
    low, high = int(present.min()), int(present.max())
    words = numbers.astype(np.int64, copy=False).view(np.uint64)  # differences below are exact modulo 2 to the 64
    values = np.uint64(high % _WRAP) - words if descending else words - np.uint64(low % _WRAP)
    if valid is not None:
        values = values & (-valid.astype(np.int64)).view(np.uint64)
    return KeyPart(values, (high - low).bit_length())


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
    codes: KeyWord = ranks[to_numpy(encoded.indices.fill_null(0))]
    return codes


def _text_numbers(column: pa.Array) -> list[Integers]:
    fixed = pack_fixed_width_text([column])
    if fixed is not None:
        return list(fixed)
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


def _gathered_word(
    text: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32]
) -> KeyWord:
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


def pack_key_columns(columns: Sequence[pa.ChunkedArray | pa.Array]) -> list[KeyWord]:
    """Pack key columns into few words, most significant first, as `pack_keys` of their parts does."""
    if all(_is_whole_number(column) for column in columns):
        blocks = [list(_split_blocks(column)) for column in columns]
        if len({tuple(map(len, numbers)) for numbers in blocks}) == 1:
            bounds = [_find_range(numbers) for numbers in blocks]
            bits = [(high - low).bit_length() for low, high in bounds]
            if 0 < sum(bits) <= 64:
                return [_pack_blocks(blocks, [low for low, _ in bounds], bits)]
    return pack_keys(part for column in columns for part in to_key_parts_by_chunk(column))


def _is_whole_number(column: pa.ChunkedArray | pa.Array) -> bool:
    kind = column.type
    is_number = pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind)
    return bool(is_number and kind.bit_width <= 64 and column.null_count == 0 and len(column))


def _split_blocks(column: pa.ChunkedArray | pa.Array) -> Iterator[Numbers]:
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        numbers = to_stored_numbers(chunk)
        for start in range(0, len(numbers), _BLOCK_ROWS):
            yield numbers[start : start + _BLOCK_ROWS]


def _find_range(blocks: Sequence[Numbers]) -> tuple[int, int]:
    return min(int(block.min()) for block in blocks), max(int(block.max()) for block in blocks)


def _pack_blocks(columns: Sequence[Sequence[Numbers]], lows: Sequence[int], bits: Sequence[int]) -> KeyWord:
    packed = np.zeros(sum(map(len, columns[0])), dtype=np.uint64)
    start = 0
    for blocks in zip(*columns, strict=True):
        words = packed[start : start + len(blocks[0])]
        start += len(words)
        for numbers, low, width in zip(blocks, lows, bits, strict=True):
            wide = numbers.astype(np.int64, copy=False).view(np.uint64)  # differences are exact modulo 2 to the 64
            words <<= np.uint64(width % 64)  # there is nothing left of 64 bits
            words |= wide - np.uint64(low % _WRAP)
    return packed


LONGEST_TEXT = 32
"""Bytes (after the common prefix) up to which text becomes words. Longer text is ranked by its distinct values."""
_LONGEST_VALUE = 128
_ZEROS = int.from_bytes(b"00000000", "big")
_SIXES = 0x0606_0606_0606_0606
_HIGH_HALVES = 0xF0F0_F0F0_F0F0_F0F0
_BLOCK_WORDS = 16_384
"""The number of words that fit into the processor's cache while they are converted."""


def pack_fixed_width_text(chunks: Sequence[pa.Array]) -> list[KeyWord] | None:
    """Return texts as normalized keys, [] if all are equal; None for nulls and other lengths."""
    texts = [_text(chunk) for chunk in chunks if len(chunk)]
    known = [text for text in texts if text is not None]
    if not known or len(known) < len(texts) or len({text.shape[1] for text in known}) > 1:
        return None
    width = known[0].shape[1]
    for at in range(0, width, 8):
        varying = _find_varying_bits([_strided_word(text, at) for text in known])
        if varying:
            prefix = min(at, width - 8) + (64 - varying.bit_length()) // 8 if width > 8 else 0
            if width - prefix > LONGEST_TEXT:
                return None
            return [_combine_words([_strided_word(text, place) for text in known]) for place in range(prefix, width, 8)]
    return []


def _text(chunk: pa.Array) -> npt.NDArray[np.uint8] | None:
    """Return the bytes of a chunk, one row a value; None where values differ in length."""
    offsets = np.frombuffer(chunk.buffers()[1], dtype="<i4", count=len(chunk) + 1, offset=4 * chunk.offset)
    width, uneven = divmod(int(offsets[-1] - offsets[0]), len(chunk))
    if chunk.null_count or uneven or not 0 < width <= _LONGEST_VALUE:
        return None
    if not bool((offsets[1:] - offsets[:-1] == width).all()):
        return None
    text = np.frombuffer(chunk.buffers()[2], dtype=np.uint8)[offsets[0] : offsets[-1]]
    return text.reshape(len(chunk), width)


def _strided_word(text: npt.NDArray[np.uint8], at: int) -> KeyWord:
    """Return 8 bytes from `at` of each value as one big-endian number, not copied; shorter values are padded in front.

    Near the end, the last 8 bytes are returned. Some of them are compared twice, which changes no order.
    """
    rows, width = text.shape
    if width < 8:
        padded = np.zeros((rows, 8), dtype=np.uint8)
        padded[:, 8 - width :] = text
        return padded.view(">u8").ravel()
    start = min(at, width - 8)
    view: KeyWord = np.ndarray((rows,), dtype=">u8", buffer=text, offset=start, strides=(width,))
    return view


def _find_varying_bits(words: Sequence[KeyWord]) -> int:
    """Return the bits in which the words are not all equal."""
    some = every = int(words[0][0])
    for part in words:
        some |= int(np.bitwise_or.reduce(part))
        every &= int(np.bitwise_and.reduce(part))
    return some ^ every


def _combine_words(words: Sequence[KeyWord]) -> KeyWord:
    """Return the number that eight characters spell, where all that vary are digits; otherwise the words themselves.

    Numbers of ids and dates are so dense that keys need fewer words, or no sorting at all.
    """
    varying = _find_varying_bits(words)
    same = sum(0xFF << at for at in range(0, 64, 8) if not varying >> at & 0xFF)
    spelled = np.empty(sum(map(len, words)), dtype=np.uint64)
    start = 0
    for part in words:
        for at in range(0, len(part), _BLOCK_WORDS):
            block = part[at : at + _BLOCK_WORDS].astype(np.uint64)
            if not _spell(block, same):
                return np.concatenate(words).astype(np.uint64)
            spelled[start + at : start + at + len(block)] = block
        start += len(part)
    return spelled


def _spell(block: KeyWord, same: int) -> bool:
    """Replace characters by the number that their digits spell; the bits of `same` are ignored."""
    block ^= np.uint64(_ZEROS)  # of digits their values remain
    block &= np.uint64(~same % _WRAP)
    above = int(np.bitwise_or.reduce(block)) | int(np.bitwise_or.reduce(block + np.uint64(_SIXES)))
    if above & _HIGH_HALVES:
        return False
    _join_pairs(block, 8, 10, 0x000F_000F_000F_000F)
    _join_pairs(block, 16, 100, 0x0000_00FF_0000_00FF)
    _join_pairs(block, 32, 10_000, 0xFFFF_FFFF)
    return True


def _join_pairs(block: KeyWord, bits: int, base: int, mask: int) -> None:
    """Join numbers of `bits` bits in pairs: the first one times `base`, plus the second one."""
    first = block >> np.uint64(bits)
    first &= np.uint64(mask)
    first *= np.uint64(base)
    block &= np.uint64(mask)
    block += first
