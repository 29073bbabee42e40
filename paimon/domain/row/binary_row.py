"""Rows as bytes: keys, partitions and statistics in manifests, and what the bucket hash is taken of.

Law: `decode(encode(values)) == values` for internal values, and the bytes equal Java's. The serialised form has the
number of fields in front, four bytes big-endian, and is decoded by that number.
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
    """The BinaryRow of internal values.

    Parameters
    ----------
    values, types
        Parallel; `None` is null.
    row_kind : int
        0 +I, 1 -U, 2 +U, 3 -D; 0 for keys, partitions and statistics.
    """
    return row_bytes(values, types, row_kind)


def decode(data: bytes, types: Sequence[DataType]) -> tuple[Any, ...]:
    """The values of a BinaryRow; CorruptTable where the bytes are no such row."""
    try:
        return row_values(data, types)
    except (ValueError, struct.error, IndexError, KeyError) as error:
        raise CorruptTable("binary row", f"cannot be read as {len(types)} fields: {error}") from error


def serialize(values: Sequence[Any], types: Sequence[DataType]) -> bytes:
    """The BinaryRow with its number of fields in front, as manifests hold it."""
    return struct.pack(">i", len(types)) + row_bytes(values, types, 0)


def deserialize(data: bytes, types: Sequence[DataType]) -> tuple[Any, ...]:
    """The values of a serialised row: as many as the row says that it has, at most one a type.

    Older schemas had fewer columns, and empty statistics have none: only the leading types are used then.
    """
    count = arity(data)
    if count > len(types):
        raise CorruptTable("binary row", f"holds {count} fields where at most {len(types)} are expected")
    return decode(data[4:], types[:count])


def arity(data: bytes) -> int:
    """The number of fields of a serialised row."""
    count = int.from_bytes(data[:4], "big", signed=True)
    if len(data) < 4 or count < 0:
        raise CorruptTable("binary row", f"{len(data)} bytes do not begin with a number of fields")
    return count
