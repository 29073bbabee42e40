"""The aggregation engine on columns: rows are ordered once, then each column is reduced by its function.

Invariant: equals `paimon.domain.merge.aggregation_reference`. A singleton is returned unchanged.

Source: `AggregateMergeFunction`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.merge.aggregate.actions import ADD, RETRACT, SET
from paimon.domain.merge.aggregate.reduce_columnar import aggregate_column
from paimon.domain.merge.aggregate.steps_columnar import Actions, Steps
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.merged_table import build_merged_table
from paimon.domain.merge.ordering.arrival_order import Grouping
from paimon.domain.merge.ordering.merge_order import Mask, get_row_kinds

_DELETE = 3


def aggregation(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """Merge by aggregation: one row for each group, ascending by key.

    Columns without an aggregate get their last value. Raises `InvalidRequest` if a function cannot retract a value.
    """
    kinds = groups.gather(get_row_kinds(table))
    plain = not (kinds & 1).any()  # -U and -D are odd
    removed = (kinds == _DELETE) & spec.removes_on_delete
    steps = Steps(groups.rows, _find_actions(kinds, removed, groups), groups.group_ids(), groups.key_count, plain)
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
