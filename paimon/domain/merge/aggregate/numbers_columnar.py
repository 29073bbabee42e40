"""sum, product and count on columns.

Each group is computed step by step as in Java, so that floats are rounded alike, and an intermediate result that does
not fit its type is refused. Integers are summed at once where no order of steps can leave the type.

Invariant: equals `paimon.domain.merge.aggregate.numbers_reference`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import InvalidRequest
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


def total(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Compute sum: retracted values are subtracted.

    Parameters
    ----------
    column : pa.Array
        A number type.
    aggregate : Aggregate
        The column, for errors.
    steps : Steps
        What each record does.

    Returns
    -------
    pa.Array
        One value a group; null where it has no value.
    """
    kind, valid = column.type, mask_valid_steps(column, steps)
    if pa.types.is_decimal(kind) and kind.precision > 18:
        return _sum_wide_decimals(column, steps if valid is None else steps.of(valid), aggregate)
    if pa.types.is_floating(kind):
        values = fill_neutral(_negate_retracts(steps.gather(_read_numbers(column)), steps), valid, -0.0)
        sums = pa.array(reduce_groups(np.add, -0.0, values, steps))
    else:
        values = fill_neutral(steps.gather(_read_numbers(column).astype(np.int64, copy=False)), valid, 0)
        sums = _to_column(_sum_integers(values, steps, _get_limit(kind), aggregate), kind)
    return set_missing_null(sums, steps.any_of(valid))


def product(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Compute the product of floats and integers, without retracts.

    Parameters
    ----------
    column : pa.Array
        Integers or floats.
    aggregate : Aggregate
        The column, for errors.
    steps : Steps
        What each record does.

    Returns
    -------
    pa.Array
        One value a group; null where it has no value.
    """
    kind, valid = column.type, mask_valid_steps(column, steps)
    values = fill_neutral(steps.gather(_read_numbers(column)), valid, 1)
    if pa.types.is_floating(kind):
        return set_missing_null(pa.array(reduce_groups(np.multiply, 1, values, steps)), steps.any_of(valid))
    values, limit = values.astype(np.int64), _get_limit(kind)
    found = reduce_groups(np.multiply, 1, values, steps)
    rough = reduce_groups(np.multiply, 1, np.maximum(np.abs(values.astype(np.float64)), 1.0), steps)
    for group, numbers in _iterate_groups(~(rough < limit * 0.99), values, steps):
        found[group] = _check_overflow(accumulate(numbers, int.__mul__), limit, aggregate)
    return set_missing_null(pa.array(found).cast(kind), steps.any_of(valid))


def count(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Compute count: the number of values. A value that was set is the start of further counting.

    Parameters
    ----------
    column : pa.Array
        INT or BIGINT.
    aggregate : Aggregate
        The column, for errors.
    steps : Steps
        What each record does.

    Returns
    -------
    pa.Array
        One value a group; null where it has no value.

    Raises
    ------
    InvalidRequest
        A count does not fit 64 bits.
    """
    steps = drop_null_steps(column, steps)
    sizes = np.bincount(steps.groups, minlength=steps.group_count)
    found = sizes > 0
    given = steps.sets
    before = steps.gather(_read_numbers(column))[given].astype(np.int64)
    more = sizes[steps.groups[given]] - 1
    if (before > np.iinfo(np.int64).max - more).any():
        raise make_overflow_error(aggregate)
    sizes[steps.groups[given]] = before + more
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


def _get_limit(kind: pa.DataType) -> int:
    """Return the smallest absolute value that does not fit the type."""
    return int(10**kind.precision) if pa.types.is_decimal(kind) else 1 << (kind.bit_width - 1)


def _to_column(values: Rows, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_decimal(kind):
        return pa.array(values).cast(kind)
    pairs = np.column_stack([values, values >> 63])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(pairs))])


def _sum_integers(values: Rows, steps: Steps, limit: int, aggregate: Aggregate) -> Rows:
    sums = reduce_groups(np.add, 0, _negate_retracts(values, steps), steps)
    longest = int(np.bincount(steps.groups).max())
    largest = max(abs(int(values.max())), abs(int(values.min())))
    if longest * largest < limit:
        return sums
    rough = reduce_groups(np.add, 0, np.abs(values.astype(np.float64)), steps)
    signs = np.where(steps.retracts, -1, 1)  # apart from the values: the smallest integer has no negative
    risky = rough >= limit * 0.99
    both = zip(_iterate_groups(risky, values, steps), _iterate_groups(risky, signs, steps), strict=True)
    for (group, numbers), (_, directions) in both:
        own = (value * sign for value, sign in zip(numbers, directions, strict=True))
        sums[group] = _check_overflow(accumulate(own), limit, aggregate)
    return sums


def _iterate_groups(groups: Mask, values: Numbers, steps: Steps) -> Iterator[tuple[int, list[int]]]:
    """Yield the numbers of some groups, in the order of their steps."""
    if not groups.any():
        return
    mask = groups[steps.groups]
    own, numbers = values[mask], steps.groups[mask]
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    for group, part in zip(found.tolist(), np.split(own[order], starts[1:]), strict=True):
        yield group, [int(v) for v in part.tolist()]


def _check_overflow(results: Iterable[int], limit: int, aggregate: Aggregate) -> int:
    """Return the last result, after checking that all of them fit."""
    result = 0
    for result in results:
        if result >= limit or result < -limit or (result == -limit and limit & (limit - 1)):
            raise make_overflow_error(aggregate)
    return result


def make_overflow_error(aggregate: Aggregate) -> InvalidRequest:
    """Return the error for a result that does not fit its type."""
    name = aggregate.column.name
    return InvalidRequest(
        f"The {aggregate.function} of column {name!r} does not fit its type",
        subject=name,
        hint=f"use a wider type, or another 'fields.{name}.aggregate-function'",
    )


def _sum_wide_decimals(column: pa.Array, steps: Steps, aggregate: Aggregate) -> pa.Array:
    """Sum 128-bit decimals; groups that might leave the type are also added value by value."""
    kind, steps = column.type, steps.to_contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, kind)
    values, starts = steps.take_column(column), steps.starts
    if steps.retracts.any():
        values = pc.if_else(pa.array(steps.retracts), pc.negate(values), values)
    rough = np.add.reduceat(np.abs(np.asarray(values.cast(pa.float64()))), starts)
    summed = pa.table({"group": steps.groups, "value": values}).group_by("group", use_threads=False)
    sums = summed.aggregate([("value", "sum")])["value_sum"].combine_chunks()
    risky: Mask = rough >= 0.99 * 10.0 ** (kind.precision - kind.scale)
    for group in np.flatnonzero(risky).tolist():
        end = starts[group + 1] if group + 1 < len(starts) else len(values)
        numbers = [_to_unscaled(v, kind.scale) for v in values[starts[group] : end].to_pylist()]
        _check_overflow(accumulate(numbers), _get_limit(kind), aggregate)
    return scatter_to_groups(sums.cast(kind), steps.groups[starts], steps.group_count)


def _to_unscaled(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    number: int = int("".join(map(str, digits))) * 10 ** (int(exponent) + scale)
    return -number if sign else number
