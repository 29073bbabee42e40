"""The table that an engine answers which makes values of its own: one row a group.

Law: columns that no function made are those of the group's last record; a key that came as a single record keeps its
row kind. Source: `MergeFunction.getResult`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.merge.columnar.ordering.arrival import Grouping
from paimon.domain.types.system import VALUE_KIND


def answered(
    table: pa.Table, groups: Grouping, made: Mapping[str, pa.Array], kinds: npt.NDArray[np.int8]
) -> pa.Table:
    """One row a group: `made` columns as they are, `_VALUE_KIND` from `kinds`, the others taken."""
    last = pa.array(groups.last)
    columns = []
    for name in table.column_names:
        column = made[name] if name in made else table[name].take(last)
        if name == VALUE_KIND.name:
            own = np.asarray(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
            column = pa.array(np.where(groups.lone, own, kinds).astype(np.int8))
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=table.schema)
