"""Integers of variable length, as Avro, Protobuf and Thrift store them: seven bits per byte, the lowest first.

A zigzag encoding makes signed integers unsigned, so that small absolute values are short: 0, -1, 1, -2 are 0, 1, 2, 3.
"""

from __future__ import annotations


def encode_varint(value: int) -> bytes:
    """Encode an unsigned integer."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_zigzag(value: int) -> bytes:
    """Encode a signed integer."""
    return encode_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def decode_zigzag(value: int) -> int:
    """Return the signed integer of an unsigned one."""
    return (value >> 1) ^ -(value & 1)
