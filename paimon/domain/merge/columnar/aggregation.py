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
from paimon.domain.merge.columnar.order import Groups, Mask, kinds_of
from paimon.domain.merge.spec import MergeSpec

_DELETE = 3


def aggregation(table: pa.Table, groups: Groups, spec: MergeSpec) -> pa.Table:
    """One row a group: of each value column its aggregate, of the others the last."""
    kinds = kinds_of(table)[groups.order]
    removed = (kinds == _DELETE) & spec.removes_on_delete
    deeds = _deeds(kinds, removed, groups)
    numbers, count = groups.of_row(), len(groups.starts)
    columns = {
        a.column.name: aggregated(
            table[a.column.name].chunk(0),
            a,
            Steps(groups.order, deeds, numbers, count),
        )
        for a in spec.aggregates
        if a.column.name in table.column_names
    }
    ends = groups.ends - 1
    return answered(table, groups, columns, np.where(removed[ends], _DELETE, 0).astype(np.int8))


def _deeds(kinds: Deeds, removed: Mask, groups: Groups) -> Deeds:
    deeds = np.where((kinds == 1) | (kinds == _DELETE), RETRACT, ADD).astype(np.int8)
    deeds[removed] = SET
    deeds[groups.starts[groups.lone]] = SET
    return deeds
