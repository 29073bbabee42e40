"""The first-row engine on columns: the first add wins, retracts are refused.

Law: what comes later never shows; for each key the answer is the reference's.
Twin: `paimon.domain.merge.reference.first_row`. Source: `FirstRowMergeFunction`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.columnar.ordering.arrival import Grouping
from paimon.domain.merge.columnar.ordering.order import retracts
from paimon.domain.merge.spec import MergeSpec


def first_row(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """One row a group: its first."""
    gone = groups.placed(retracts(table))
    if gone.any() and (gone & ~groups.lone[groups.of_row()]).any():
        raise InvalidRequest("merge engine first-row takes no -D and -U records", hint="set ignore-delete to skip them")
    return table.take(pa.array(groups.first))
