"""Rows as bytes: keys, partitions and statistics in manifests, and the input of the bucket hash.

A row is a header with null bits, eight bytes a field, and a variable part in steps of eight bytes. Everything is
little-endian. Offsets count from the start of the row or array that contains them.

Invariant: `decode(encode(values)) == values` for internal values, and the bytes equal Java's. The serialized form has
the number of fields in front, as four bytes big-endian, and is decoded by that number. A null leaves its eight bytes
zero. A null decimal or timestamp that is not compact still takes zeroed bytes in the variable part and stores their
offset, so the hash of a row depends on it. A part that leaves its container means damaged data; it never becomes a
shorter value.
Source: `BinaryRow`, `BinaryRowSerializer`, `SerializationUtils`, `BinaryArray`, `BinaryMap`, `BinaryRowWriter`,
`BinaryArrayWriter`, `AbstractBinaryWriter`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    CHARACTER_TYPES,
    TIMESTAMP_TYPES,
    ArrayType,
    BigIntType,
    BlobType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    MapType,
    MultisetType,
    RowType,
    SmallIntType,
    TimeType,
    TinyIntType,
    VariantType,
    VectorType,
)
from paimon.domain.types.type_text import format_type

# The row (7, 'orders', '0123456789', null) of INT, STRING, STRING, INT:
#
#     byte    part        content
#      0      header      the row kind; then a bit for each field, here that of field 3, which is null
#      8      field 0     7
#     16      field 1     'orders', 0x86: a text of up to 7 bytes is stored in place, the last byte is 0x80 + its length
#     24      field 2     length 10 in the low half, offset 40 in the high half
#     32      field 3     0
#     40      variable    '0123456789', and zeros up to a multiple of 8 bytes
#
# Also in the variable part: a DECIMAL of more than 18 digits as 16 bytes, of which the field has the length and the
# offset; and the milliseconds of a TIMESTAMP of more than 3 digits, of which the field has the nanoseconds within the
# millisecond and the offset. Where rows are stored (partitions, keys, statistics), the number of fields comes first, as
# four bytes, big-endian.


HEADER_BITS = 8
"""Bits of the row kind, after which the null bits begin."""
INLINE_BYTES = 7
"""Text and bytes up to this length are stored in the fixed part."""
COMPACT_DECIMAL_PRECISION = 18
COMPACT_TIMESTAMP_PRECISION = 3
DECIMAL_BYTES = 16
"""Bytes in the variable part of a decimal that is not compact, whatever its value."""
NANOS_PER_MILLI = 1_000_000

PRIMITIVE_CODES: dict[type[DataType], str] = {
    BooleanType: "?", TinyIntType: "b", SmallIntType: "h", IntType: "i", DateType: "i", TimeType: "i",
    BigIntType: "q", FloatType: "f", DoubleType: "d",
}  # fmt: skip
"""The `struct` codes of the types that are stored unchanged."""


def null_area_bytes(arity: int) -> int:
    """Return the bytes of the row kind and the null bits of a row of so many fields."""
    return (arity + 63 + HEADER_BITS) // 64 * 8


def fixed_bytes(arity: int) -> int:
    """Return the bytes in front of the variable part of a row of so many fields."""
    return null_area_bytes(arity) + 8 * arity


def round_up_to_word(length: int) -> int:
    """Round a number of bytes up to a multiple of eight."""
    return (length + 7) & ~7


def array_header_bytes(count: int) -> int:
    """Return the bytes of the element count and the null bits of an array."""
    return 4 + (count + 31) // 32 * 4


def element_bytes(element: DataType) -> int:
    """Return the bytes that one element takes in the fixed part of an array."""
    match element:
        case BooleanType() | TinyIntType():
            return 1
        case SmallIntType():
            return 2
        case IntType() | DateType() | TimeType() | FloatType():
            return 4
        case _:
            return 8


def is_wide_decimal(data_type: DataType) -> bool:
    """Return whether a type is a decimal whose value is in the variable part."""
    return isinstance(data_type, DecimalType) and data_type.precision > COMPACT_DECIMAL_PRECISION


def is_wide_timestamp(data_type: DataType) -> bool:
    """Return whether a type is a timestamp whose milliseconds are in the variable part."""
    return isinstance(data_type, TIMESTAMP_TYPES) and data_type.precision > COMPACT_TIMESTAMP_PRECISION


def row_values(data: bytes, types: Sequence[DataType]) -> tuple[Any, ...]:
    """Read the fields of a BinaryRow that begins at the first byte."""
    start = null_area_bytes(len(types))
    _part(data, 0, start)
    return tuple(
        None if _bit(data, HEADER_BITS + i) else _value(data, start + 8 * i, data_type)
        for i, data_type in enumerate(types)
    )


def _array_values(data: bytes, element: DataType) -> list[Any]:
    count = _int(data, 0)
    size, start = element_bytes(element), array_header_bytes(count)
    _part(data, 4, start - 4 + size * count)
    return [None if _bit(data, 32 + i) else _value(data, start + size * i, element) for i in range(count)]


def _map_values(data: bytes, key: DataType, value: DataType) -> list[tuple[Any, Any]]:
    split = 4 + _int(data, 0)
    keys, values = _array_values(_part(data, 4, split - 4), key), _array_values(data[split:], value)
    return list(zip(keys, values, strict=True))


def _vector_values(data: bytes, element: DataType) -> list[Any]:
    return list(struct.unpack_from(f"<{_int(data, 0)}{PRIMITIVE_CODES[type(element)]}", data, 4))


def _value(data: bytes, at: int, data_type: DataType) -> Any:
    code = PRIMITIVE_CODES.get(type(data_type))
    if code is not None:
        return struct.unpack_from("<" + code, data, at)[0]
    low, high = struct.unpack_from("<ii", data, at)
    if isinstance(data_type, DecimalType):
        wide = is_wide_decimal(data_type)
        number = int.from_bytes(
            _part(data, high, low) if wide else _part(data, at, 8), "big" if wide else "little", signed=True
        )
        return to_decimal(number, data_type.scale)
    if isinstance(data_type, TIMESTAMP_TYPES):
        wide = is_wide_timestamp(data_type)
        millis: int = struct.unpack_from("<q", data, high if wide else at)[0]
        return millis * NANOS_PER_MILLI + (low if wide else 0)
    return _variable(data, at, low, high, data_type)


def _variable(data: bytes, at: int, low: int, high: int, data_type: DataType) -> Any:
    if isinstance(data_type, (*CHARACTER_TYPES, *BYTES_TYPES, BlobType)):
        mark = data[at + 7]
        raw = _part(data, at, mark & 0x7F) if mark & 0x80 else _part(data, high, low)
        return raw.decode() if isinstance(data_type, CHARACTER_TYPES) else bytes(raw)
    return _read_nested(_part(data, high, low), data_type)


def _read_nested(data: bytes, data_type: DataType) -> Any:
    match data_type:
        case ArrayType(element=element):
            return _array_values(data, element)
        case MapType(key=key, value=item):
            return _map_values(data, key, item)
        case MultisetType(element=element):
            return _map_values(data, element, IntType())
        case RowType(fields=fields):
            return row_values(data, [f.type for f in fields])
        case VectorType(element=element):
            return _vector_values(data, element)
        case VariantType():
            split = 4 + _int(data, 0)
            return _part(data, 4, split - 4), data[split:]
        case _:
            raise Unsupported(
                f"keys, partitions and statistics of type {format_type(data_type)}", hint="use an atomic type"
            )


def to_decimal(number: int, scale: int) -> Decimal:
    """Return the decimal ``number / 10**scale`` with exactly this scale.

    >>> to_decimal(-1250, 2)
    Decimal('-12.50')
    """
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _int(data: bytes, at: int) -> int:
    found: int = struct.unpack_from("<i", data, at)[0]
    if found < 0:
        raise ValueError("a length is negative")
    return found


def _part(data: bytes, at: int, length: int) -> bytes:
    if at < 0 or length < 0 or at + length > len(data):
        raise ValueError(f"bytes {at} to {at + length} of {len(data)}")
    return data[at : at + length]


def _bit(data: bytes, bit: int) -> bool:
    return bool(data[bit // 8] >> bit % 8 & 1)


def row_bytes(values: Sequence[Any], types: Sequence[DataType], row_kind: int) -> bytes:
    """Encode internal values as a BinaryRow without the field count; `row_kind` 0 +I, 1 -U, 2 +U, 3 -D."""
    out = bytearray(fixed_bytes(len(types)))
    out[0] = row_kind
    start = null_area_bytes(len(types))
    for i, (value, data_type) in enumerate(zip(values, types, strict=True)):
        if value is None:
            bit = HEADER_BITS + i
            out[bit // 8] |= 1 << bit % 8
        _put(out, start + 8 * i, value, data_type)
    return bytes(out)


def _array_bytes(values: Sequence[Any], element: DataType) -> bytes:
    size, start = element_bytes(element), array_header_bytes(len(values))
    out = bytearray(round_up_to_word(start + size * len(values)))
    struct.pack_into("<i", out, 0, len(values))
    for i, value in enumerate(values):
        if value is None:
            out[4 + i // 8] |= 1 << i % 8
        else:
            # Java has one NaN in arrays, though in rows a NaN keeps its bits.
            _put(out, start + size * i, math.nan if value != value else value, element)
    return bytes(out)


def _map_bytes(pairs: Sequence[tuple[Any, Any]], key: DataType, value: DataType) -> bytes:
    keys = _array_bytes([k for k, _ in pairs], key)
    return struct.pack("<i", len(keys)) + keys + _array_bytes([v for _, v in pairs], value)


def _vector_bytes(values: Sequence[Any], element: DataType) -> bytes:
    raw = struct.pack(f"<{len(values)}{PRIMITIVE_CODES[type(element)]}", *values)
    return struct.pack("<i", len(values)) + raw.ljust(round_up_to_word(len(raw)), b"\0")


def _put(out: bytearray, at: int, value: Any, data_type: DataType) -> None:
    code = PRIMITIVE_CODES.get(type(data_type))
    if isinstance(data_type, DecimalType) and is_wide_decimal(data_type):
        _put_wide_decimal(out, at, value, data_type.scale)
    elif is_wide_timestamp(data_type):
        _put_wide_timestamp(out, at, value)
    elif value is None:
        return
    elif code is not None:
        struct.pack_into("<" + code, out, at, value)
    elif isinstance(data_type, DecimalType):
        struct.pack_into("<q", out, at, to_unscaled(value, data_type.scale))
    elif isinstance(data_type, TIMESTAMP_TYPES):
        struct.pack_into("<q", out, at, value // NANOS_PER_MILLI)
    else:
        _put_variable(out, at, value, data_type)


def _put_variable(out: bytearray, at: int, value: Any, data_type: DataType) -> None:
    if isinstance(data_type, CHARACTER_TYPES):
        _put_text(out, at, value.encode())
    elif isinstance(data_type, (*BYTES_TYPES, BlobType)):
        _put_text(out, at, value)
    else:
        data = _nested_bytes(value, data_type)
        _put_reference(out, at, data, len(data))


def _nested_bytes(value: Any, data_type: DataType) -> bytes:
    match data_type:
        case ArrayType(element=element):
            return _array_bytes(value, element)
        case MapType(key=key, value=item):
            return _map_bytes(value, key, item)
        case MultisetType(element=element):
            return _map_bytes(value, element, IntType())
        case RowType(fields=fields):
            return row_bytes(value, [f.type for f in fields], 0)
        case VectorType(element=element):
            return _vector_bytes(value, element)
        case VariantType():
            return b"".join((struct.pack("<i", len(value[0])), *value))
        case _:
            raise Unsupported(
                f"keys, partitions and statistics of type {format_type(data_type)}", hint="use an atomic type"
            )


def _put_text(out: bytearray, at: int, data: bytes) -> None:
    if len(data) <= INLINE_BYTES:
        out[at : at + len(data)] = data
        out[at + 7] = 0x80 | len(data)
    else:
        _put_reference(out, at, data, len(data))


def _put_reference(out: bytearray, at: int, data: bytes, low: int) -> None:
    struct.pack_into("<ii", out, at, low, len(out))
    out += data.ljust(round_up_to_word(len(data)), b"\0")


def _put_wide_decimal(out: bytearray, at: int, value: Decimal | None, scale: int) -> None:
    if value is None:
        data = b""
    else:
        number = to_unscaled(value, scale)
        length = (number if number >= 0 else ~number).bit_length() // 8 + 1
        data = number.to_bytes(length, "big", signed=True)
    _put_reference(out, at, data.ljust(DECIMAL_BYTES, b"\0"), len(data))


def _put_wide_timestamp(out: bytearray, at: int, value: int | None) -> None:
    millis, nanos = divmod(value or 0, NANOS_PER_MILLI)
    _put_reference(out, at, struct.pack("<q", millis), nanos)


def to_unscaled(value: Decimal, scale: int) -> int:
    """Return the value times ten to the power of `scale`, exactly; Decimal's own arithmetic would round to 28 digits.

    A value that is not finite, or has more than `scale` digits after the point, raises `InvalidRequest`.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent + scale < 0:
        raise InvalidRequest(f"Decimal {value} has more than {scale} digits after the point", subject=str(value))
    number: int = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number


