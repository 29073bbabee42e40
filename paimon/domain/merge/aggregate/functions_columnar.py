"""The aggregate functions on columns.

Invariant: each equals its folding in `foldings` and `collection_foldings`, for the groups that `aggregate_functions`
does not leave to the folding.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.buffers import from_stored_numbers, has_stored_numbers, to_stored_numbers
from paimon.domain.columns.java_float_order import from_float_ordinals, to_float_ordinals
from paimon.domain.merge.aggregate.rule import ADD, ADD_OLDER, CLEAR, RETRACT, SET, Aggregate
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
from paimon.domain.merge.ordering.key_groups import find_largest_positions
from paimon.domain.merge.ordering.merge_order import Mask, Rows
from paimon.domain.merge.ordering.normalized_keys import pack_keys, to_key_parts
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy

# Numbers. Floats are computed step by step, so that they are rounded as in Java. Integers wrap, whatever the order of
# the steps. A decimal that may leave its range becomes null in between, which depends on the order: its group is
# folded.
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
        sums = from_numpy(reduce_groups(np.add, -0.0, values, steps))
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
        sizes, limit = np.abs(to_numpy(column.cast(pa.float64()).fill_null(0))), 10.0 ** (kind.precision - kind.scale)
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
        return set_missing_null(from_numpy(reduce_groups(np.multiply, 1, values, steps)), steps.any_of(valid))
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
        return to_numpy(column.fill_null(0) if column.null_count else column)
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
        return from_numpy(values.astype(kind.to_pandas_dtype()))
    pairs = np.column_stack([values, values >> 63])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(pairs))])


def _sum_wide_decimals(column: pa.Array, steps: Steps) -> pa.Array:
    """Sum 128-bit decimals that stay in the range of their type."""
    kind, steps = column.type, steps.to_contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, kind)
    values, starts = steps.take_column(column), steps.starts
    if steps.retracts.any():
        values = pc.if_else(from_numpy(steps.retracts), pc.negate(values), values)
    summed = pa.table({"group": steps.groups, "value": values}).group_by("group", use_threads=False)
    sums = summed.aggregate([("value", "sum")])["value_sum"].combine_chunks()
    return scatter_to_groups(sums.cast(kind), steps.groups[starts], steps.group_count)


def maximum(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the maximum of each group of a column of a comparable type; null for a group without a value."""
    return _find_extreme(column, steps, descending=False)


