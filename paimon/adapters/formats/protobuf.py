"""The wire format of protocol buffers, as far as the tail of an ORC file needs it.

Invariant: `encode(decode(data)) == data` for messages in the shortest form; unknown fields are kept in their order.
Source: the protocol buffers encoding guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from attrs import frozen

from paimon.adapters.formats.varints import decode_zigzag, encode_varint

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_PARTS = 1_000_000


class Malformed(ValueError):
    """The bytes are not a valid message or ORC structure."""


@frozen
class Part:
    """One field of a message: its field number, its wire type, and its value (an int for varints, else bytes)."""

    number: int
    wire: int
    value: int | bytes

    @property
    def as_int(self) -> int:
        """The number of a varint field."""
        if not isinstance(self.value, int):
            raise Malformed(f"field {self.number} is not a number")
        return self.value

    @property
    def as_bytes(self) -> bytes:
        """The bytes of a field with any other wire type."""
        if isinstance(self.value, int):
            raise Malformed(f"field {self.number} has no bytes")
        return self.value

    @property
    def as_signed(self) -> int:
        """The number of a zigzag (sint) field."""
        return decode_zigzag(self.as_int)


def decode(data: bytes) -> list[Part]:
    """Decode a message into its fields, in order. More than a million fields are Malformed."""
    found = list(islice(_parts(data), _MAX_PARTS + 1))
    if len(found) > _MAX_PARTS:
        raise Malformed(f"a message has more than {_MAX_PARTS} fields")
    return found


def encode(parts: Iterable[Part]) -> bytes:
    """Encode fields as a message."""
    out = bytearray()
    for part in parts:
        out += encode_varint(part.number << 3 | part.wire)
        if isinstance(part.value, int):
            out += encode_varint(part.value)
            continue
        if part.wire == BYTES:
            out += encode_varint(len(part.value))
        out += part.value
    return bytes(out)


def int_field(parts: Iterable[Part], field: int, default: int = 0) -> int:
    """Return the last value of a varint field, or `default` if the message has no such field."""
    found = [p.as_int for p in parts if p.number == field]
    return found[-1] if found else default


def _parts(data: bytes) -> Iterator[Part]:
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        wire = key & 7
        if wire == VARINT:
            value, at = read_varint(data, at)
            yield Part(key >> 3, wire, value)
            continue
        if wire == BYTES:
            size, at = read_varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise Malformed(f"the wire type {wire} does not exist")
        if at + size > len(data):
            raise Malformed("a field is longer than its message")
        yield Part(key >> 3, wire, data[at : at + size])
        at += size


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read the number of at most 64 bits at an offset, and the offset behind it; else Malformed."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("a number has no end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
