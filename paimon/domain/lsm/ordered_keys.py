"""Find the rows of a block that is in the order of one key column of integers or text, without a hash index.

Data files are in key order, so a block of their rows needs no hashes and no sort.

Invariant: `find_ordered_keys` returns the same pairs as `find_equal_keys` of `lookup_hashes`, its reference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.lsm.lookup_hashes import Rows
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.data_types import DataField


def is_ordered_block(block: pa.RecordBatch, keys: Sequence[DataField]) -> bool:
    """Return whether the key is one column of integers or text without null, and its values ascend strictly."""
    if len(keys) != 1:
        return False
    column = block.column(keys[0].name)
    if column.null_count:
        return False
    if pa.types.is_signed_integer(column.type):
        values = np.asarray(column)
        return bool((values[1:] > values[:-1]).all())
    if not _is_text(column.type):
        return False
    following = column.slice(1)
    return bool(pc.all(pc.less(column.slice(0, len(following)), following), min_count=0).as_py())


def find_ordered_keys(asked: pa.RecordBatch, block: pa.RecordBatch, key: DataField) -> tuple[Rows, Rows]:
    """Return pairs of row numbers of `asked`, ascending, and `block` with equal keys, by its order."""
    wanted, values = asked.column(key.name), block.column(key.name)
    if not len(values):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    row_of = (_find_texts if _is_text(values.type) else _find_integers)(wanted, values)
    if wanted.null_count:
        row_of[np.asarray(wanted.is_null())] = -1
    found = np.flatnonzero(row_of >= 0)
    return found, row_of[found]


def _find_integers(wanted: pa.Array, values: pa.Array) -> Rows:
    """Return the position of each wanted number, -1 for those that are missing, and anything for nulls."""
    known, numbers = np.asarray(values), np.asarray(pc.fill_null(wanted, 0))
    order = np.argsort(numbers, kind="stable")  # callers mostly ask in key order, which this sort detects
    ascending = numbers[order]
    places = np.minimum(np.searchsorted(known, ascending), len(known) - 1)
    row_of = np.full(len(numbers), -1, np.int64)
    row_of[order] = np.where(known[places] == ascending, places, -1)
    return row_of


def _find_texts(wanted: pa.Array, values: pa.Array) -> Rows:
    """Return the position of each wanted text as `_find_integers` does, by binary searches in step with each other."""
    lows, highs = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(values) - 1)
    for _ in range((len(values) - 1).bit_length()):
        middles = (lows + highs) >> 1
        is_below = to_numpy(pc.fill_null(pc.less(values.take(from_numpy(middles)), wanted), False))
        lows = np.where(is_below, np.minimum(middles + 1, highs), lows)
        highs = np.where(is_below, highs, middles)
    same = to_numpy(pc.fill_null(pc.equal(values.take(from_numpy(lows)), wanted), False))
    return np.where(same, lows, -1)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
