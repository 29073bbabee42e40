"""The layout of binary rows and arrays: sizes and positions of their parts.

Invariant: everything is little-endian. A row is a header with null bits, eight bytes a field, and a variable part in
steps of eight bytes.
Source: `BinaryRow`, `BinaryArray`, `AbstractBinaryWriter`.
"""

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

from __future__ import annotations

from paimon.domain.types.data_types import (
    TIMESTAMP_TYPES,
    BigIntType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    SmallIntType,
    TimeType,
    TinyIntType,
)

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
