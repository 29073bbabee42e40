"""Rows of a block found by their keys without reading the others: beside them stand the hashes of their keys, sorted.

Law: `found` answers exactly the pairs of rows that have equal keys: null equals null, all NaN are one, the zeros are
two. A block holds a key once. Its places are one number a row: the hash of a key above, the row that has it below.
Source: `LookupStoreFactory` (what it asks of a lookup file).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.row.columnar import hash_rows
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import KEY_PREFIX

Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

PLACES = f"{KEY_PREFIX}#places"
"""No column of a table has such a name."""
PLACES_FIELD = pa.field(PLACES, pa.uint64())
_ROW_BITS = np.uint64(32)


def with_places(block: pa.RecordBatch, keys: Sequence[DataField]) -> pa.RecordBatch:
    """The block, of fewer than 2 to the 32 rows, with its places."""
    places = _hashes(block, keys) << _ROW_BITS | np.arange(block.num_rows, dtype=np.uint64)
    places.sort()
    return block.append_column(PLACES_FIELD, pa.array(places))


def found(asked: pa.RecordBatch, block: pa.RecordBatch, keys: Sequence[DataField]) -> tuple[Rows, Rows]:
    """Rows of `asked` and of `block`, which has places, that have equal keys; ascending by the first."""
    places = np.asarray(block.column(PLACES))
    wanted = _hashes(asked, keys)
    firsts = np.searchsorted(places, wanted << _ROW_BITS)
    counts = np.searchsorted(places, (wanted << _ROW_BITS) | np.uint64((1 << 32) - 1), side="right") - firsts
    mine = np.repeat(np.arange(len(wanted)), counts)
    within = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = (places[firsts[mine] + within] & np.uint64((1 << 32) - 1)).astype(np.int64)
    same = _same(asked.select(_names(keys)).take(pa.array(mine)), block.select(_names(keys)).take(pa.array(theirs)))
    return mine[same], theirs[same]


def _hashes(rows: pa.RecordBatch, keys: Sequence[DataField]) -> Words:
    columns = [_one_nan(rows.column(f.name)) for f in keys]
    return hash_rows(columns, [f.type for f in keys]).view(np.uint32).astype(np.uint64)


def _one_nan(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)


def _same(one: pa.RecordBatch, other: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    same = np.ones(one.num_rows, dtype=np.bool_)
    for left, right in zip(one.columns, other.columns, strict=True):
        equal = pc.fill_null(pc.equal(_bits(left), _bits(right)), False)
        if left.null_count:
            equal = pc.or_(equal, pc.and_(left.is_null(), right.is_null()))
        same &= np.asarray(equal)
    return same


def _bits(column: pa.Array) -> pa.Array:
    """Floating numbers as their bits: so they are equal where keys are."""
    if not pa.types.is_floating(column.type):
        return column
    return _one_nan(column).view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _names(keys: Sequence[DataField]) -> list[str]:
    return [f.name for f in keys]
