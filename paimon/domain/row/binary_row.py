"""Rows as bytes: keys, partitions and statistics in manifests, and the input of the bucket hash.

Invariant: `decode(encode(values)) == values` for internal values, and the bytes equal Java's. The serialized form has
the number of fields in front, as four bytes big-endian, and is decoded by that number.
Source: `BinaryRow`, `BinaryRowSerializer`, `SerializationUtils`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from paimon.domain.errors import CorruptTable
from paimon.domain.row.binary_reader import row_values
from paimon.domain.row.binary_writer import row_bytes
from paimon.domain.types.data_types import DataType


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
