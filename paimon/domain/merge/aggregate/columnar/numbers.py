"""sum, product and count on columns.

Law: each group is calculated step after step as Java does, so that floats round alike and a value that leaves its type
on the way is refused. Integers are summed at once where no order could leave the type.
Twin: `paimon.domain.merge.aggregate.reference.numbers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.columnar.steps import Steps, spread, valid_steps
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.columnar.order import Mask, Rows

Numbers = npt.NDArray[Any]
_FEW_STEPS = 500
"""Groups of more steps are calculated one by one, the others all together, step after step."""


def total(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """sum: retracted values are subtracted."""
    steps = steps.of(valid_steps(column, steps))
    if len(steps.rows) == 0:
        return pa.nulls(steps.group_count, column.type)
    kind = column.type
    if pa.types.is_decimal(kind) and kind.precision > 18:
        sums = _wide_sums(column, steps, aggregate)
    elif pa.types.is_floating(kind):
        values = _signed(_values(column), steps)
        sums = pa.array(_in_steps(values, steps.starts, np.add), kind)
    else:
        sums = _as_integers(_integer_sums(_values(column).astype(np.int64), steps, _limit(kind), aggregate), kind)
    return spread(sums, steps.groups[steps.starts], steps.group_count)


def product(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """product of floats and integers, without retracts."""
    steps = steps.of(valid_steps(column, steps))
    values, starts, kind = _values(column)[steps.rows], steps.starts, column.type
    if len(values) == 0:
        return pa.nulls(steps.group_count, kind)
    if pa.types.is_floating(kind):
        products = pa.array(_in_steps(values, starts, np.multiply), kind)
    else:
        with np.errstate(over="ignore"):
            rough = np.multiply.reduceat(np.maximum(np.abs(values.astype(np.float64)), 1.0), starts)
        found = _in_steps(values.astype(np.int64), starts, np.multiply)
        limit = _limit(kind)
        for group in np.flatnonzero(~(rough < limit * 0.99)).tolist():
            exact = accumulate(_group(values, starts, group), int.__mul__)
            found[group] = _checked(exact, limit, aggregate)
        products = pa.array(found).cast(kind)
    return spread(products, steps.groups[starts], steps.group_count)


def count(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """count: how many values there are; a value that was set counts on from itself."""
    steps = steps.of(valid_steps(column, steps))
    starts = steps.starts
    if len(starts) == 0:
        return pa.nulls(steps.group_count, column.type)
    sizes = np.diff(np.append(starts, len(steps.rows)))
    given = steps.sets[starts]
    sizes += np.where(given, _values(column)[steps.rows[starts]].astype(np.int64) - 1, 0)
    return spread(_as_integers(sizes, column.type), steps.groups[starts], steps.group_count)


def _values(column: pa.Array) -> Numbers:
    """The numbers of a column, 0 where it is null; of decimals of up to 18 digits the unscaled ones."""
    if not pa.types.is_decimal(column.type):
        return np.asarray(column.fill_null(0))
    pairs = np.frombuffer(column.buffers()[1], dtype="<i8", count=2 * len(column), offset=16 * column.offset)
    return pairs[0::2]


def _signed(values: Numbers, steps: Steps) -> Numbers:
    ordered = values[steps.rows]
    retracts = steps.retracts
    return np.where(retracts, -ordered, ordered) if retracts.any() else ordered


def _limit(kind: pa.DataType) -> int:
    """Absolute values below it fit the type."""
    return int(10**kind.precision) if pa.types.is_decimal(kind) else 1 << (kind.bit_width - 1)


def _as_integers(values: Rows, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_decimal(kind):
        return pa.array(values).cast(kind)
    pairs = np.column_stack([values, values >> 63])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(pairs))])


def _integer_sums(column: Rows, steps: Steps, limit: int, aggregate: Aggregate) -> Rows:
    starts, values = steps.starts, _signed(column, steps)
    sums: Rows = np.add.reduceat(values, starts)
    longest = int(np.diff(np.append(starts, len(values))).max())
    largest = max(abs(int(values.max())), abs(int(values.min())))
    if longest * largest < limit:
        return sums
    rough = np.add.reduceat(np.abs(values.astype(np.float64)), starts)
    signs = np.where(steps.retracts, -1, 1)  # apart from the values: the smallest integer has no negative
    for group in np.flatnonzero(rough >= limit * 0.99).tolist():
        own = zip(_group(column[steps.rows], starts, group), _group(signs, starts, group), strict=True)
        sums[group] = _checked(accumulate(value * sign for value, sign in own), limit, aggregate)
    return sums


def _group(values: Numbers, starts: Rows, group: int) -> list[int]:
    end = starts[group + 1] if group + 1 < len(starts) else len(values)
    return [int(v) for v in values[starts[group] : end].tolist()]


def _checked(results: Iterable[int], limit: int, aggregate: Aggregate) -> int:
    """The last of the results, if all of them fit."""
    result = 0
    for result in results:
        if result >= limit or result < -limit or (result == -limit and limit & (limit - 1)):
            raise overflow(aggregate)
    return result


def overflow(aggregate: Aggregate) -> InvalidRequest:
    """The refusal of a result that leaves its type."""
    name = aggregate.column.name
    return InvalidRequest(
        f"the {aggregate.function} of column {name!r} does not fit its type", subject=name, hint="use a wider type"
    )


def _wide_sums(column: pa.Array, steps: Steps, aggregate: Aggregate) -> pa.Array:
    """Sums of 128-bit decimals; those that might leave the type are added up one by one."""
    kind = column.type
    values = column.take(pa.array(steps.rows))
    if steps.retracts.any():
        values = pc.if_else(pa.array(steps.retracts), pc.negate(values), values)
    starts = steps.starts
    rough = np.add.reduceat(np.abs(np.asarray(values.cast(pa.float64()))), starts)
    summed = pa.table({"group": steps.groups, "value": values}).group_by("group", use_threads=False)
    sums = summed.aggregate([("value", "sum")])["value_sum"].combine_chunks()
    risky: Mask = rough >= 0.99 * 10.0 ** (kind.precision - kind.scale)
    for group in np.flatnonzero(risky).tolist():
        end = starts[group + 1] if group + 1 < len(starts) else len(values)
        numbers = [_unscaled(v, kind.scale) for v in values[starts[group] : end].to_pylist()]
        _checked(accumulate(numbers), _limit(kind), aggregate)
    return sums.cast(kind)


def _unscaled(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    number: int = int("".join(map(str, digits))) * 10 ** (int(exponent) + scale)
    return -number if sign else number


def _in_steps(values: Numbers, starts: Rows, operation: np.ufunc) -> Numbers:
    """Each group from its first to its last value; longer groups first, so that those still going on stay together."""
    sizes = np.diff(np.append(starts, len(values)))
    order = np.argsort(-sizes, kind="stable")
    sizes, starts = sizes[order], starts[order]
    found = values[starts]
    longest = int(sizes[0]) if len(sizes) else 0
    with np.errstate(all="ignore"):
        for step in range(1, min(longest, _FEW_STEPS)):
            going = int(np.searchsorted(-sizes, -step))  # groups of more than `step` values
            found[:going] = operation(found[:going], values[starts[:going] + step])
        for group in range(int(np.searchsorted(-sizes, -_FEW_STEPS))):
            end = starts[group] + sizes[group]
            rest = np.insert(values[starts[group] + _FEW_STEPS : end], 0, found[group])
            found[group] = operation.accumulate(rest)[-1]
    result = np.empty_like(found)
    result[order] = found
    return result
