"""Nested arrays: their children, and new arrays around changed children.

Invariant: nulls stay in their places. What is stored under a null, or outside of a slice, never reaches the children.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def struct_children(array: pa.StructArray) -> list[pa.Array]:
    """Return the fields of a struct; they are null wherever the struct is."""
    return list(array.flatten())


def rebuild_struct(array: pa.Array, children: Sequence[pa.Array], struct_type: pa.StructType) -> pa.StructArray:
    """Build a struct of changed children, with the nulls of `array`, the struct that they come from."""
    fields = [struct_type.field(i) for i in range(struct_type.num_fields)]
    if not fields:
        return pa.array([None if null else {} for null in array.is_null().to_pylist()], struct_type)
    return pa.StructArray.from_arrays(list(children), fields=fields, mask=_mask(array))


def list_values(array: pa.Array) -> pa.Array:
    """Return the elements of all lists that are not null, one after another."""
    return array.flatten()


def map_entries(array: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the values of all maps that are not null, one after another."""
    valid = array.drop_null() if array.null_count else array
    offsets = np.asarray(valid.offsets)
    start = int(offsets[0]) if len(offsets) else 0
    length = int(offsets[-1]) - start if len(offsets) else 0
    return valid.keys.slice(start, length), valid.items.slice(start, length)


def count_entries(array: pa.Array) -> Integers:
    """Return the number of elements of each list, or of entries of each map; 0 for a null."""
    if pa.types.is_map(array.type):
        counts = np.diff(np.asarray(array.offsets)).astype(np.int64)
        return np.where(np.asarray(array.is_null()), 0, counts)
    return np.asarray(pc.fill_null(pc.list_value_length(array), 0)).astype(np.int64)


def _offsets(array: pa.Array) -> pa.Array:
    return pa.array(np.concatenate(([0], np.cumsum(count_entries(array)))), pa.int32())


def rebuild_list(array: pa.Array, values: pa.Array, list_type: pa.ListType) -> pa.ListArray:
    """Build lists of changed elements, with the lengths and nulls of `array`; `values` as ordered by `list_values`."""
    return pa.ListArray.from_arrays(_offsets(array), values, type=list_type, mask=_mask(array))


def rebuild_map(array: pa.Array, keys: pa.Array, items: pa.Array, map_type: pa.MapType) -> pa.MapArray:
    """Build maps of changed entries, with the lengths and nulls of `array`; entries are ordered as by `map_entries`."""
    return pa.MapArray.from_arrays(_offsets(array), keys, items, type=map_type, mask=_mask(array))


def rebuild_vector(array: pa.Array, values: pa.Array, vector_type: pa.FixedSizeListType) -> pa.FixedSizeListArray:
    """Build vectors of changed elements in the order of `list_values`, with the nulls of `array`."""
    length = vector_type.list_size
    valid = np.asarray(array.is_valid())
    if not valid.all():
        first = np.where(valid, np.cumsum(valid) - 1, 0) * length
        indices: Integers = (first[:, None] + np.arange(length)).ravel()
        values = values.take(pa.array(indices)) if len(values) else pa.nulls(len(indices), values.type)
    return pa.FixedSizeListArray.from_arrays(values, type=vector_type, mask=_mask(array))
