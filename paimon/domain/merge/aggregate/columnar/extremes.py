"""max, min, bool_and and bool_or on columns.

Law: nulls are skipped; values order as in keys, so NaN is the largest and -0.0 is below 0.0.
Twin: `paimon.domain.merge.aggregate.reference.numbers`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.merge.aggregate.columnar.steps import Steps, spread, valid_steps
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.columnar.order import sorted_rows
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
    if pa.types.is_integer(column.type):
        return _extreme_integer(column, steps, np.minimum if descending else np.maximum)
    ordered = column.take(pa.array(steps.rows))
    numbers = Part(steps.groups.astype(np.uint64), steps.group_count.bit_length())
    order = sorted_rows(packed([numbers, *parts_of(ordered, descending)]), len(ordered))
    ends = np.append(steps.starts, len(ordered))[1:] - 1  # groups stay where they were: only their rows moved
    return column.take(steps.picked(order[ends], steps.groups[steps.starts]))


def _extreme_integer(column: pa.Array, steps: Steps, kernel: np.ufunc) -> pa.Array:
    values = np.asarray(column.fill_null(0))[steps.rows]
    starts = steps.starts
    return spread(pa.array(kernel.reduceat(values, starts), column.type), steps.groups[starts], steps.group_count)


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
