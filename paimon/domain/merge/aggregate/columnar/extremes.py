"""max, min, bool_and and bool_or on columns.

Law: nulls are skipped; values order as in keys, so NaN is the largest and -0.0 is below 0.0.
Twin: `paimon.domain.merge.aggregate.reference.numbers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.columns.stored import stored
from paimon.domain.merge.aggregate.columnar.steps import Steps, present, valid_steps
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.columnar.ordering.largest import largest_place
from paimon.domain.merge.columnar.ordering.order import Mask, Rows
from paimon.domain.merge.columnar.ordering.words import packed, parts_of

Numbers = npt.NDArray[Any]


def maximum(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """max."""
    return _extreme(column, steps, descending=False)


def minimum(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """min."""
    return _extreme(column, steps, descending=True)


def _extreme(column: pa.Array, steps: Steps, descending: bool) -> pa.Array:
    valid = valid_steps(column, steps)
    if pa.types.is_integer(column.type) or pa.types.is_temporal(column.type):
        return _extreme_number(column, stored(column), valid, steps, descending)
    if pa.types.is_floating(column.type):
        return _extreme_number(column, _turned(_float_bits(column)), valid, steps, descending)
    words = [steps.placed(word) for word in packed(parts_of(column, descending))]
    return column.take(steps.picked(largest_place(words, steps.groups, steps.group_count, valid)))


def _extreme_number(
    column: pa.Array, numbers: Numbers, valid: Mask | None, steps: Steps, descending: bool
) -> pa.Array:
    bounds = np.iinfo(numbers.dtype)
    kernel, nothing = (np.minimum, bounds.max) if descending else (np.maximum, bounds.min)
    placed = steps.placed(numbers)
    if valid is not None:
        placed = np.where(valid, placed, numbers.dtype.type(nothing))
    found = np.full(steps.group_count, nothing, dtype=numbers.dtype)
    kernel.at(found, steps.groups, placed)
    if pa.types.is_floating(column.type):
        values = pa.array(_turned(found).view(np.float64).astype(column.type.to_pandas_dtype()))
    else:
        values = pa.array(found).view(column.type)
    return present(values, steps.any_of(valid))


def _float_bits(column: pa.Array) -> Rows:
    values = np.array(column.fill_null(0), dtype=np.float64)
    values[np.isnan(values)] = np.nan
    return values.view(np.int64)


def _turned(bits: Rows) -> Rows:
    """The bits of floats as integers in the order of the floats; and the other way round."""
    turned: Rows = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return turned


def bool_and(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """bool_and: nothing but true."""
    return _of_booleans(column, steps, np.minimum, 1)


def bool_or(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """bool_or: anything true."""
    return _of_booleans(column, steps, np.maximum, 0)


def _of_booleans(column: pa.Array, steps: Steps, kernel: np.ufunc, neutral: int) -> pa.Array:
    values = steps.placed(np.asarray(column.fill_null(bool(neutral)))).view(np.uint8)
    found = np.full(steps.group_count, neutral, dtype=np.uint8)
    kernel.at(found, steps.groups, values)
    return present(found.view(np.bool_), steps.any_of(valid_steps(column, steps)))
