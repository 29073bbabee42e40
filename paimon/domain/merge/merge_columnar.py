"""Merge the records of each key into one row, on columns. Flushes, compactions and reads all use this module.

Invariant: equals `paimon.domain.merge.merge_reference` for every engine. A singleton is returned unchanged.

Source: `MergeFunction`, `ReducerMergeFunctionWrapper`, `LookupMergeFunction`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.columns.java_float_order import RUN
from paimon.domain.merge.merge_engines import get_merge_engine
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.key_groups import group_rows_by_age, mask_newest_rows
from paimon.domain.merge.ordering.merge_order import (
    Groups,
    Mask,
    group_rows_by_key,
    mask_retracts,
    restrict_groups,
    restrict_to_lookup,
)
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.system_columns import LEVEL, SEQUENCE_NUMBER


def merge(table: pa.Table, spec: MergeSpec) -> pa.Table:
    """Merge a table that holds all records of each of its keys; return one row for each key, ascending.

    Without `_SEQUENCE_NUMBER`, rows are in order of age. Without `_VALUE_KIND`, all rows are adds. The result has no
    `_LEVEL` and `RUN`, and can contain retracts. Raises `InvalidRequest` if the engine refuses a record.
    """
    engine = get_merge_engine(spec)
    whole = table.combine_chunks()
    by_age = group_rows_by_age(whole, spec)
    groups = restrict_to_visible(group_rows_by_key(whole, spec), whole, spec) if by_age is None else by_age
    whole = whole.drop_columns([name for name in (LEVEL.name, RUN) if name in whole.column_names])
    if groups.all_singletons:
        return whole.take(from_numpy(groups.last))
    return engine.columnar(whole, groups, spec)


def mask_surviving_rows(table: pa.Table, spec: MergeSpec) -> Mask:
    """Mark rows that `merge` returns where the newest wins, by the columns that order records."""
    plain = not spec.sequence_fields and not spec.ignore_delete
    if plain and not {LEVEL.name, SEQUENCE_NUMBER.name} & set(table.column_names):
        return mask_newest_rows([table[name] for name in spec.key_names])
    groups = restrict_to_visible(group_rows_by_key(table, spec), table, spec)
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    mask[groups.order[groups.ends - 1]] = True
    return mask


def restrict_to_visible(groups: Groups, table: pa.Table, spec: MergeSpec) -> Groups:
    """Return the groups with the records that the engine sees; groups without any are dropped."""
    if spec.lookup and LEVEL.name in table.column_names:
        groups = restrict_to_lookup(groups, table)
    if spec.ignore_delete:
        dropped = mask_retracts(table)[groups.order] & ~groups.singletons[groups.group_ids()]
        groups = restrict_groups(groups, ~dropped) if dropped.any() else groups
    return groups
