"""Maps that Arrow has inferred as lists of pairs or as structs, as in tables made of Python values.

Source: `TableUpdateByRowId._coerce_column` of pypaimon.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField


def to_map_columns(rows: pa.Table, fields: Sequence[DataField]) -> pa.Table:
    """Return rows whose columns of type MAP are maps."""
    kinds = {field.name: arrow_type(field.type) for field in fields}
    for place, name in enumerate(rows.column_names):
        kind = kinds.get(name)
        if kind is not None and pa.types.is_map(kind):
            column = rows.column(place).combine_chunks()
            if pa.types.is_list(column.type) and pa.types.is_list(column.type.value_type):
                rows = rows.set_column(place, name, _pairs_to_map(column, kind, name))
            elif pa.types.is_struct(column.type):
                rows = rows.set_column(place, name, _structs_to_map(column, kind))
    return rows


def _pairs_to_map(column: pa.ListArray, kind: pa.MapType, name: str) -> pa.MapArray:
    pairs = column.flatten()
    if pairs.null_count or (not pc.all(pc.equal(pc.list_value_length(pairs), 2)).as_py() and len(pairs)):
        raise ValueError(f"Column {name} has lists that are no pairs of a key and a value.")
    values = pairs.flatten()
    keys = values.take(pa.array(np.arange(0, len(values), 2)))
    items = values.take(pa.array(np.arange(1, len(values), 2)))
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return _build_map(lengths, keys, items, kind, column.is_null())


def _structs_to_map(column: pa.StructArray, kind: pa.MapType) -> pa.MapArray:
    present = column.drop_null()
    children = [present.field(i) for i in range(present.type.num_fields)]
    if any(child.null_count for child in children):
        raise ValueError(
            "Cannot coerce schema-less dict input with null values to map type, because a missing key looks the same. "
            "Pass an array of map type, or lists of pairs."
        )
    count, rows = len(children), len(present)
    keys = pa.array([field.name for field in present.type] * rows)
    order = np.arange(rows * count).reshape(count, rows).T.ravel()
    cast = [child.cast(kind.item_type) for child in children]
    items = pa.concat_arrays(cast).take(pa.array(order)) if cast else pa.array([], kind.item_type)
    lengths = np.where(column.is_null().to_numpy(zero_copy_only=False), 0, count)
    return _build_map(lengths, keys, items, kind, column.is_null())


def _build_map(
    lengths: np.ndarray, keys: pa.Array, items: pa.Array, kind: pa.MapType, nulls: pa.BooleanArray
) -> pa.MapArray:
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    built = pa.MapArray.from_arrays(offsets, keys.cast(kind.key_type), items.cast(kind.item_type)).cast(kind)
    return pc.if_else(nulls, pa.scalar(None, kind), built) if pc.any(nulls).as_py() else built
