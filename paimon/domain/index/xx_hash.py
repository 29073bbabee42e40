"""The 64-bit hash of texts and bytes that bloom filters store: xxHash64 with seed 0, for one value and for many.

Invariant: `xx_hash_texts(array)[i] == xx_hash(array[i])`.
Source: `LongHashFunction.xx`, and the specification of xxHash.
"""

# xxHash64 mixes stripes of 32 bytes into four lanes, then what remains: words of 8 bytes, one of 4 bytes, single bytes.
# For many values at once, each step mixes the same part of every value that still has it. The values are ordered by
# length, the longest first, so the values of a step are a prefix of all:
#
#     length 70   stripe 0   stripe 1   byte .. of the rest
#     length 40   stripe 0              word 0
#     length  5                         word of 4 bytes, 1 byte
#
# A value of more than `_LONG_BYTES` is hashed alone: a step with few values costs as much as one with thousands.

from __future__ import annotations

import struct
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes: TypeAlias = npt.NDArray[np.uint64]
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_STRIPE = 32
_LONG_BYTES = 2_048
_LANES = tuple(seed & _MASK for seed in (_P1 + _P2, _P2, 0, -_P1))


def xx_hash(data: bytes) -> int:
    """Return the hash of bytes as an unsigned number."""
    stripes = len(data) // _STRIPE
    state = _P5
    if stripes:
        lanes = list(_LANES)
        for words in struct.iter_unpack("<4Q", data[: stripes * _STRIPE]):
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
        state = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return _finish((state + len(data)) & _MASK, data[stripes * _STRIPE :])


def _finish(state: int, rest: bytes) -> int:
    words = len(rest) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", rest[:words]):
        state = (_rotate(state ^ _round(0, word), 27) * _P1 + _P4) & _MASK
    rest = rest[words:]
    if len(rest) >= 4:
        state = (_rotate(state ^ int.from_bytes(rest[:4], "little") * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        state = _rotate(state ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    state = (state ^ state >> 33) * _P2 & _MASK
    state = (state ^ state >> 29) * _P3 & _MASK
    return state ^ state >> 32


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def xx_hash_texts(texts: pa.Array) -> Hashes:
    """Return the hash of each value of a binary array without nulls."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32, texts.offset + len(texts) + 1)[texts.offset :].astype(
        np.int64
    )
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    is_long = int(np.searchsorted(-lengths[order], -_LONG_BYTES))
    hashes = np.empty(len(texts), np.uint64)
    for row in order[:is_long].tolist():
        hashes[row] = xx_hash(texts[row].as_buffer().to_pybytes())
    short = order[is_long:]
    if len(short):
        data = np.zeros(int(offsets[-1]) + 8, np.uint8)
        stored = texts.buffers()[2]
        if stored is not None and offsets[-1]:
            data[: offsets[-1]] = np.frombuffer(stored, np.uint8, int(offsets[-1]))
        hashes[short] = _hash_ordered(data, offsets[:-1][short], lengths[short])
    return hashes


def _hash_ordered(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Hashes:
    """Return the hashes of values that are ordered by length, the longest first."""
    state = np.full(len(starts), _P5, np.uint64)
    striped = _count_at_least(lengths, _STRIPE)
    if striped:
        state[:striped] = _mix_stripes(data, starts[:striped], lengths[:striped])
    state += lengths.astype(np.uint64)
    places = starts + lengths // _STRIPE * _STRIPE
    rest = lengths % _STRIPE
    for _ in range(3):
        rows = np.flatnonzero(rest >= 8)
        mixed = _mix_round(np.uint64(0), _words(data, places[rows], "<u8"))
        state[rows] = _turn(state[rows] ^ mixed, 27) * np.uint64(_P1) + np.uint64(_P4)
        places[rows] += 8
        rest[rows] -= 8
    rows = np.flatnonzero(rest >= 4)
    mixed = _words(data, places[rows], "<u4").astype(np.uint64) * np.uint64(_P1)
    state[rows] = _turn(state[rows] ^ mixed, 23) * np.uint64(_P2) + np.uint64(_P3)
    places[rows] += 4
    rest[rows] -= 4
    for _ in range(3):
        rows = np.flatnonzero(rest > 0)
        mixed = data[places[rows]].astype(np.uint64) * np.uint64(_P5)
        state[rows] = _turn(state[rows] ^ mixed, 11) * np.uint64(_P1)
        places[rows] += 1
        rest[rows] -= 1
    state = (state ^ state >> np.uint64(33)) * np.uint64(_P2)
    state = (state ^ state >> np.uint64(29)) * np.uint64(_P3)
    return state ^ state >> np.uint64(32)


def _mix_stripes(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Hashes:
    lanes = [np.full(len(starts), seed, np.uint64) for seed in _LANES]
    for stripe in range(int(lengths[0]) // _STRIPE):
        count = _count_at_least(lengths, (stripe + 1) * _STRIPE)
        for i, lane in enumerate(lanes):
            words = _words(data, starts[:count] + (stripe * _STRIPE + 8 * i), "<u8")
            lane[:count] = _mix_round(lane[:count], words)
    state = sum((_turn(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)), np.uint64(0))
    for lane in lanes:
        state = (state ^ _mix_round(np.uint64(0), lane)) * np.uint64(_P1) + np.uint64(_P4)
    return np.asarray(state, np.uint64)


def _count_at_least(descending: npt.NDArray[np.int64], least: int) -> int:
    return int(np.searchsorted(-descending, -least, side="right"))


def _words(data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], dtype: str) -> Hashes:
    """Return the words at positions that need no alignment, by a view of all overlapping words."""
    width = np.dtype(dtype).itemsize
    overlapping: Hashes = np.ndarray((len(data) - width + 1,), dtype, data.data, strides=(1,))
    return overlapping[places]


def _mix_round(lanes: Hashes | np.uint64, words: Hashes) -> Hashes:
    return _turn(lanes + words * np.uint64(_P2), 31) * np.uint64(_P1)


def _turn(values: Hashes, bits: int) -> Hashes:
    turned: Hashes = values << np.uint64(bits) | values >> np.uint64(64 - bits)
    return turned
