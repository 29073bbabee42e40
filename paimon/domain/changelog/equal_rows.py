"""Compare the rows of two tables, column by column.

Invariant: null equals null, NaN equals NaN, -0.0 does not equal 0.0. Lists and maps are equal if they
have equal items in the same order. The reference is `paimon.domain.changelog.difference_reference.is_equal_value`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.java_float_order import to_ordinal_array
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy

Mask = npt.NDArray[np.bool_]


def mask_equal_rows(one: pa.Table, other: pa.Table) -> Mask:
    """Mark the rows that are equal in every column; both tables have the same columns and the same number of rows."""
    mask = np.ones(one.num_rows, dtype=np.bool_)
    for name in one.column_names:
        mask &= mask_equal_values(_whole(one[name]), _whole(other[name]))
    return mask


def mask_equal_values(one: pa.Array, other: pa.Array) -> Mask:
    """Mark the positions at which two arrays of one type hold equal values."""
    valid, also = to_numpy(one.is_valid()), to_numpy(other.is_valid())
    rows = np.flatnonzero(valid & also)
    mask: Mask = ~(valid | also)
    mask[rows] = _same_valid(one.take(from_numpy(rows)), other.take(from_numpy(rows)))
    return mask


def _same_valid(one: pa.Array, other: pa.Array) -> Mask:
    kind = one.type
    if pa.types.is_struct(kind):
        mask = np.ones(len(one), dtype=np.bool_)
        for left, right in zip(one.flatten(), other.flatten(), strict=True):
            mask &= mask_equal_values(left, right)
        return mask
    if pa.types.is_map(kind):
        return _same_items(one, other, [(one.keys, other.keys), (one.items, other.items)])
    if pa.types.is_list(kind):
        return _same_items(one, other, [(one.flatten(), other.flatten())])
    if pa.types.is_fixed_size_list(kind):
        width = kind.list_size
        whole: Mask = (
            mask_equal_values(one.flatten(), other.flatten()).reshape(len(one), width).min(axis=1, initial=True)
        )
        return whole
    if pa.types.is_floating(kind):
        one, other = to_ordinal_array(one), to_ordinal_array(other)
    return to_numpy(pc.equal(one, other))


def _same_items(one: pa.Array, other: pa.Array, items: list[tuple[pa.Array, pa.Array]]) -> Mask:
    """Mark the rows with the same number of items, all of which are equal; `items` are the flattened children."""
    starts, others = to_numpy(one.offsets), to_numpy(other.offsets)
    lengths = np.diff(starts)
    mask: Mask = lengths == np.diff(others)
    rows = np.flatnonzero(mask)
    counts = lengths[rows]
    owner = np.repeat(np.arange(len(rows)), counts)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    left = from_numpy(starts[rows][owner] - starts[0] + place)
    right = from_numpy(others[rows][owner] - others[0] + place)
    unequal = np.zeros(len(rows), dtype=np.bool_)
    for a, b in items:
        unequal[owner[~mask_equal_values(a.take(left), b.take(right))]] = True
    mask[rows] = ~unequal
    return mask


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