def minimum(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the minimum of each group of a column of a comparable type; null for a group without a value."""
    return _find_extreme(column, steps, descending=True)


def _find_extreme(column: pa.Array, steps: Steps, descending: bool) -> pa.Array:
    valid = mask_valid_steps(column, steps)
    if pa.types.is_integer(column.type) or pa.types.is_temporal(column.type):
        return _find_extreme_number(column, to_stored_numbers(column), valid, steps, descending)
    if pa.types.is_floating(column.type):
        return _find_extreme_number(
            column, to_float_ordinals(to_numpy(column.fill_null(0)).astype(np.float64)), valid, steps, descending
        )
    keys = [steps.gather(word) for word in pack_keys(to_key_parts(column, descending))]
    return steps.take_at(column, find_largest_positions(keys, steps.groups, steps.group_count, valid))


def _find_extreme_number(
    column: pa.Array, numbers: Numbers, valid: Mask | None, steps: Steps, descending: bool
) -> pa.Array:
    bounds = np.iinfo(numbers.dtype)
    kernel, nothing = (np.minimum, bounds.max) if descending else (np.maximum, bounds.min)
    found = reduce_groups(kernel, nothing, fill_neutral(steps.gather(numbers), valid, nothing), steps)
    if pa.types.is_floating(column.type):
        values = from_numpy(from_float_ordinals(found).astype(column.type.to_pandas_dtype()))
    else:
        values = from_numpy(found).view(column.type)
    return set_missing_null(values, steps.any_of(valid))


def bool_and(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return for each group whether all its values are true; null for a group without a value."""
    return _reduce_booleans(column, steps, np.minimum, 1)


def bool_or(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return for each group whether any of its values is true; null for a group without a value."""
    return _reduce_booleans(column, steps, np.maximum, 0)


def _reduce_booleans(column: pa.Array, steps: Steps, kernel: np.ufunc, neutral: int) -> pa.Array:
    values = steps.gather(to_numpy(column.fill_null(bool(neutral)))).view(np.uint8)
    found = reduce_groups(kernel, neutral, values, steps)
    return set_missing_null(found.view(np.bool_), steps.any_of(mask_valid_steps(column, steps)))


# One of the values. Only row numbers are computed, then one take. Steps before the last SET or CLEAR are left out,
# except for functions that see all steps.
def last_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the last value of each group, null after a retract; `steps` has all, also before a SET or CLEAR."""
    if steps.plain:
        return steps.take_at(column, steps.last())
    places = steps.last(steps.actions != ADD_OLDER)
    if len(steps.actions):
        actions = steps.actions[places]
        places = np.where((actions == RETRACT) | (actions == CLEAR), -1, places)
    return steps.take_at(column, places)


def primary_key(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the last value of each group, whatever the row kind of its record."""
    return steps.take_at(column, steps.last(steps.actions != ADD_OLDER))


def last_non_null_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the last value that is not null after the last retract of one; otherwise the first of the older ones."""
    if steps.plain:
        return _pick_newest(column, steps)
    steps = drop_null_steps(column, steps)
    retracts = steps.retracts
    if retracts.any():
        steps = steps.of(np.arange(len(retracts)) > steps.last(retracts)[steps.groups])
    late = steps.actions == ADD_OLDER
    places = steps.last(~late)
    return steps.take_at(column, np.where(places < 0, steps.first(late), places) if late.any() else places)


def _pick_newest(column: pa.Array, steps: Steps) -> pa.Array:
    """Return the last value of each group that is not null, where steps only add; numbers are copied without a take."""
    places = steps.last(mask_valid_steps(column, steps))
    if not has_stored_numbers(column.type):
        return steps.take_at(column, places)
    numbers = to_stored_numbers(column)[places if steps.rows is None else steps.rows[places]]
    return from_stored_numbers(numbers, column.type, places >= 0)


def first_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return each group's first value, older records first; `steps` has all, also before a SET or CLEAR."""
    if steps.plain:
        return steps.take_at(column, steps.first())
    actions = steps.actions
    effective = (actions == ADD_OLDER) | (actions == SET) | (actions == CLEAR)
    begins = steps.first((actions == ADD) | (actions == ADD_OLDER))
    effective[begins[begins >= 0]] = True
    places = steps.last(effective)
    if len(actions):
        places = np.where(actions[places] == CLEAR, -1, places)
    return steps.take_at(column, places)


def first_non_null_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the first value that is not null, for groups of which every step adds."""
    return steps.take_at(column, steps.first(mask_valid_steps(column, steps)))


# Lists, sliced out of the values in the order in which they are joined: older values precede the others, the latest of
# them first.
def listagg(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Join the texts of each group, null without a value; empty texts are skipped next to others."""
    steps = drop_null_steps(column, steps).to_contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, column.type)
    groups = steps.groups[steps.starts]
    filled = steps.gather(to_numpy(pc.binary_length(column).fill_null(0))) > 0
    texts = _move_late_first(steps.of(filled))
    sizes = np.bincount(texts.groups, minlength=steps.group_count)[groups]
    offsets = from_numpy(np.append(0, np.cumsum(sizes)).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, texts.take_column(column))
    return scatter_to_groups(pc.binary_join(lists, aggregate.delimiter).cast(column.type), groups, steps.group_count)


def _move_late_first(steps: Steps) -> Steps:
    late = steps.actions == ADD_OLDER
    if not late.any():
        return steps
    places = np.arange(len(late))
    order = np.lexsort((np.where(late, -places, places), ~late, steps.groups))
    rows = order if steps.rows is None else steps.rows[order]
    return Steps(rows, steps.actions[order], steps.groups[order], steps.group_count)


def collect(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Concatenate the lists of each group, which has no retracts; null where all lists are null."""
    steps = drop_null_steps(column, steps).to_contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, column.type)
    lists = steps.take_column(column)
    starts = steps.starts
    bounds = to_numpy(lists.offsets)
    offsets = from_numpy(np.append(bounds[starts], bounds[-1]).astype(np.int32))
    joined = pa.ListArray.from_arrays(offsets, lists.values, type=column.type)
    return scatter_to_groups(joined, steps.groups[starts], steps.group_count)
