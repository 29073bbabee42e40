"""The compact Thrift protocol, as far as Parquet footers and page headers need it.

Invariant: `encode(decode(data))` means the same as `data`; unknown members are kept. Nesting is limited to 64 levels.
Source: the Thrift compact protocol specification.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from attrs import define

from paimon.adapters.formats.varints import decode_zigzag, encode_varint, encode_zigzag

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = (I16, I32, I64)
_MAX_DEPTH = 64
_MAX_BITS = 63
_MAX_NUMBER = 2**15 - 1


@define
class ThriftList:
    """A list with the wire type of its elements."""

    kind: int
    values: list[Any]


@define
class ThriftStruct:
    """A struct: member number -> (wire type, value)."""

    members: dict[int, tuple[int, Any]]

    def get(self, number: int) -> Any:
        """Return the value of a member; None if it is absent."""
        found = self.members.get(number)
        return None if found is None else found[1]

    def put(self, number: int, kind: int, value: Any) -> None:
        """Set a member. `kind` is the wire type, and `value` has the Python type for it."""
        self.members[number] = (kind, value)

    def drop(self, *numbers: int) -> None:
        """Remove members."""
        for number in numbers:
            self.members.pop(number, None)


def decode(data: bytes) -> ThriftStruct:
    """Decode the struct that the bytes begin with; IndexError or ValueError if they are damaged."""
    return _struct(ByteReader(data), 0)


def decode_sized(data: bytes) -> tuple[ThriftStruct, int]:
    """Decode the struct that the bytes begin with, and return it with its size in bytes."""
    source = ByteReader(data)
    return _struct(source, 0), source.at


def decode_at(data: bytes, at: int) -> tuple[ThriftStruct, int]:
    """Decode the struct at an offset, and return it with the offset of its end."""
    source = ByteReader(data, at)
    return _struct(source, 0), source.at


def encode(value: ThriftStruct) -> bytes:
    """Encode a struct."""
    out = bytearray()
    _put_struct(out, value)
    return bytes(out)


def encode_list(kind: int, values: Sequence[Any]) -> bytes:
    """Encode a list of values of a wire type, without a member number."""
    out = bytearray()
    _put_list(out, kind, values)
    return bytes(out)


def decode_head(data: bytes, last: int) -> tuple[ThriftStruct, bytes]:
    """Decode the members up to number `last`, and return the bytes that follow; ValueError without `last`."""
    source = ByteReader(data)
    members = _members(source, 0, last)
    if last not in members:
        raise ValueError(f"the footer has no member {last}")
    return ThriftStruct(members), source.read_rest()


def encode_head(value: ThriftStruct, rest: bytes) -> bytes:
    """Encode the members that `decode_head` decoded, followed by the undecoded bytes."""
    return encode(value)[:-1] + rest


class ByteReader:
    """Bytes and a position from which values are read."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def read_byte(self) -> int:
        """Read the next byte."""
        self.at += 1
        return self._data[self.at - 1]

    def read_bytes(self, count: int) -> bytes:
        """Read the next `count` bytes; IndexError if fewer are left."""
        piece = self._data[self.at : self.at + count]
        if len(piece) != count:
            raise IndexError("the bytes are truncated")
        self.at += count
        return piece

    def read_rest(self) -> bytes:
        """Return all bytes that are left."""
        return self._data[self.at :]

    def read_varint(self) -> int:
        """Read a number of at most 64 bits, stored as seven bits per byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self.read_byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > _MAX_BITS:
                raise ValueError("a number has no end")

    def read_zigzag(self) -> int:
        """Read a signed number in zigzag encoding."""
        return decode_zigzag(self.read_varint())


def _struct(source: ByteReader, depth: int) -> ThriftStruct:
    if depth > _MAX_DEPTH:
        raise ValueError(f"structs are nested deeper than {_MAX_DEPTH} levels")
    return ThriftStruct(_members(source, depth))


def _members(source: ByteReader, depth: int, last: int | None = None) -> dict[int, tuple[int, Any]]:
    members: dict[int, tuple[int, Any]] = {}
    number = 0
    while head := source.read_byte():
        number = number + (head >> 4) if head >> 4 else source.read_zigzag()
        kind = head & 0x0F
        if number in members or not 0 < number <= _MAX_NUMBER:
            raise ValueError(f"member {number} occurs twice or cannot exist")  # readers differ in how they read it
        members[number] = (TRUE, kind == TRUE) if kind in (TRUE, FALSE) else (kind, _value(source, kind, depth))
        if number == last:
            break
    return members


def _value(source: ByteReader, kind: int, depth: int) -> Any:
    if kind in _INTEGERS:
        return source.read_zigzag()
    if kind == BINARY:
        return source.read_bytes(source.read_varint())
    if kind == STRUCT:
        return _struct(source, depth + 1)
    if kind in (LIST, SET):
        return _list(source, depth)
    if kind in (TRUE, FALSE, BYTE):
        return source.read_byte()
    if kind == DOUBLE:
        return struct.unpack("<d", source.read_bytes(8))[0]
    raise ValueError(f"the wire type {kind} is unexpected")


def _list(source: ByteReader, depth: int) -> ThriftList:
    if depth > _MAX_DEPTH:
        raise ValueError(f"lists are nested deeper than {_MAX_DEPTH} levels")
    head = source.read_byte()
    size = source.read_varint() if head >> 4 == 15 else head >> 4
    kind = head & 0x0F
    return ThriftList(kind, [_value(source, kind, depth + 1) for _ in range(size)])


def _put_struct(out: bytearray, value: ThriftStruct) -> None:
    last = 0
    for number, (kind, member) in sorted(value.members.items()):
        if kind == TRUE and not member:
            kind = FALSE
        if 0 < number - last < 16:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            out += encode_zigzag(number)
        last = number
        if kind not in (TRUE, FALSE):
            _put_value(out, kind, member)
    out.append(0)


def _put_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        out += encode_zigzag(value)
    elif kind == BINARY:
        out += encode_varint(len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    elif kind in (LIST, SET):
        _put_list(out, value.kind, value.values)
    elif kind == DOUBLE:
        out += struct.pack("<d", value)
    else:
        out.append(value)


def _put_list(out: bytearray, kind: int, values: Sequence[Any]) -> None:
    out.append(min(len(values), 15) << 4 | kind)
    if len(values) >= 15:
        out += encode_varint(len(values))
    for element in values:
        _put_value(out, kind, element)
