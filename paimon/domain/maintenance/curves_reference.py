"""The positions of a row on a Z-order curve and on a Hilbert curve, one row after the other.

The functions take internal values (`paimon.domain.row.values`). `curves_columnar` has the theory.
Source: `ZIndexer`, `HilbertIndexer`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Context
from typing import Any

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

_EXACT = Context(prec=76)


def compute_zorder_position(values: Sequence[Any], types: Sequence[DataType], text_bytes: int) -> bytes:
    """Return the position of a row."""
    images = [_to_ordered_bytes(value, kind, text_bytes) for value, kind in zip(values, types, strict=True)]
    columns = ["".join(f"{byte:08b}" for byte in image) for image in images]
    bits = "".join(column[i] for i in range(max(map(len, columns))) for column in columns if i < len(column))
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def compute_hilbert_position(values: Sequence[Any], types: Sequence[DataType]) -> bytes:
    """Return the position of a row."""
    x = [_to_coordinate(value, kind) % (1 << 64) for value, kind in zip(values, types, strict=True)]
    for bit in range(62, 0, -1):
        below = (1 << bit) - 1
        for i in range(len(x)):
            if x[i] >> bit & 1:
                x[0] ^= below
            else:
                exchanged = (x[0] ^ x[i]) & below
                x[0] ^= exchanged
                x[i] ^= exchanged
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    mask = 0
    for bit in range(62, 0, -1):
        if x[-1] >> bit & 1:
            mask ^= (1 << bit) - 1
    position = 0
    for bit in range(62, -1, -1):
        for number in x:
            position = position << 1 | ((number ^ mask) >> bit & 1)
    return _to_signed_bytes(position).rjust(63, b"\0")[:63]


def _to_ordered_bytes(value: Any, kind: DataType, text_bytes: int) -> bytes:
    is_text = isinstance(kind, dt.CharType | dt.VarCharType | dt.BinaryType | dt.VarBinaryType)
    if value is None:
        return bytes(text_bytes if is_text else 8)
    if is_text:
        return _encode(value)[:text_bytes].ljust(text_bytes, b"\0")
    if isinstance(value, bool):
        return bytes([0x81 if value else 0, 0, 0, 0, 0, 0, 0, 0])
    if isinstance(kind, dt.DecimalType):
        return _to_signed_bytes(int(value.scaleb(kind.scale, _EXACT)))[:8].ljust(8, b"\0")
    if isinstance(value, float):
        bits = _to_float_bits(value)
        return ((bits ^ (bits >> 31 | -(1 << 63))) % (1 << 64)).to_bytes(8, "big")
    return (_to_number(value, kind) + (1 << 63)).to_bytes(8, "big")


def _to_coordinate(value: Any, kind: DataType) -> int:
    if value is None:
        return (1 << 63) - 1
    if isinstance(value, str | bytes):
        return int.from_bytes(_encode(value)[:8], "big")
    if isinstance(value, bool):
        return (1 << 63) - 1 if value else 0
    if isinstance(kind, dt.DecimalType):
        return int(value)
    if isinstance(value, float):
        return _to_float_bits(value)
    return _to_number(value, kind) % (256 if isinstance(kind, dt.TinyIntType) else 1 << 64)


def _encode(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _to_number(value: int, kind: DataType) -> int:
    return value // 1_000_000 if isinstance(kind, dt.TIMESTAMP_TYPES) else value


def _to_float_bits(value: float) -> int:
    bits: int = struct.unpack(">q", struct.pack(">d", math.nan if math.isnan(value) else value))[0]
    return bits


def _to_signed_bytes(value: int) -> bytes:
    """Return the shortest big-endian two's complement, as `BigInteger.toByteArray`."""
    return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)
