"""Iteration over types and the fields inside them.

Invariant: every type or field is visited once, depth-first, in the order in which it is declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType


def list_inner_types(data_type: DataType) -> tuple[DataType, ...]:
    """Return the types directly inside a type; an atomic type has none."""
    match data_type:
        case dt.ArrayType() | dt.MultisetType() | dt.VectorType():
            return (data_type.element,)
        case dt.MapType():
            return (data_type.key, data_type.value)
        case dt.RowType():
            return tuple(f.type for f in data_type.fields)
    return ()


def all_types(data_type: DataType) -> Iterator[DataType]:
    """Yield a type and everything nested in it."""
    yield data_type
    for part in list_inner_types(data_type):
        yield from all_types(part)


def all_fields(fields: Iterable[DataField]) -> Iterator[DataField]:
    """Yield the fields, and all fields of rows nested in them."""
    for column in fields:
        yield column
        yield from _fields_within(column.type)


def _fields_within(data_type: DataType) -> Iterator[DataField]:
    if isinstance(data_type, dt.RowType):
        yield from all_fields(data_type.fields)
    else:
        for part in list_inner_types(data_type):
            yield from _fields_within(part)
