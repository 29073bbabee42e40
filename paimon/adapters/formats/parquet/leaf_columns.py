"""Select the leaf columns of a Parquet file that hold the wanted columns and the wanted parts of nested columns.

Invariant: a leaf is read if a wanted field covers it. Of a struct without such a leaf, the first one is read, for the
nulls of the struct. A wanted field that the file lacks selects nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType


def count_leaves(kind: pa.DataType) -> int:
    """Return the number of leaf columns of a type as read from a file."""
    return sum(count_leaves(kind.field(i).type) for i in range(kind.num_fields)) if kind.num_fields else 1


def find_first_leaves(schema: pa.Schema) -> dict[str, int]:
    """Return the position of the first leaf of each top-level column."""
    starts, leaf = {}, 0
    for column in schema:
        starts[column.name] = leaf
        leaf += count_leaves(column.type)
    return starts


def find_wanted_leaves(schema: pa.Schema, fields: Sequence[DataField]) -> list[int]:
    """Return the positions of all leaves to decode."""
    starts = find_first_leaves(schema)
    leaves: list[int] = []
    for wanted in fields:
        if wanted.name in starts:
            leaves += _find_leaves(schema.field(wanted.name).type, wanted.type, starts[wanted.name])
    return leaves


def _find_leaves(kind: pa.DataType, wanted: DataType, start: int) -> list[int]:
    """Return the leaves from `start` on that a wanted part needs; at least one of each struct, for its nulls."""
    parts = _parts(kind, wanted)
    if parts is None:
        return list(range(start, start + count_leaves(kind)))
    leaves: list[int] = []
    at = start
    for child, part in parts:
        if part is not None:
            leaves += _find_leaves(child, part, at)
        at += count_leaves(child)
    return leaves or [start]


def _parts(kind: pa.DataType, wanted: DataType) -> list[tuple[pa.DataType, DataType | None]] | None:
    """Return the children of a stored type with the wanted type of each; None if all of it is wanted."""
    if not any(has_shape(kind) for has_shape in _shapes(wanted)):
        raise ValueError(f"a column of {type(wanted).__name__} is stored as {kind}")
    match wanted:
        case dt.RowType(fields=fields):
            by_name = {f.name: f.type for f in fields}
            return [(child.type, by_name.get(child.name)) for child in kind]
        case dt.ArrayType(element=element) | dt.VectorType(element=element):
            return [(kind.value_type, element)]
        case dt.MapType(key=key, value=value):
            return [(kind.key_type, key), (kind.item_type, value)]
        case dt.MultisetType(element=element):
            return [(kind.key_type, element), (kind.item_type, dt.IntType())]
    return None


def _shapes(wanted: DataType) -> tuple[Callable[[pa.DataType], bool], ...]:
    """Return the conditions of which a stored type must meet one."""
    match wanted:
        case dt.RowType() | dt.VariantType():
            return (pa.types.is_struct,)
        case dt.ArrayType() | dt.VectorType():
            return (pa.types.is_list,)
        case dt.MapType() | dt.MultisetType():
            return (pa.types.is_map,)
    return (lambda kind: not pa.types.is_nested(kind),)
