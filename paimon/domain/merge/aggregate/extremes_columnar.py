"""max, min, bool_and and bool_or on columns.

Invariant: nulls are skipped. Floats are in the total order of `paimon.domain.columns.java_float_order`. Equals
`paimon.domain.merge.aggregate.numbers_reference`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.columns.buffers import to_stored_numbers
from paimon.domain.columns.java_float_order import from_float_ordinals, to_float_ordinals
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.aggregate.steps_columnar import (
    Numbers,
    Steps,
    fill_neutral,
    mask_valid_steps,
    reduce_groups,
    set_missing_null,
)
from paimon.domain.merge.ordering.group_maximum import find_largest_places
from paimon.domain.merge.ordering.merge_order import Mask
from paimon.domain.merge.ordering.normalized_keys import pack_keys, to_key_parts


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
            column, to_float_ordinals(np.asarray(column.fill_null(0), dtype=np.float64)), valid, steps, descending
        )
    words = [steps.gather(word) for word in pack_keys(to_key_parts(column, descending))]
    return steps.take_at(column, find_largest_places(words, steps.groups, steps.group_count, valid))


def _find_extreme_number(
    column: pa.Array, numbers: Numbers, valid: Mask | None, steps: Steps, descending: bool
) -> pa.Array:
    bounds = np.iinfo(numbers.dtype)
    kernel, nothing = (np.minimum, bounds.max) if descending else (np.maximum, bounds.min)
    found = reduce_groups(kernel, nothing, fill_neutral(steps.gather(numbers), valid, nothing), steps)
    if pa.types.is_floating(column.type):
        values = pa.array(from_float_ordinals(found).astype(column.type.to_pandas_dtype()))
    else:
        values = pa.array(found).view(column.type)
    return set_missing_null(values, steps.any_of(valid))


def bool_and(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return for each group whether all its values are true; null for a group without a value."""
    return _reduce_booleans(column, steps, np.minimum, 1)


def bool_or(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return for each group whether any of its values is true; null for a group without a value."""
    return _reduce_booleans(column, steps, np.maximum, 0)


def _reduce_booleans(column: pa.Array, steps: Steps, kernel: np.ufunc, neutral: int) -> pa.Array:
    values = steps.gather(np.asarray(column.fill_null(bool(neutral)))).view(np.uint8)
    found = reduce_groups(kernel, neutral, values, steps)
    return set_missing_null(found.view(np.bool_), steps.any_of(mask_valid_steps(column, steps)))
