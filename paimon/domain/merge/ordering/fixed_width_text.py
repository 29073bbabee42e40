"""Encode texts of equal length as unsigned integers with the same order.

Texts are read in place, chunk by chunk, because the cost here is the allocation of memory.

Invariant: comparing the words of two values from left to right orders them by unsigned bytes. Equal words mean equal
texts. The reference is `paimon.domain.lsm.keys`.
"""

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

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

KeyWord = npt.NDArray[np.uint64]

LONGEST_TEXT = 32
"""Bytes (after the common prefix) up to which text becomes words. Longer text is ranked by its distinct values."""
_LONGEST_VALUE = 128
_WRAP = 1 << 64
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
            return [_numbers([_strided_word(text, place) for text in known]) for place in range(prefix, width, 8)]
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


def _numbers(words: Sequence[KeyWord]) -> KeyWord:
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
