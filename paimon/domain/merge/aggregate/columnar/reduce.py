"""Aggregates one column: the columnar function where it fits, else the reference for the groups that need it.

Law: equals folding the reference over every group. Single values that were set are never touched.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.merge.aggregate.columnar.picks import last_value
from paimon.domain.merge.aggregate.columnar.steps import Steps, spread
from paimon.domain.merge.aggregate.reference.fold import no_retract
from paimon.domain.merge.aggregate.registry import Function, function_named
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.columnar.ordering.order import Mask
from paimon.domain.row.values import to_array, to_values


def aggregated(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """One value a group of the steps."""
    function = function_named(aggregate)
    if not steps.plain:
        steps = _refusing_retracts(steps.without_skips(), function, aggregate)
        if not function.remembers:
            if function.refuses:
                _refusing_past(column, aggregate, steps)
            steps = steps.without_past()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, column.type)
    if function.by_reference is None:
        return function.columnar(column, aggregate, steps)
    slow = function.by_reference(aggregate, steps) & _handled(steps)
    slow_steps = slow[steps.groups]
    fast = steps.of(~slow_steps)
    reduce = last_value if fast.sets.all() else function.columnar
    parts = [reduce(column, aggregate, fast)] if not slow_steps.all() else []
    if not slow.any():
        return parts[0] if parts else last_value(column, aggregate, steps)
    folded = _folded(column, aggregate, steps.of(slow_steps), function)
    if not parts:
        return spread(folded, np.flatnonzero(slow), steps.group_count)
    places = np.arange(steps.group_count)
    places[slow] = steps.group_count + np.arange(int(slow.sum()))
    return pa.concat_arrays([parts[0], folded]).take(pa.array(places))


def _refusing_retracts(steps: Steps, function: Function, aggregate: Aggregate) -> Steps:
    retracts = steps.retracts
    if not retracts.any():
        return steps
    if aggregate.ignore_retract:
        return steps.of(~retracts)
    if function.reference.retract is None:
        raise no_retract(aggregate)
    return steps


def _refusing_past(column: pa.Array, aggregate: Aggregate, steps: Steps) -> None:
    """What was set aside later must have been possible all the same: an overflow is refused where it happens."""
    if steps.has_past():
        aggregated(column, aggregate, steps.past())


def _handled(steps: Steps) -> Mask:
    """Groups that have a step, but for those whose only step sets the value."""
    sizes = np.bincount(steps.groups, minlength=steps.group_count)
    mask: Mask = (sizes > 1) | ((sizes == 1) & ~steps.any_of(steps.sets))
    return mask


def _folded(column: pa.Array, aggregate: Aggregate, steps: Steps, function: Function) -> pa.Array:
    """The reference over each group: for the functions that the registry names only."""
    kind, steps = aggregate.column.type, steps.contiguous()
    values = to_values(steps.taken(column), kind)
    deeds = steps.deeds.tolist()
    starts = steps.starts.tolist()
    ends = [*starts[1:], len(values)]
    bounds = zip(starts, ends, strict=True)
    found = [
        function.reference.fold(zip(deeds[start:end], values[start:end], strict=True), aggregate)
        for start, end in bounds
    ]
    return to_array(found, kind)
