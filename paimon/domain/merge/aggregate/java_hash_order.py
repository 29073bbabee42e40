"""The iteration order of Java's hash tables, which some aggregated values show.

Invariant: a table has 16 slots and doubles when more than three quarters are used. Slots ascend; within a slot, entries
are in insertion order.

Source: `java.util.HashMap`, `BinaryString.hashCode`, `Decimal.hashCode`, `Timestamp.hashCode`.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Sequence
from typing import Any

from paimon.domain.row.row_hash_reference import hash_bytes
from paimon.domain.types.data_types import TIMESTAMP_TYPES, BigIntType, DataType, DoubleType, FloatType

_MASK = 0xFFFFFFFF


def order_as_hash_map(hashes: Sequence[int]) -> list[int]:
    """Return the positions of entries in iteration order, given their 32-bit hashes in insertion order."""
    slots = 16
    while len(hashes) > slots * 3 // 4:
        slots *= 2
    spread = [(h & _MASK) ^ ((h & _MASK) >> 16) for h in hashes]
    return sorted(range(len(hashes)), key=lambda i: spread[i] & (slots - 1))


def to_java_hash(value: Any, kind: DataType) -> int:
    """Return the hash code of a value as 32 unsigned bits; 0 for null and for types without a stable hash code."""
    match value:
        case None:
            return 0
        case bool():
            return 1231 if value else 1237
        case int() if isinstance(kind, TIMESTAMP_TYPES):
            return 31 * (31 + _fold_long(value // 1_000_000)) + value % 1_000_000 & _MASK
        case int():
            return _fold_long(value) if isinstance(kind, BigIntType) else value & _MASK
        case float():
            return _hash_of_float(value, kind)
        case str():
            return hash_bytes(value.encode()) & _MASK
        case decimal.Decimal():
            return _hash_of_decimal(value)
    return 0


def _fold_long(value: int) -> int:
    bits = value & 0xFFFF_FFFF_FFFF_FFFF
    return (bits ^ (bits >> 32)) & _MASK


def _hash_of_float(value: float, kind: DataType) -> int:
    if isinstance(kind, FloatType):
        return int(0x7FC00000 if value != value else struct.unpack(">I", struct.pack(">f", value))[0])
    assert isinstance(kind, DoubleType)
    bits = 0x7FF8000000000000 if value != value else struct.unpack(">q", struct.pack(">d", value))[0]
    return _fold_long(bits)


def _hash_of_decimal(value: decimal.Decimal) -> int:
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    state = 0
    for shift in range((number.bit_length() + 31) // 32 * 32 - 32, -1, -32):
        state = 31 * state + ((number >> shift) & _MASK) & _MASK
    return 31 * (-state if sign else state) - int(exponent) & _MASK
