"""max, min, bool_and and bool_or on columns.

Law: nulls are skipped; values order as in keys, so NaN is the largest and -0.0 is below 0.0.
Twin: `paimon.domain.merge.aggregate.reference.numbers`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.merge.aggregate.columnar.steps import Steps, spread, valid_steps
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.columnar.order import Rows, sorted_rows
from paimon.domain.merge.columnar.words import Part, packed, parts_of


def maximum(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """max."""
    return _extreme(column, steps, descending=False)


def minimum(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """min."""
    return _extreme(column, steps, descending=True)


def _extreme(column: pa.Array, steps: Steps, descending: bool) -> pa.Array:
    steps = steps.of(valid_steps(column, steps))
    if len(steps.rows) == 0:
        return pa.nulls(steps.group_count, column.type)
    kernel = np.minimum if descending else np.maximum
    if pa.types.is_floating(column.type):
        return _extreme_float(column, steps, kernel)
    if pa.types.is_integer(column.type) or pa.types.is_temporal(column.type):
        plain = pa.types.is_integer(column.type)
        width = pa.int32() if column.type.bit_width == 32 else pa.int64()
        return _extreme_integer(column if plain else column.view(width), steps, kernel).view(column.type)
    ordered = column.take(pa.array(steps.rows))
    numbers = Part(steps.groups.astype(np.uint64), steps.group_count.bit_length())
    order = sorted_rows(packed([numbers, *parts_of(ordered, descending)]), len(ordered))
    ends = np.append(steps.starts, len(ordered))[1:] - 1  # groups stay where they were: only their rows moved
    return column.take(steps.picked(order[ends], steps.groups[steps.starts]))


def _extreme_integer(column: pa.Array, steps: Steps, kernel: np.ufunc) -> pa.Array:
    values = np.asarray(column.fill_null(0))[steps.rows]
    starts = steps.starts
    return spread(pa.array(kernel.reduceat(values, starts), column.type), steps.groups[starts], steps.group_count)


def _extreme_float(column: pa.Array, steps: Steps, kernel: np.ufunc) -> pa.Array:
    """Floats as the integers that order alike, and back."""
    values = np.asarray(column.fill_null(0)).astype(np.float64)[steps.rows]
    values[np.isnan(values)] = np.nan
    starts = steps.starts
    found = kernel.reduceat(_turned(values.view(np.int64)), starts)
    floats = _turned(found).view(np.float64).astype(column.type.to_pandas_dtype())
    return spread(pa.array(floats, column.type), steps.groups[starts], steps.group_count)


def _turned(bits: Rows) -> Rows:
    """The bits of floats as integers in the order of the floats; and the other way round."""
    turned: Rows = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return turned


def bool_and(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """bool_and."""
    return _of_booleans(column, steps, np.logical_and)


def bool_or(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """bool_or."""
    return _of_booleans(column, steps, np.logical_or)


def _of_booleans(column: pa.Array, steps: Steps, kernel: np.ufunc) -> pa.Array:
    steps = steps.of(valid_steps(column, steps))
    if len(steps.rows) == 0:
        return pa.nulls(steps.group_count, column.type)
    values = np.asarray(column.fill_null(False))[steps.rows]
    starts = steps.starts
    return spread(pa.array(kernel.reduceat(values, starts), column.type), steps.groups[starts], steps.group_count)
