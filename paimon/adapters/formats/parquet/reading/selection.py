"""Which leaf columns of a Parquet file hold the columns, and the parts of nested columns, that are wanted.

Law: a leaf is read iff a wanted field covers it; a wanted field that the file lacks selects nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType


def leaf_count(kind: pa.DataType) -> int:
    """Leaf columns of a type as read from a file."""
    return sum(leaf_count(kind.field(i).type) for i in range(kind.num_fields)) if kind.num_fields else 1


def first_leaves(schema: pa.Schema) -> dict[str, int]:
    """Where each top-level column's leaves begin."""
    starts, leaf = {}, 0
    for column in schema:
        starts[column.name] = leaf
        leaf += leaf_count(column.type)
    return starts


def wanted_leaves(schema: pa.Schema, fields: Sequence[DataField]) -> list[int]:
    """The positions of all leaves to decode."""
    starts = first_leaves(schema)
    leaves: list[int] = []
    for wanted in fields:
        if wanted.name in starts:
            leaves += _covered(schema.field(wanted.name).type, wanted.type, starts[wanted.name])
    return leaves


def _covered(kind: pa.DataType, wanted: DataType, start: int) -> list[int]:
    """Leaves under `start` that the wanted part needs; a struct of which nothing is left keeps one, for its nulls."""
    parts = _parts(kind, wanted)
    if parts is None:
        return list(range(start, start + leaf_count(kind)))
    leaves: list[int] = []
    at = start
    for child, part in parts:
        if part is not None:
            leaves += _covered(child, part, at)
        at += leaf_count(child)
    return leaves or [start]


def _parts(kind: pa.DataType, wanted: DataType) -> list[tuple[pa.DataType, DataType | None]] | None:
    """Children of a stored type with what is wanted of each; None where all of it is."""
    if not any(is_so(kind) for is_so in _shapes(wanted)):
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
    """Tests of which a stored type must pass one."""
    match wanted:
        case dt.RowType() | dt.VariantType():
            return (pa.types.is_struct,)
        case dt.ArrayType() | dt.VectorType():
            return (pa.types.is_list,)
        case dt.MapType() | dt.MultisetType():
            return (pa.types.is_map,)
    return (lambda kind: not pa.types.is_nested(kind),)
