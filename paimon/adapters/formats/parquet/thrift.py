"""The compact Thrift protocol, as far as Parquet footers need it: any struct as plain values, and back.

Law: `encode(decode(data)[0])` means the same as `data`; members that nobody here knows are kept.
"""

from __future__ import annotations

import struct
from typing import Any

from attrs import define

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = (I16, I32, I64)
_MAX_DEPTH = 64
_MAX_BITS = 63
_MAX_NUMBER = 2**15 - 1


@define
class ThriftList:
    """A list, with the wire type of its elements."""

    kind: int
    values: list[Any]


@define
class ThriftStruct:
    """A struct: member number -> (wire type, value)."""

    members: dict[int, tuple[int, Any]]

    def get(self, number: int) -> Any:
        """The value of a member, None where it is absent."""
        found = self.members.get(number)
        return None if found is None else found[1]

    def put(self, number: int, kind: int, value: Any) -> None:
        """Set a member."""
        self.members[number] = (kind, value)

    def drop(self, *numbers: int) -> None:
        """Remove members."""
        for number in numbers:
            self.members.pop(number, None)


def decode(data: bytes) -> ThriftStruct:
    """The struct that the bytes begin with; IndexError or ValueError where they are none."""
    return _struct(Source(data), 0)


def decode_sized(data: bytes) -> tuple[ThriftStruct, int]:
    """Like `decode`, and how many bytes the struct has."""
    source = Source(data)
    return _struct(source, 0), source.at


def encode(value: ThriftStruct) -> bytes:
    """The bytes of a struct."""
    out = bytearray()
    _put_struct(out, value)
    return bytes(out)


def decode_head(data: bytes, last: int) -> tuple[ThriftStruct, bytes]:
    """The members up to number `last`, which must be there, and the bytes of what follows, undecoded."""
    source = Source(data)
    members = _members(source, 0, last)
    if last not in members:
        raise ValueError(f"the footer has no member {last}")
    return ThriftStruct(members), source.rest()


def encode_head(value: ThriftStruct, rest: bytes) -> bytes:
    """The counterpart of `decode_head`."""
    return encode(value)[:-1] + rest


class Source:
    """Bytes and a position."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def byte(self) -> int:
        """The next byte."""
        self.at += 1
        return self._data[self.at - 1]

    def take(self, count: int) -> bytes:
        """So many bytes; IndexError where fewer are left."""
        piece = self._data[self.at : self.at + count]
        if len(piece) != count:
            raise IndexError("the bytes end early")
        self.at += count
        return piece

    def rest(self) -> bytes:
        """All that is left."""
        return self._data[self.at :]

    def varint(self) -> int:
        """A number of seven bits a byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > _MAX_BITS:
                raise ValueError("a number without end")

    def zigzag(self) -> int:
        """Such a number with its sign."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)


def _struct(source: Source, depth: int) -> ThriftStruct:
    if depth > _MAX_DEPTH:
        raise ValueError("the footer nests too deeply")
    return ThriftStruct(_members(source, depth))


def _members(source: Source, depth: int, last: int | None = None) -> dict[int, tuple[int, Any]]:
    members: dict[int, tuple[int, Any]] = {}
    number = 0
    while head := source.byte():
        number = number + (head >> 4) if head >> 4 else source.zigzag()
        kind = head & 0x0F
        if number in members or not 0 < number <= _MAX_NUMBER:
            raise ValueError(f"member {number} stands twice, or cannot be")  # readers differ in what they make of it
        members[number] = (TRUE, kind == TRUE) if kind in (TRUE, FALSE) else (kind, _value(source, kind, depth))
        if number == last:
            break
    return members


def _value(source: Source, kind: int, depth: int) -> Any:
    if kind in _INTEGERS:
        return source.zigzag()
    if kind == BINARY:
        return source.take(source.varint())
    if kind == STRUCT:
        return _struct(source, depth + 1)
    if kind in (LIST, SET):
        return _list(source, depth)
    if kind in (TRUE, FALSE, BYTE):
        return source.byte()
    if kind == DOUBLE:
        return struct.unpack("<d", source.take(8))[0]
    raise ValueError(f"unexpected wire type {kind} in the footer")


def _list(source: Source, depth: int) -> ThriftList:
    head = source.byte()
    size = source.varint() if head >> 4 == 15 else head >> 4
    kind = head & 0x0F
    return ThriftList(kind, [_value(source, kind, depth + 1) for _ in range(size)])


def _put_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_zigzag(out: bytearray, value: int) -> None:
    _put_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _put_struct(out: bytearray, value: ThriftStruct) -> None:
    last = 0
    for number, (kind, member) in sorted(value.members.items()):
        if kind == TRUE and not member:
            kind = FALSE
        if 0 < number - last < 16:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            _put_zigzag(out, number)
        last = number
        if kind not in (TRUE, FALSE):
            _put_value(out, kind, member)
    out.append(0)


def _put_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _put_zigzag(out, value)
    elif kind == BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    elif kind in (LIST, SET):
        out.append(min(len(value.values), 15) << 4 | value.kind)
        if len(value.values) >= 15:
            _put_varint(out, len(value.values))
        for element in value.values:
            _put_value(out, value.kind, element)
    elif kind == DOUBLE:
        out += struct.pack("<d", value)
    else:
        out.append(value)
