"""Aggregate columns, and build the rows of an engine that computes values.

A column is aggregated by the columnar function where possible, and by the folding for groups that need it.

Invariant: equals `Folding.fold_steps` for each group. A single value that was set is returned unchanged.
"""

# An engine gives one column of a window and its steps (`steps_columnar`): what each record does to the value of its
# group. The result has one value for each group. Most groups are reduced together, by the columnar function. Some
# states have no columnar form: a product that is divided again, nested rows, sketches. The folding takes them value by
# value, as Java does. The `product` of an INT column over three groups:
#
#     group   steps                      `needs_folding`   by columns   by folding   result
#     0       ADD 5, ADD 9               no                45                        45
#     1       ADD 6, RETRACT 3, ADD 5    yes, a retract    null         10           10
#     2       SET 3                      no                3                         3
#
# The stages of `aggregate_column`, each of which leaves fewer steps to the next one:
#
# 1. Steps that change nothing go away. Retracts go away where the column ignores them. A function without a retract
#    refuses them; the error names the option that ignores them.
# 2. Steps before the last SET or CLEAR of their group go away, because they cannot matter. There are two exceptions:
#    a function that `sees_all_steps`, and one that `can_refuse` a value, which is called for these steps alone, so that
#    an invalid value is an error wherever it is. Its result is dropped.
# 3. `needs_folding` marks the groups that have no columnar form. A group whose only step is a SET is never folded: its
#    value is returned unchanged.
# 4. Both parts are reduced, and put together by position. The columnar part has a place for each group, null for the
#    folded ones; the folded values follow it:
#
#        concatenated   45   null   3   10
#        take           0    3      2                group 1 is the first one behind the three places
#
# `build_merged_table` then makes the rows of an engine: computed columns from here, all others from the last record of
# each group. A group of one record keeps its row kind; the engine decides the kind of the others.

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.columns.buffers import combine_column
from paimon.domain.merge.aggregate.aggregate_functions import AggregateFunction, get_function, sees_actions
from paimon.domain.merge.aggregate.foldings import make_retract_error
from paimon.domain.merge.aggregate.functions_columnar import last_value
from paimon.domain.merge.aggregate.rule import ADD, LAST_NON_NULL_VALUE, LAST_VALUE, PRIMARY_KEY, SET, Aggregate
from paimon.domain.merge.aggregate.steps_columnar import Steps, scatter_to_groups
from paimon.domain.merge.ordering.key_groups import Grouping
from paimon.domain.merge.ordering.merge_order import Mask
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.system_columns import VALUE_KIND


def aggregate_column(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Reduce a column to one value a group, null without a step; InvalidRequest for a refused value."""
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


def aggregate_adds(table: pa.Table, groups: Grouping, aggregates: Iterable[Aggregate]) -> dict[str, pa.Array]:
    """Reduce columns of a table whose records only add; left out are those whose value the last record has."""
    wanted = [a for a in aggregates if a.column.name in table.column_names and not _is_of_last_record(table, a)]
    if not wanted:
        return {}
    actions = np.full(table.num_rows if groups.rows is None else len(groups.rows), ADD, dtype=np.int8)
    if any(map(sees_actions, wanted)):
        actions[groups.singleton_positions] = SET
    steps = Steps(groups.rows, actions, groups.group_ids(), groups.key_count, plain=True)
    return {a.column.name: aggregate_column(combine_column(table[a.column.name]), a, steps) for a in wanted}


def _is_of_last_record(table: pa.Table, aggregate: Aggregate) -> bool:
    """Return whether the last record of each key has the value, where all records add."""
    is_newest = aggregate.function == LAST_NON_NULL_VALUE and table[aggregate.column.name].null_count == 0
    return is_newest or aggregate.function in (LAST_VALUE, PRIMARY_KEY)


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
    return pa.concat_arrays([parts[0], folded]).take(from_numpy(places))


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
    table: pa.Table, groups: Grouping, made: Mapping[str, pa.Array], kinds: npt.NDArray[np.int8] | None = None
) -> pa.Table:
    """Build one row for each group: the computed columns, and of all others the value of the last record.

    `made` has one value for each group. `kinds` applies to groups with several records, None: they are inserts.
    Singletons keep their row kind.
    """
    last = from_numpy(groups.last)
    columns = []
    for name in table.column_names:
        column = made[name] if name in made else table[name].take(last)
        if name == VALUE_KIND.name:
            own = to_numpy(combine_column(column))
            column = from_numpy(np.where(groups.singletons, own, 0 if kinds is None else kinds).astype(np.int8))
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=table.schema)
