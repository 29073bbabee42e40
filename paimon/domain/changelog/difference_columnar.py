"""Compute the difference of two snapshots of a table, on columns, for incremental reads between tags or in diff mode.

A -U or -D row of the earlier snapshot counts as no row. In the later snapshot it is returned, because the row that it
removes may be in a file that both snapshots have, and such files may be skipped.

Invariant: equals `paimon.domain.changelog.difference_reference`. A key that is new or changed has its later row in the
result. A key that no longer exists has its earlier row, as -D.

Source: `DiffReader`, `IncrementalDiffSplitRead`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.changelog.equal_rows import mask_equal_rows
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import Rows, group_rows_by_key, mask_retracts
from paimon.domain.row.kinds import RowKind
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import VALUE_KIND


def compute_difference(before: pa.Table, after: pa.Table, keys: Sequence[DataField]) -> pa.Table:
    """Return the rows by which a state differs from an earlier one, by key; earlier rows are -D."""
    before, after = _rows(before), after.combine_chunks()
    names = [f.name for f in keys]
    both = pa.concat_tables([before.select(names), after.select(names)])
    groups = group_rows_by_key(both, MergeSpec(key_fields=tuple(keys)))
    first, last = groups.order[groups.starts], groups.order[groups.ends - 1]
    paired = np.flatnonzero(first != last)
    same = np.zeros(len(last), dtype=np.bool_)
    old, new = first[paired], last[paired] - before.num_rows
    same[paired] = _equal(before, old, after, new) & ~mask_retracts(after)[new]
    shown = pa.concat_tables([_as_deletes(before), after]).combine_chunks()
    return shown.take(from_numpy(last[~same]))


def _rows(table: pa.Table) -> pa.Table:
    gone = mask_retracts(table)
    return (table.filter(from_numpy(~gone)) if gone.any() else table).combine_chunks()


def _equal(before: pa.Table, old: Rows, after: pa.Table, new: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    values = [name for name in before.column_names if name != VALUE_KIND.name]
    return mask_equal_rows(before.select(values).take(from_numpy(old)), after.select(values).take(from_numpy(new)))


def _as_deletes(table: pa.Table) -> pa.Table:
    kinds = pa.repeat(pa.scalar(int(RowKind.DELETE), pa.int8()), table.num_rows)
    at = table.schema.get_field_index(VALUE_KIND.name)
    return table.set_column(at, table.schema.field(at), kinds)
