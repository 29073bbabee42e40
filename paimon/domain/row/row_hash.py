"""The hash of a binary row, which determines its bucket.

Invariant: it is Murmur3 of 32 bits with seed 42 over whole little-endian words. Each byte that does not fill a word is
mixed as a *signed* word of its own, unlike in the standard tail.
Source: `MurmurHashUtils`.
"""

from __future__ import annotations

import struct

SEED = 42
_MASK = 0xFFFFFFFF


def hash_bytes(data: bytes) -> int:
    """Return the hash of bytes as a signed 32-bit number."""
    whole = len(data) & ~3
    state = SEED
    for word in struct.unpack_from(f"<{whole // 4}I", data):
        state = _mix_word(state, word)
    for byte in data[whole:]:
        state = _mix_word(state, byte - 256 if byte > 127 else byte)
    return _to_signed(_finish_hash(state, len(data)))


def _mix_word(state: int, word: int) -> int:
    k = _rotate_left((word * 0xCC9E2D51) & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotate_left(state ^ k, 13) * 5 + 0xE6546B64) & _MASK


def _finish_hash(state: int, length: int) -> int:
    state ^= length
    state = (state ^ (state >> 16)) * 0x85EBCA6B & _MASK
    state = (state ^ (state >> 13)) * 0xC2B2AE35 & _MASK
    return state ^ (state >> 16)


def _rotate_left(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _to_signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
