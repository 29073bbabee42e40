"""Replace or remove some rows of a batch.

Invariant: all other rows, and the order of rows, stay the same. A column without a new value is not copied.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.buffers import combine_column
from paimon.domain.types.arrow_arrays import from_numpy


def replace_rows(batch: pa.RecordBatch, rows: npt.NDArray[np.int64], new: pa.Table) -> pa.RecordBatch:
    """Replace rows of a batch by `new`; `rows` are their numbers, ascending and all different."""
    if not len(rows):
        return batch
    mask = np.zeros(batch.num_rows, np.bool_)
    mask[rows] = True
    columns = [
        _replace_values(column, rows, from_numpy(mask), combine_column(values))
        for column, values in zip(batch.columns, new.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def filter_rows(batch: pa.RecordBatch, remaining: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """Return the rows of a batch for which a mask is true; without a copy if these are all rows."""
    return batch if remaining.all() else batch.filter(from_numpy(remaining))


def _replace_values(column: pa.Array, rows: npt.NDArray[np.int64], mask: pa.Array, values: pa.Array) -> pa.Array:
    # Arrow takes 0.0 and -0.0 as equal, and nested values can contain them.
    is_exact = not (pa.types.is_floating(column.type) or pa.types.is_nested(column.type))
    if is_exact and column.take(pa.array(rows)).equals(values):
        return column
    if pa.types.is_primitive(column.type):
        return pc.replace_with_mask(column, mask, values)
    # For texts and nested values, `replace_with_mask` is slower, or does not exist.
    chosen = np.arange(len(column))
    chosen[rows] = np.arange(len(column), len(column) + len(rows))
    return pa.concat_arrays([column, values]).take(pa.array(chosen))
