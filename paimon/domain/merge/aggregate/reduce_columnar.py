"""Aggregate columns, and build the rows of an engine that computes values.

A column is aggregated by the columnar function where possible, and by the folding for groups that need it.

Invariant: equals `Folding.fold_steps` for each group. A single value that was set is returned unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.merge.aggregate.aggregate_functions import AggregateFunction, get_function
from paimon.domain.merge.aggregate.foldings import make_retract_error
from paimon.domain.merge.aggregate.functions_columnar import last_value
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.aggregate.steps_columnar import Steps, scatter_to_groups
from paimon.domain.merge.ordering.key_groups import Grouping
from paimon.domain.merge.ordering.merge_order import Mask
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types.system_columns import VALUE_KIND


def aggregate_column(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Reduce a column without chunks to one value for each group; null for groups without a step.

    Raises `InvalidRequest` if the function cannot accept or retract a value.
    """
    function = get_function(aggregate)
    if not steps.plain:
        steps = _refuse_retracts(steps.drop_skips(), function, aggregate)
        if not function.sees_all_steps:
            if function.can_refuse:
                _check_past(column, aggregate, steps)
            steps = steps.drop_past()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, column.type)
    marked = None if function.needs_folding is None else function.needs_folding(column, aggregate, steps)
    if marked is None:
        return function.columnar(column, aggregate, steps)
    return _aggregate_in_two_parts(column, aggregate, steps, marked & _mask_groups_with_work(steps))


def _aggregate_in_two_parts(column: pa.Array, aggregate: Aggregate, steps: Steps, slow: Mask) -> pa.Array:
    """Reduce the groups in the mask by the folding, and the others by the columnar function."""
    function = get_function(aggregate)
    slow_steps = slow[steps.groups]
    fast = steps.of(~slow_steps)
    reduce = last_value if fast.sets.all() else function.columnar
    parts = [reduce(column, aggregate, fast)] if not slow_steps.all() else []
    if not slow.any():
        return parts[0] if parts else last_value(column, aggregate, steps)
    folded = _fold_groups(column, aggregate, steps.of(slow_steps), function)
    if not parts:
        return scatter_to_groups(folded, np.flatnonzero(slow), steps.group_count)
    places = np.arange(steps.group_count)
    places[slow] = steps.group_count + np.arange(int(slow.sum()))
    return pa.concat_arrays([parts[0], folded]).take(pa.array(places))


def _refuse_retracts(steps: Steps, function: AggregateFunction, aggregate: Aggregate) -> Steps:
    retracts = steps.retracts
    if not retracts.any():
        return steps
    if aggregate.ignore_retract:
        return steps.of(~retracts)
    if function.folding.retract is None:
        raise make_retract_error(aggregate)
    return steps


def _check_past(column: pa.Array, aggregate: Aggregate, steps: Steps) -> None:
    """Check the steps before the last SET or CLEAR, too: a value is refused wherever it is."""
    if steps.has_past():
        aggregate_column(column, aggregate, steps.select_past())


def _mask_groups_with_work(steps: Steps) -> Mask:
    """Mark the groups that have a step, except those whose only step sets the value."""
    sizes = np.bincount(steps.groups, minlength=steps.group_count)
    mask: Mask = (sizes > 1) | ((sizes == 1) & ~steps.any_of(steps.sets))
    return mask


def _fold_groups(column: pa.Array, aggregate: Aggregate, steps: Steps, function: AggregateFunction) -> pa.Array:
    """Reduce each group by the folding."""
    kind, steps = aggregate.column.type, steps.to_contiguous()
    values = to_values(steps.take_column(column), kind)
    actions = steps.actions.tolist()
    starts = steps.starts.tolist()
    ends = [*starts[1:], len(values)]
    bounds = zip(starts, ends, strict=True)
    found = [
        function.folding.fold_steps(zip(actions[start:end], values[start:end], strict=True), aggregate)
        for start, end in bounds
    ]
    return to_array(found, kind)


def build_merged_table(
    table: pa.Table, groups: Grouping, made: Mapping[str, pa.Array], kinds: npt.NDArray[np.int8]
) -> pa.Table:
    """Build one row for each group: the computed columns, and of all others the value of the last record.

    `made` has one value for each group. `kinds` applies to groups with several records; singletons keep their row kind.
    """
    last = pa.array(groups.last)
    columns = []
    for name in table.column_names:
        column = made[name] if name in made else table[name].take(last)
        if name == VALUE_KIND.name:
            own = np.asarray(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
            column = pa.array(np.where(groups.singletons, own, kinds).astype(np.int8))
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=table.schema)
