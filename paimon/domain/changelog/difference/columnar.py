"""What two states of the same keys differ in.

Law: equals `reference.difference`: a key that is new or changed shows its later row, a key that is gone its earlier
row as -D. A retract is no row before, but is shown after: what it takes away may lie in a file that both states hold.
Source: `DiffReader`, `IncrementalDiffSplitRead`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.changelog.difference.same import same_rows
from paimon.domain.merge.columnar.ordering.order import Rows, groups_of, retracts
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.row.kinds import RowKind
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import VALUE_KIND


def difference(before: pa.Table, after: pa.Table, keys: Sequence[DataField]) -> pa.Table:
    """The rows in which `after` differs from `before`, by key.

    Both have the same columns, `_VALUE_KIND` among them, and each key once.
    """
    before, after = _rows(before), after.combine_chunks()
    names = [f.name for f in keys]
    both = pa.concat_tables([before.select(names), after.select(names)])
    groups = groups_of(both, MergeSpec(key_fields=tuple(keys)))
    first, last = groups.order[groups.starts], groups.order[groups.ends - 1]
    paired = np.flatnonzero(first != last)
    same = np.zeros(len(last), dtype=np.bool_)
    old, new = first[paired], last[paired] - before.num_rows
    same[paired] = _equal(before, old, after, new) & ~retracts(after)[new]
    shown = pa.concat_tables([_deleted(before), after]).combine_chunks()
    return shown.take(pa.array(last[~same]))


def _rows(table: pa.Table) -> pa.Table:
    gone = retracts(table)
    return (table.filter(pa.array(~gone)) if gone.any() else table).combine_chunks()


def _equal(before: pa.Table, old: Rows, after: pa.Table, new: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    values = [name for name in before.column_names if name != VALUE_KIND.name]
    return same_rows(before.select(values).take(pa.array(old)), after.select(values).take(pa.array(new)))


def _deleted(table: pa.Table) -> pa.Table:
    kinds = pa.repeat(pa.scalar(int(RowKind.DELETE), pa.int8()), table.num_rows)
    at = table.schema.get_field_index(VALUE_KIND.name)
    return table.set_column(at, table.schema.field(at), kinds)