def encode(values: Sequence[Any], types: Sequence[DataType], row_kind: int = 0) -> bytes:
    """Encode internal values as a BinaryRow without the field count; `row_kind` 0 +I, 1 -U, 2 +U, 3 -D."""
    return row_bytes(values, types, row_kind)


def decode(data: bytes, types: Sequence[DataType]) -> tuple[Any, ...]:
    """Decode the internal values of a BinaryRow; bytes that are not a row of these types raise `CorruptTable`."""
    try:
        return row_values(data, types)
    except (ValueError, struct.error, IndexError, KeyError) as error:
        raise CorruptTable("binary row", f"cannot be read as {len(types)} fields: {error}") from error


def serialize(values: Sequence[Any], types: Sequence[DataType]) -> bytes:
    """Encode a BinaryRow with its number of fields in front, as manifests store it."""
    return struct.pack(">i", len(types)) + row_bytes(values, types, 0)


def deserialize(data: bytes, types: Sequence[DataType]) -> tuple[Any, ...]:
    """Decode a serialized row: as many values as the row has, at most one for each type.

    Older schemas had fewer columns, and empty statistics have none: only the leading types are used then. A row with
    more fields than types is corrupt.
    """
    count = read_arity(data)
    if count > len(types):
        raise CorruptTable("binary row", f"has {count} fields where at most {len(types)} are expected")
    return decode(data[4:], types[:count])


def read_arity(data: bytes) -> int:
    """Read the number of fields of a serialized row."""
    count = int.from_bytes(data[:4], "big", signed=True)
    if len(data) < 4 or count < 0:
        raise CorruptTable("binary row", f"{len(data)} bytes do not begin with a number of fields")
    return count
