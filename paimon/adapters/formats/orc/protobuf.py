"""The wire form of protocol buffers: as much as the tail of an ORC file needs.

Law: `encode(decode(data)) == data` for messages in the shortest form; unknown fields are kept, in their order.
Source: the protocol buffers encoding guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from attrs import frozen

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_PARTS = 1_000_000


class Malformed(ValueError):
    """The bytes are no message."""


@frozen
class Part:
    """One field of a message as it stands: a number (varint) or bytes (all else)."""

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
        """The bytes of a field that has any."""
        if isinstance(self.value, int):
            raise Malformed(f"field {self.number} has no bytes")
        return self.value

    @property
    def as_signed(self) -> int:
        """The number of a zigzag (sint) field."""
        return signed(self.as_int)


def decode(data: bytes) -> list[Part]:
    """The fields of a message, in order."""
    found = list(islice(_parts(data), _MAX_PARTS + 1))
    if len(found) > _MAX_PARTS:
        raise Malformed(f"a message has more than {_MAX_PARTS} fields")
    return found


def encode(parts: Iterable[Part]) -> bytes:
    """The bytes of a message."""
    out = bytearray()
    for part in parts:
        out += _varint_bytes(part.number << 3 | part.wire)
        if isinstance(part.value, int):
            out += _varint_bytes(part.value)
            continue
        if part.wire == BYTES:
            out += _varint_bytes(len(part.value))
        out += part.value
    return bytes(out)


def number(parts: Iterable[Part], field: int, default: int = 0) -> int:
    """The last value of a varint field."""
    found = [p.as_int for p in parts if p.number == field]
    return found[-1] if found else default


def _parts(data: bytes) -> Iterator[Part]:
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == VARINT:
            value, at = varint(data, at)
            yield Part(key >> 3, wire, value)
            continue
        if wire == BYTES:
            size, at = varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise Malformed(f"wire type {wire}")
        if at + size > len(data):
            raise Malformed("a field ends after its message")
        yield Part(key >> 3, wire, data[at : at + size])
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, at most 64 bits of it, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("a number does not end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def signed(value: int) -> int:
    """What a zigzag number stands for."""
    return (value >> 1) ^ -(value & 1)


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
