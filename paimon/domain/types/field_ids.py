"""Fields inside of types, and their ids: those of new columns, and derived ids of elements, keys and values in files.

Invariant: every type or field is visited once, depth-first, in the order in which it is declared. Ids are assigned
depth-first: a column before its nested fields, but a field of a ROW after the fields in it. An id is never used twice
in a table.
Source: `ReassignFieldId`, `SpecialFields.getArrayElementFieldId` and its siblings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

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


STRUCTURED_BASE = 536_870_911
"""The base of derived ids, far above those of real fields."""
MAX_NESTING = 1024
"""The number of derived ids of one field, one for each level of nesting."""


def assign_ids(fields: Iterable[DataField], start: int = 0) -> tuple[tuple[DataField, ...], int]:
    """Assign new ids from `start` on, depth-first as Java does; return the fields and the highest assigned id.

    A column has its id before the fields in it. A field of a ROW has its id after the fields in it. Without fields, the
    highest id is `start` - 1.
    """
    numbered, following = _assign(tuple(fields), start)
    return numbered, following - 1


def _assign(fields: tuple[DataField, ...], next_id: int) -> tuple[tuple[DataField, ...], int]:
    numbered = []
    for column in fields:
        renumbered, following = _renumber(column.type, next_id + 1)
        numbered.append(evolve(column, id=next_id, type=renumbered))
        next_id = following
    return tuple(numbered), next_id


def _renumber(data_type: DataType, next_id: int) -> tuple[DataType, int]:
    match data_type:
        case dt.RowType(fields=fields):
            numbered = []
            for nested in fields:
                renumbered, next_id = _renumber(nested.type, next_id)
                numbered.append(evolve(nested, id=next_id, type=renumbered))
                next_id += 1
            return evolve(data_type, fields=tuple(numbered)), next_id
        case dt.ArrayType() | dt.MultisetType() | dt.VectorType():
            element, following = _renumber(data_type.element, next_id)
            return evolve(data_type, element=element), following
        case dt.MapType():
            key, following = _renumber(data_type.key, next_id)
            value, following = _renumber(data_type.value, following)
            return evolve(data_type, key=key, value=value), following
    return data_type, next_id


def element_id(field_id: int, depth: int) -> int:
    """Return the id in a file of the element of an array or multiset; `depth` is 1 on the first level of nesting."""
    return STRUCTURED_BASE + MAX_NESTING * field_id + depth


def key_id(field_id: int, depth: int) -> int:
    """Return the id in a file of the key of a map; `depth` is 1 on the first level of nesting."""
    return STRUCTURED_BASE - MAX_NESTING * field_id - depth


def value_id(field_id: int, depth: int) -> int:
    """Return the id in a file of the value of a map, which has the same formula as elements."""
    return element_id(field_id, depth)
