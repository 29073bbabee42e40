"""The hash of a binary row, from which its bucket follows.

Law: Murmur3 of 32 bits with seed 42 over whole little-endian words; bytes that do not fill a word are each mixed as a
*signed* word of their own, which is not what the standard tail does.
Source: `MurmurHashUtils`.
"""

from __future__ import annotations

import struct

SEED = 42
_MASK = 0xFFFFFFFF


def hash_bytes(data: bytes) -> int:
    """The hash of these bytes as a signed 32-bit number."""
    whole = len(data) & ~3
    state = SEED
    for word in struct.unpack_from(f"<{whole // 4}I", data):
        state = _mixed(state, word)
    for byte in data[whole:]:
        state = _mixed(state, byte - 256 if byte > 127 else byte)
    return _signed(_finished(state, len(data)))


def _mixed(state: int, word: int) -> int:
    k = _rotated((word * 0xCC9E2D51) & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotated(state ^ k, 13) * 5 + 0xE6546B64) & _MASK


def _finished(state: int, length: int) -> int:
    state ^= length
    state = (state ^ (state >> 16)) * 0x85EBCA6B & _MASK
    state = (state ^ (state >> 13)) * 0xC2B2AE35 & _MASK
    return state ^ (state >> 16)


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
