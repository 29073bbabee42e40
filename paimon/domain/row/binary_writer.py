"""Binary rows, arrays and maps written from internal values.

Invariant: a null leaves its eight bytes zero. A null decimal or timestamp that is not compact still takes zeroed bytes
in the variable part and stores their offset, so the hash of a row depends on it.
Source: `BinaryRowWriter`, `BinaryArrayWriter`, `AbstractBinaryWriter`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.row.binary_layout import (
    DECIMAL_BYTES,
    HEADER_BITS,
    INLINE_BYTES,
    NANOS_PER_MILLI,
    PRIMITIVE_CODES,
    array_header_bytes,
    element_bytes,
    fixed_bytes,
    is_wide_decimal,
    is_wide_timestamp,
    null_area_bytes,
    round_up_to_word,
)
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    CHARACTER_TYPES,
    TIMESTAMP_TYPES,
    ArrayType,
    BlobType,
    DataType,
    DecimalType,
    IntType,
    MapType,
    MultisetType,
    RowType,
    VariantType,
    VectorType,
)
from paimon.domain.types.type_text import format_type


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
