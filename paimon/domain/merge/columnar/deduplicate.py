"""The deduplicate engine on columns: the last record of a key wins, whatever its kind.

Law: no row is compared but for its order; for each key the answer is the reference's.
Twin: `paimon.domain.merge.reference.deduplicate`. Source: `DeduplicateMergeFunction`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.merge.columnar.ordering.arrival import Grouping
from paimon.domain.merge.spec import MergeSpec


def deduplicate(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """One row a group: its last."""
    return table.take(pa.array(groups.last))
