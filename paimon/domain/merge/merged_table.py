"""Build the result of an engine that computes values: one row a group.

Invariant: columns that no function computed are those of the last record of the group. A singleton keeps its row kind.

Source: `MergeFunction.getResult`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.merge.ordering.arrival_order import Grouping
from paimon.domain.types.system_columns import VALUE_KIND


def build_merged_table(
    table: pa.Table, groups: Grouping, made: Mapping[str, pa.Array], kinds: npt.NDArray[np.int8]
) -> pa.Table:
    """Build one row for each group: the computed columns, and the last value of all others.

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
