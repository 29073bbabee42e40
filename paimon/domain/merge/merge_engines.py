"""The merge engines on columns, and their registry. Partial-update has a module of its own.

To add an engine, add its line to `MERGE_ENGINES`, its reference to `merge_reference`, and its name to the values of the
option `merge-engine`. The contract `paimon.testing.contracts.MergeEngineContract` and the drawn histories of
`paimon.testing.strategies` then include it.

Invariant: an engine returns what its reference returns. A singleton is returned unchanged.
Source: `CoreOptions.MergeEngine`, `DeduplicateMergeFunction`, `FirstRowMergeFunction`, `AggregateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.merge.aggregate.aggregate_functions import AGGREGATE_FUNCTIONS, check_type
from paimon.domain.merge.aggregate.reduce_columnar import aggregate_adds, aggregate_column, build_merged_table
from paimon.domain.merge.aggregate.rule import ADD, RETRACT, SET, Aggregate
from paimon.domain.merge.aggregate.steps_columnar import Actions, Steps
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.key_groups import Grouping
from paimon.domain.merge.ordering.merge_order import Mask, get_row_kinds, mask_retracts
from paimon.domain.merge.partial_update_columnar import partial_update
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import INTEGER_TYPES

_DELETE = 3


def keep_last_rows(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """Merge by deduplicate: return the last row of each group, ascending by key."""
    return table.take(from_numpy(groups.last))


def keep_first_rows(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """Return the first row of each group; InvalidRequest for a -U or -D in a group of several."""
    is_retract = groups.gather(mask_retracts(table))
    if is_retract.any() and (is_retract & ~groups.singletons[groups.group_ids()]).any():
        raise InvalidRequest(
            "Merge engine 'first-row' does not accept -U and -D records", hint="set 'ignore-delete' to skip them"
        )
    return table.take(from_numpy(groups.first))


def aggregate_rows(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """Merge by aggregation, or last values; InvalidRequest if a function cannot retract a value."""
    if not groups.gather(mask_retracts(table)).any():
        return build_merged_table(table, groups, aggregate_adds(table, groups, spec.aggregates))
    kinds = groups.gather(get_row_kinds(table))
    removed = (kinds == _DELETE) & spec.removes_on_delete
    steps = Steps(groups.rows, _find_actions(kinds, removed, groups), groups.group_ids(), groups.key_count)
    columns = {
        a.column.name: aggregate_column(table[a.column.name].chunk(0), a, steps)
        for a in spec.aggregates
        if a.column.name in table.column_names
    }
    gone = removed[steps.last()]
    return build_merged_table(table, groups, columns, np.where(gone, _DELETE, 0).astype(np.int8))


def _find_actions(kinds: Actions, removed: Mask, groups: Grouping) -> Actions:
    """Return what each record does to all columns."""
    actions = np.where((kinds == 1) | (kinds == _DELETE), RETRACT, ADD).astype(np.int8)
    actions[removed] = SET
    actions[groups.singleton_positions] = SET
    return actions


@frozen
class MergeEngine:
    """A merge engine: its columnar function and the properties that reads and compactions rely on."""

    # returns one row for each group, ascending by key
    columnar: Callable[[pa.Table, Grouping, MergeSpec], pa.Table]
    # whether the newest record of a key alone determines the result
    newest_wins: bool = False
    # whether the oldest record alone does; compactions look up only if a key exists, reads skip level 0
    oldest_wins: bool = False
    # whether each merged row is a stored row, so that a filter on stored rows can prune
    keeps_rows: bool = False
    # whether value columns have aggregate functions
    aggregates: bool = False


MERGE_ENGINES: Mapping[str, MergeEngine] = {
    "deduplicate": MergeEngine(keep_last_rows, newest_wins=True, keeps_rows=True),
    "first-row": MergeEngine(keep_first_rows, oldest_wins=True, keeps_rows=True),
    "aggregation": MergeEngine(aggregate_rows, aggregates=True),
    "partial-update": MergeEngine(partial_update, aggregates=True),
}
"""The merge engines by the value of the option `merge-engine`: the one place where an engine is registered."""


def is_newest_winning(engine_name: str) -> bool:
    """Return whether the newest record of a key alone makes the result; False for an unknown engine."""
    engine = MERGE_ENGINES.get(engine_name)
    return engine is not None and engine.newest_wins


def is_oldest_winning(engine_name: str) -> bool:
    """Return whether the oldest record of a key alone makes the result; False for an unknown engine."""
    engine = MERGE_ENGINES.get(engine_name)
    return engine is not None and engine.oldest_wins


def is_row_keeping(engine_name: str) -> bool:
    """Return whether each merged row is a stored row; False for an unknown engine."""
    engine = MERGE_ENGINES.get(engine_name)
    return engine is not None and engine.keeps_rows


def merges_in_parts(table: pa.Table, spec: MergeSpec) -> bool:
    """Return whether consecutive rows can be merged first, and the results later, with the same result.

    `table` has the consecutive rows. Merged retracts and sums of floats or decimals may differ from those of all rows.
    """
    if not get_merge_engine(spec).aggregates:
        return not spec.may_meet_nans
    if spec.sequence_fields or spec.sequence_groups or mask_retracts(table).any():
        return False
    return all(_is_associative(aggregate) for aggregate in spec.aggregates)


def _is_associative(aggregate: Aggregate) -> bool:
    is_integer_sum = aggregate.function == "sum" and isinstance(aggregate.column.type, INTEGER_TYPES)
    return is_integer_sum or AGGREGATE_FUNCTIONS[aggregate.function].associative


def get_merge_engine(spec: MergeSpec) -> MergeEngine:
    """Return the engine of a merge, after checking the types of its aggregated columns."""
    found = MERGE_ENGINES.get(spec.engine)
    if found is None:
        raise Unsupported(f"merge engine {spec.engine!r}", hint=f"use one of {', '.join(sorted(MERGE_ENGINES))}")
    if found.aggregates:
        for aggregate in spec.aggregates:
            check_type(aggregate)
    return found
