"""Rebuild nested Arrow arrays with other leaves: from the stored form of a format to the canonical form, and back.

Invariant: lengths and validity are kept. ROW fields come in the order of the type. A leaf function also gets what is
under a null, which can be anything.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.types.data_types import ArrayType, DataType, IntType, MapType, MultisetType, RowType, VectorType

Leaf = Callable[[pa.Array, DataType], pa.Array]
_COUNT = IntType(nullable=False)


def rebuild_leaves(array: pa.Array, data_type: DataType, leaf: Leaf, masks_fields: bool = False) -> pa.Array:
    """Return an array of the same length with `leaf` applied to each array of leaves.

    Lists of (key, value) structs become maps. ROW fields are matched by name; missing ones become nulls of their leaf's
    type. With `masks_fields`, fields of a null row are null for `leaf`; otherwise they have any value.
    """
    match data_type:
        case RowType(fields=fields):
            return _struct(array, data_type, leaf, masks_fields) if fields else array
        case ArrayType(element=element):
            array = drop_offset(array)
            values = rebuild_leaves(array.values, element, leaf, masks_fields)
            field = pa.field("element", values.type, element.nullable)
            return pa.ListArray.from_arrays(array.offsets, values, pa.list_(field), mask=_nulls(array))
        case VectorType(element=element, length=length):
            return _vector(array, element, length, leaf, masks_fields)
        case MapType(key=key, value=value):
            return _map(array, key, value, leaf, masks_fields)
        case MultisetType(element=element):
            return _map(array, element, _COUNT, leaf, masks_fields)
    return leaf(array, data_type)


def drop_offset(array: pa.Array) -> pa.Array:
    """Return an array of the same cells at offset 0, because masks cannot be given for slices."""
    return array if array.offset == 0 else pc.take(array, np.arange(len(array)))


def map_entries(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return keys and values of all entries of a map, or of a list of (key, value) structs."""
    if pa.types.is_map(array.type):
        return array.keys, array.items
    keys, values = array.values.flatten()
    return keys, values


def _struct(array: pa.Array, data_type: RowType, leaf: Leaf, masks_fields: bool) -> pa.Array:
    array = drop_offset(array)
    parts = array.flatten() if masks_fields and array.null_count else [array.field(i) for i in range(len(array.type))]
    children = {f.name: part for f, part in zip(array.type, parts, strict=True)}
    parts = [
        rebuild_leaves(children[f.name], f.type, leaf, masks_fields)
        if f.name in children
        else _absent(len(array), f.type, leaf)
        for f in data_type.fields
    ]
    fields = [pa.field(f.name, part.type, f.type.nullable) for f, part in zip(data_type.fields, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=_nulls(array))


def _absent(length: int, data_type: DataType, leaf: Leaf) -> pa.Array:
    from_no_rows = rebuild_leaves(pa.nulls(0, _skeleton(data_type)), data_type, leaf)
    return pa.nulls(length, from_no_rows.type)


def _skeleton(data_type: DataType) -> pa.DataType:
    match data_type:
        case RowType(fields=fields):
            return pa.struct([pa.field(f.name, _skeleton(f.type)) for f in fields])
        case ArrayType(element=element):
            return pa.list_(_skeleton(element))
        case VectorType(element=element, length=length):
            return pa.list_(_skeleton(element), length)
        case MapType(key=key, value=value):
            return pa.map_(_skeleton(key), _skeleton(value))
        case MultisetType(element=element):
            return pa.map_(_skeleton(element), pa.int32())
    return pa.null()


def _vector(array: pa.Array, element: DataType, length: int, leaf: Leaf, masks_fields: bool) -> pa.Array:
    array = drop_offset(array)
    fixed = pa.types.is_fixed_size_list(array.type)
    # The values of a slice end with its last cell only if they are cut.
    held = array.values.slice(0, len(array) * length) if fixed else array.values
    values = rebuild_leaves(held, element, leaf, masks_fields)
    kind = pa.list_(pa.field("element", values.type, element.nullable), length)
    if not fixed:
        lists = pa.ListArray.from_arrays(array.offsets, values, pa.list_(kind.value_field), mask=_nulls(array))
        return lists.cast(kind)
    return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=_nulls(array))


def _map(array: pa.Array, key: DataType, value: DataType, leaf: Leaf, masks_fields: bool) -> pa.Array:
    array = drop_offset(array)
    keys, items = map_entries(array)
    keys = rebuild_leaves(keys, key, leaf, masks_fields)
    items = rebuild_leaves(items, value, leaf, masks_fields)
    kind = pa.map_(keys.type, pa.field("value", items.type, value.nullable))
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=_nulls(array))


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
