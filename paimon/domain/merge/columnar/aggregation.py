"""The aggregation engine on columns: rows are ordered once, then each column is reduced by its function.

Law: a key that comes as a single record is answered as it is. Twin: `paimon.domain.merge.reference.aggregation`.
Source: `AggregateMergeFunction`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.merge.aggregate.columnar.reduce import aggregated
from paimon.domain.merge.aggregate.columnar.steps import Deeds, Steps
from paimon.domain.merge.aggregate.deeds import ADD, RETRACT, SET
from paimon.domain.merge.columnar.answer import answered
from paimon.domain.merge.columnar.ordering.arrival import Grouping
from paimon.domain.merge.columnar.ordering.order import Mask, kinds_of
from paimon.domain.merge.spec import MergeSpec

_DELETE = 3


def aggregation(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """One row a group: of each value column its aggregate, of the others the last."""
    kinds = groups.placed(kinds_of(table))
    plain = not (kinds & 1).any()  # -U and -D are odd
    removed = (kinds == _DELETE) & spec.removes_on_delete
    steps = Steps(groups.rows, _deeds(kinds, removed, groups), groups.of_row(), groups.key_count, plain)
    columns = {
        a.column.name: aggregated(table[a.column.name].chunk(0), a, steps)
        for a in spec.aggregates
        if a.column.name in table.column_names
    }
    gone = removed[steps.last()]
    return answered(table, groups, columns, np.where(gone, _DELETE, 0).astype(np.int8))


def _deeds(kinds: Deeds, removed: Mask, groups: Grouping) -> Deeds:
    deeds = np.where((kinds == 1) | (kinds == _DELETE), RETRACT, ADD).astype(np.int8)
    deeds[removed] = SET
    deeds[groups.alone] = SET
    return deeds
