"""The bucket of a row, by the three bucket functions.

Invariant: a row's bucket depends only on its bucket key and the number of buckets, for ever: rows with the same key are
in the same bucket.
Source: `DefaultBucketFunction`, `ModBucketFunction`, `HiveBucketFunction`, `HiveHasher`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.row.binary_row import encode
from paimon.domain.row.row_hash import hash_bytes
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType
from paimon.domain.types.type_text import format_type

FUNCTIONS = ("default", "mod", "hive")


def compute_bucket(
    values: Sequence[Any], types: Sequence[DataType], total_buckets: int, function: str = "default"
) -> int:
    """Return the bucket of a row with this bucket key.

    `total_buckets` is that of the row's partition. `function` is `bucket-function.type`: ``default``, ``mod`` or
    ``hive``.

    >>> compute_bucket((7,), (dt.IntType(),), 4, "mod")
    3
    """
    check_function(types, function)
    match function:
        case "mod":
            return int(values[0] or 0) % total_buckets
        case "hive":
            return (hive_hash(values, types) & 0x7FFFFFFF) % total_buckets
        case _:
            # Java takes the remainder first, with the sign of the hash, and then its absolute value.
            return abs(hash_bytes(encode(values, types))) % total_buckets


def check_function(types: Sequence[DataType], function: str) -> None:
    """Check that a bucket function exists and accepts a bucket key of these types."""
    if function not in FUNCTIONS:
        raise InvalidRequest(f"Bucket function {function!r} does not exist", hint=f"use one of {', '.join(FUNCTIONS)}")
    if function == "mod" and not (len(types) == 1 and isinstance(types[0], dt.IntType | dt.BigIntType)):
        raise InvalidRequest(
            "The mod bucket function takes one INT or BIGINT column", hint="set 'bucket-function.type' to 'default'"
        )


def hive_hash(values: Sequence[Any], types: Sequence[DataType]) -> int:
    """Return Hive's hash of a row, as a signed 32-bit number."""
    result = 0
    for value, data_type in zip(values, types, strict=True):
        result = _int32(31 * result + _hive_field(value, data_type))
    return result


def _hive_field(value: Any, data_type: DataType) -> int:
    match data_type:
        case _ if value is None:
            return 0
        case dt.BigIntType():
            return _fold_bits(value & 0xFFFF_FFFF_FFFF_FFFF)
        case dt.FloatType():
            return int(struct.unpack("<i", struct.pack("<f", value + 0.0))[0])
        case dt.DoubleType():
            return _fold_bits(struct.unpack("<Q", struct.pack("<d", value + 0.0))[0])
        case dt.CharType() | dt.VarCharType():
            return _hive_bytes(value.encode())
        case dt.BinaryType() | dt.VarBinaryType():
            return _hive_bytes(value)
        case dt.DecimalType():
            return _hive_decimal(value)
        case _:
            check_hive_type(data_type)
            return int(value)


def check_hive_type(data_type: DataType) -> None:
    """Refuse a type without a Hive hash; a null of any type has one."""
    if isinstance(data_type, (*dt.TIMESTAMP_TYPES, *dt.NESTED_TYPES, dt.VariantType, dt.BlobType)):
        raise Unsupported(
            f"the hive bucket function for type {format_type(data_type.with_nullable(True))}",
            hint="choose another 'bucket-key', or set 'bucket-function.type' to 'default'",
        )


def _fold_bits(bits: int) -> int:
    return _int32(bits ^ bits >> 32)


def _hive_bytes(data: bytes) -> int:
    result = 0
    for byte in data:
        result = _int32(31 * result + (byte - 256 if byte > 127 else byte))
    return result


def _hive_decimal(value: Decimal) -> int:
    sign, digits, exponent = value.as_tuple()
    number, scale = int("".join(map(str, digits))), -int(exponent)
    while scale > 0 and number % 10 == 0:
        number, scale = number // 10, scale - 1
    magnitude = 0
    for shift in range((number.bit_length() + 31) // 32 * 32 - 32, -1, -32):
        magnitude = 31 * magnitude + (number >> shift & 0xFFFFFFFF)
    return _int32(31 * _int32(-magnitude if sign else magnitude) + scale)


def _int32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
