"""Find the rows of a block by their keys, without reading the other rows.

Lookup files and the key store of cross-partition tables consist of blocks. The lookup hashes of a block are one number
for each row, in ascending order: the hash of its key in the high 32 bits, its row number in the low 32 bits.

Invariant: `find_equal_keys` returns exactly the pairs of rows with equal keys. Null equals null, all NaN are equal,
-0.0 does not equal 0.0. A block holds a key once.

Source: `LookupStoreFactory` (what Java expects of a lookup file).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.java_float_order import to_ordinal_array, unify_nans
from paimon.domain.row.row_hash_columnar import hash_rows
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import KEY_PREFIX

Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

LOOKUP_HASHES = f"{KEY_PREFIX}#hashes"
"""The column with the lookup hashes. No column of a table has such a name."""
LOOKUP_HASHES_FIELD = pa.field(LOOKUP_HASHES, pa.uint64())
_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64((1 << 32) - 1)


def add_lookup_hashes(block: pa.RecordBatch, keys: Sequence[DataField]) -> pa.RecordBatch:
    """Return the block, with distinct keys and fewer than 2^32 rows, with its lookup hashes as last column."""
    hashes = _number_rows(block, keys)
    hashes.sort()
    return block.append_column(LOOKUP_HASHES_FIELD, from_numpy(hashes))


def find_equal_keys(asked: pa.RecordBatch, block: pa.RecordBatch, keys: Sequence[DataField]) -> tuple[Rows, Rows]:
    """Return pairs of row numbers of `asked`, ascending, and `block` with equal keys, by lookup hashes."""
    hashes = np.asarray(block.column(LOOKUP_HASHES))
    # Sorted numbers are searched from front to back, which the processor's cache serves; others cost ten times more.
    wanted = _number_rows(asked, keys)
    wanted.sort()
    lows = wanted & ~_ROW_MASK
    firsts = np.searchsorted(hashes, lows)
    counts = np.searchsorted(hashes, lows | _ROW_MASK, side="right") - firsts
    mine = np.repeat((wanted & _ROW_MASK).astype(np.int64), counts)
    within = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = (hashes[np.repeat(firsts, counts) + within] & _ROW_MASK).astype(np.int64)
    same = _same(asked.select(_names(keys)).take(from_numpy(mine)), block.select(_names(keys)).take(from_numpy(theirs)))
    row_of = np.full(asked.num_rows, -1, np.int64)  # a key is in the block once
    row_of[mine[same]] = theirs[same]
    found = np.flatnonzero(row_of >= 0)
    return found, row_of[found]


def _number_rows(rows: pa.RecordBatch, keys: Sequence[DataField]) -> Words:
    """Return the lookup hashes of rows, not sorted."""
    return _hashes(rows, keys) << _ROW_BITS | np.arange(rows.num_rows, dtype=np.uint64)


def _hashes(rows: pa.RecordBatch, keys: Sequence[DataField]) -> Words:
    columns = [unify_nans(rows.column(f.name)) for f in keys]
    return hash_rows(columns, [f.type for f in keys]).view(np.uint32).astype(np.uint64)


def _same(one: pa.RecordBatch, other: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Mark the pairs of rows that are equal in every column."""
    same = np.ones(one.num_rows, dtype=np.bool_)
    for left, right in zip(one.columns, other.columns, strict=True):
        equal = pc.fill_null(pc.equal(_to_exact(left), _to_exact(right)), False)
        if left.null_count:
            equal = pc.or_(equal, pc.and_(left.is_null(), right.is_null()))
        same &= np.asarray(equal)
    return same


def _to_exact(column: pa.Array) -> pa.Array:
    """Return floating numbers as ordinals, which are equal where keys are; other types are returned unchanged."""
    return to_ordinal_array(column) if pa.types.is_floating(column.type) else column


def _names(keys: Sequence[DataField]) -> list[str]:
    return [f.name for f in keys]
