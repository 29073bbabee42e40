"""Keys as Python values that sort as the format sorts them.

Law: `comparable(a) < comparable(b)` iff key a comes before key b: field by field, null first, text and bytes by
unsigned bytes, floats as Java's `Double.compare` (-0.0 before 0.0, NaN last, all NaN equal). Source:
`KeyComparatorSupplier`, `RecordComparator`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from paimon.domain.row import binary_row
from paimon.domain.types.data_types import DataType

Comparable = tuple[tuple[Any, ...], ...]
"""One part a key field: `()` for null, `(value,)` otherwise."""


def comparable(key: bytes, types: Sequence[DataType]) -> Comparable:
    """The sortable form of a serialised key row (4-byte arity in front) with fields of `types`."""
    return comparable_values(binary_row.deserialize(key, types))


def comparable_values(values: Sequence[Any]) -> Comparable:
    """The sortable form of a key given as internal values."""
    return tuple(_part(value) for value in values)


def _part(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, float):
        return (_float_rank(value),)
    return (value,)


def _float_rank(value: float) -> int:
    if value != value:
        return 1 << 63
    bits: int = struct.unpack(">q", struct.pack(">d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF) - 1
