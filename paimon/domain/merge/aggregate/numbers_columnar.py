"""sum, product and count on columns.

Floats are computed step by step, so that they are rounded as in Java. Integers wrap, whatever the order of the steps.
A decimal that may leave its range becomes null in between, which depends on the order: the reference merges its group.

Invariant: equals `paimon.domain.merge.aggregate.numbers_reference`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.aggregate.steps_columnar import (
    Numbers,
    Steps,
    drop_null_steps,
    fill_neutral,
    mask_valid_steps,
    reduce_groups,
    scatter_to_groups,
    set_missing_null,
)
from paimon.domain.merge.ordering.merge_order import Mask, Rows

_LONG_DIGITS = 18
_ROUGH = 0.99
"""Sums of absolute values are rough: this part of a limit is below it for certain."""


def total(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Compute sum: retracted values are subtracted; null for groups without a value."""
    kind, valid = column.type, mask_valid_steps(column, steps)
    if pa.types.is_decimal(kind) and kind.precision > _LONG_DIGITS:
        return _sum_wide_decimals(column, steps if valid is None else steps.of(valid))
    if pa.types.is_floating(kind):
        values = fill_neutral(_negate_retracts(steps.gather(_read_numbers(column)), steps), valid, -0.0)
        sums = pa.array(reduce_groups(np.add, -0.0, values, steps))
    else:
        values = fill_neutral(steps.gather(_read_numbers(column).astype(np.int64, copy=False)), valid, 0)
        sums = _to_column(reduce_groups(np.add, 0, _negate_retracts(values, steps), steps), kind)
    return set_missing_null(sums, steps.any_of(valid))


def mask_overflowing_sums(column: pa.Array, aggregate: Aggregate, steps: Steps) -> Mask | None:
    """Mark the groups whose sum may leave the range of its decimal; None where none does."""
    kind = column.type
    if not pa.types.is_decimal(kind):
        return None
    if kind.precision > _LONG_DIGITS:
        sizes, limit = np.abs(np.asarray(column.cast(pa.float64()).fill_null(0))), 10.0 ** (kind.precision - kind.scale)
    else:
        sizes, limit = np.abs(_read_numbers(column).astype(np.float64)), 2.0**63
    rough = reduce_groups(np.add, 0, steps.gather(sizes), steps)
    # A value that is already beyond its digits can be subtracted, but its negative is null.
    is_beyond = steps.gather(sizes >= _ROUGH * 10.0**kind.precision) & steps.retracts
    mask: Mask = (rough >= _ROUGH * limit) | steps.any_of(is_beyond)
    return mask


def product(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Compute the product of floats or integers, without retracts; null for groups without a value."""
    kind, valid = column.type, mask_valid_steps(column, steps)
    values = fill_neutral(steps.gather(_read_numbers(column)), valid, 1)
    if pa.types.is_floating(kind):
        return set_missing_null(pa.array(reduce_groups(np.multiply, 1, values, steps)), steps.any_of(valid))
    found = reduce_groups(np.multiply, 1, values.astype(np.int64), steps)
    return set_missing_null(_to_column(found, kind), steps.any_of(valid))


def count(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Compute count: the number of values. A value that was set is the start of further counting."""
    steps = drop_null_steps(column, steps)
    sizes = np.bincount(steps.groups, minlength=steps.group_count)
    found = sizes > 0
    given = steps.sets
    before = steps.gather(_read_numbers(column))[given].astype(np.int64)
    sizes[steps.groups[given]] += before - 1
    return set_missing_null(_to_column(sizes, column.type), found)


def _read_numbers(column: pa.Array) -> Numbers:
    """Return the numbers of a column, 0 where it is null; unscaled values of decimals of up to 18 digits."""
    if not pa.types.is_decimal(column.type):
        return np.asarray(column.fill_null(0))
    pairs = np.frombuffer(column.buffers()[1], dtype="<i8", count=2 * len(column), offset=16 * column.offset)
    return pairs[0::2]


def _negate_retracts(values: Numbers, steps: Steps) -> Numbers:
    if steps.plain:
        return values
    retracts = steps.retracts
    return np.where(retracts, -values, values) if retracts.any() else values


def _to_column(values: Rows, kind: pa.DataType) -> pa.Array:
    """Return 64-bit numbers as a column of the type; integers keep the bits that it has."""
    if not pa.types.is_decimal(kind):
        return pa.array(values.astype(kind.to_pandas_dtype()))
    pairs = np.column_stack([values, values >> 63])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(pairs))])


def _sum_wide_decimals(column: pa.Array, steps: Steps) -> pa.Array:
    """Sum 128-bit decimals that stay in the range of their type."""
    kind, steps = column.type, steps.to_contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, kind)
    values, starts = steps.take_column(column), steps.starts
    if steps.retracts.any():
        values = pc.if_else(pa.array(steps.retracts), pc.negate(values), values)
    summed = pa.table({"group": steps.groups, "value": values}).group_by("group", use_threads=False)
    sums = summed.aggregate([("value", "sum")])["value_sum"].combine_chunks()
    return scatter_to_groups(sums.cast(kind), steps.groups[starts], steps.group_count)
