"""Internal values read from binary rows, arrays and maps.

Invariant: offsets count from the start of the row or array that contains them. A part that leaves its container means
damaged data; it never becomes a shorter value.
Source: `BinaryRow`, `BinaryArray`, `BinaryMap`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from paimon.domain.errors import Unsupported
from paimon.domain.row.binary_layout import (
    HEADER_BITS,
    NANOS_PER_MILLI,
    PRIMITIVE_CODES,
    array_header_bytes,
    element_bytes,
    is_wide_decimal,
    is_wide_timestamp,
    null_area_bytes,
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
