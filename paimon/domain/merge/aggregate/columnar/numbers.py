"""sum, product and count on columns.

Law: each group is calculated step after step as Java does, so that floats round alike and a value that leaves its type
on the way is refused. Integers are summed at once where no order could leave the type.
Twin: `paimon.domain.merge.aggregate.reference.numbers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.columnar.steps import Steps, present, spread, valid_steps, with_values
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.columnar.ordering.order import Mask, Rows

Numbers = npt.NDArray[Any]


def total(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """sum: retracted values are subtracted."""
    kind, valid = column.type, valid_steps(column, steps)
    if pa.types.is_decimal(kind) and kind.precision > 18:
        return _wide_sums(column, steps if valid is None else steps.of(valid), aggregate)
    if pa.types.is_floating(kind):
        values = _or_neutral(_signed(steps.placed(_values(column)), steps), valid, -0.0)
        sums = pa.array(_calculated(np.add, -0.0, values, steps))
    else:
        values = _or_neutral(steps.placed(_values(column).astype(np.int64, copy=False)), valid, 0)
        sums = _as_integers(_integer_sums(values, steps, _limit(kind), aggregate), kind)
    return present(sums, steps.any_of(valid))


def product(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """product of floats and integers, without retracts."""
    kind, valid = column.type, valid_steps(column, steps)
    values = _or_neutral(steps.placed(_values(column)), valid, 1)
    if pa.types.is_floating(kind):
        return present(pa.array(_calculated(np.multiply, 1, values, steps)), steps.any_of(valid))
    values, limit = values.astype(np.int64), _limit(kind)
    found = _calculated(np.multiply, 1, values, steps)
    rough = _calculated(np.multiply, 1, np.maximum(np.abs(values.astype(np.float64)), 1.0), steps)
    for group, numbers in _exactly(~(rough < limit * 0.99), values, steps):
        found[group] = _checked(accumulate(numbers, int.__mul__), limit, aggregate)
    return present(pa.array(found).cast(kind), steps.any_of(valid))


def count(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """count: how many values there are; a value that was set counts on from itself."""
    steps = with_values(column, steps)
    sizes = np.bincount(steps.groups, minlength=steps.group_count)
    found = sizes > 0
    given = steps.sets
    before = steps.placed(_values(column))[given].astype(np.int64)
    more = sizes[steps.groups[given]] - 1
    if (before > np.iinfo(np.int64).max - more).any():
        raise overflow(aggregate)
    sizes[steps.groups[given]] = before + more
    return present(_as_integers(sizes, column.type), found)


def _calculated(operation: np.ufunc, neutral: float, values: Numbers, steps: Steps) -> Numbers:
    """Each group from its first to its last value, beginning with what changes no value."""
    found = np.full(steps.group_count, neutral, dtype=values.dtype)
    with np.errstate(all="ignore"):
        operation.at(found, steps.groups, values)
    return found


def _or_neutral(values: Numbers, valid: Mask | None, neutral: float) -> Numbers:
    return values if valid is None else np.where(valid, values, values.dtype.type(neutral))


def _values(column: pa.Array) -> Numbers:
    """The numbers of a column, 0 where it is null; of decimals of up to 18 digits the unscaled ones."""
    if not pa.types.is_decimal(column.type):
        return np.asarray(column.fill_null(0))
    pairs = np.frombuffer(column.buffers()[1], dtype="<i8", count=2 * len(column), offset=16 * column.offset)
    return pairs[0::2]


def _signed(values: Numbers, steps: Steps) -> Numbers:
    if steps.plain:
        return values
    retracts = steps.retracts
    return np.where(retracts, -values, values) if retracts.any() else values


def _limit(kind: pa.DataType) -> int:
    """Absolute values below it fit the type."""
    return int(10**kind.precision) if pa.types.is_decimal(kind) else 1 << (kind.bit_width - 1)


def _as_integers(values: Rows, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_decimal(kind):
        return pa.array(values).cast(kind)
    pairs = np.column_stack([values, values >> 63])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(pairs))])


def _integer_sums(values: Rows, steps: Steps, limit: int, aggregate: Aggregate) -> Rows:
    sums = _calculated(np.add, 0, _signed(values, steps), steps)
    longest = int(np.bincount(steps.groups).max())
    largest = max(abs(int(values.max())), abs(int(values.min())))
    if longest * largest < limit:
        return sums
    rough = _calculated(np.add, 0, np.abs(values.astype(np.float64)), steps)
    signs = np.where(steps.retracts, -1, 1)  # apart from the values: the smallest integer has no negative
    risky = rough >= limit * 0.99
    both = zip(_exactly(risky, values, steps), _exactly(risky, signs, steps), strict=True)
    for (group, numbers), (_, directions) in both:
        own = (value * sign for value, sign in zip(numbers, directions, strict=True))
        sums[group] = _checked(accumulate(own), limit, aggregate)
    return sums


def _exactly(groups: Mask, values: Numbers, steps: Steps) -> Iterator[tuple[int, list[int]]]:
    """The numbers of some groups, in their order."""
    if not groups.any():
        return
    mask = groups[steps.groups]
    own, numbers = values[mask], steps.groups[mask]
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    for group, part in zip(found.tolist(), np.split(own[order], starts[1:]), strict=True):
        yield group, [int(v) for v in part.tolist()]


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
        f"the {aggregate.function} of column {name!r} does not fit its type", subject=name,
        hint=f"use a wider type, or another 'fields.{name}.aggregate-function'",
    )  # fmt: skip


def _wide_sums(column: pa.Array, steps: Steps, aggregate: Aggregate) -> pa.Array:
    """Sums of 128-bit decimals; those that might leave the type are added up one by one."""
    kind, steps = column.type, steps.contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, kind)
    values, starts = steps.taken(column), steps.starts
    if steps.retracts.any():
        values = pc.if_else(pa.array(steps.retracts), pc.negate(values), values)
    rough = np.add.reduceat(np.abs(np.asarray(values.cast(pa.float64()))), starts)
    summed = pa.table({"group": steps.groups, "value": values}).group_by("group", use_threads=False)
    sums = summed.aggregate([("value", "sum")])["value_sum"].combine_chunks()
    risky: Mask = rough >= 0.99 * 10.0 ** (kind.precision - kind.scale)
    for group in np.flatnonzero(risky).tolist():
        end = starts[group + 1] if group + 1 < len(starts) else len(values)
        numbers = [_unscaled(v, kind.scale) for v in values[starts[group] : end].to_pylist()]
        _checked(accumulate(numbers), _limit(kind), aggregate)
    return spread(sums.cast(kind), steps.groups[starts], steps.group_count)


def _unscaled(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    number: int = int("".join(map(str, digits))) * 10 ** (int(exponent) + scale)
    return -number if sign else number
