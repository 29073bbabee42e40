"""Keys as Python values that compare as the format sorts keys.

Invariant: the values of `to_comparable_key` compare as the keys do. Keys compare column by column: null first,
text and bytes by unsigned bytes, floats in the total order of Java (`paimon.domain.columns.java_float_order`).

Source: `KeyComparatorSupplier`, `RecordComparator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.columns.java_float_order import to_float_ordinal
from paimon.domain.row import binary_row
from paimon.domain.types.data_types import DataType

Comparable = tuple[tuple[Any, ...], ...]
"""One part for each key column: `()` for null, `(value,)` otherwise."""


def to_comparable_key(key: bytes, types: Sequence[DataType]) -> Comparable:
    """Return the comparable form of a serialized BinaryRow key, which starts with 4 bytes for its number of columns."""
    return to_comparable_values(binary_row.deserialize(key, types))


def to_comparable_values(values: Sequence[Any]) -> Comparable:
    """Return the comparable form of a key that is given as internal values."""
    return tuple(_part(value) for value in values)


def _part(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, float):
        return (to_float_ordinal(value),)
    return (value,)
