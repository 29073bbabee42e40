"""Merge rows, each key whole, into one row a key: what flushes, compactions and reads have in common.

Law: equals `paimon.domain.merge.reference.merge` for every engine; a key that comes as a single record is answered
as it is. Where `_SEQUENCE_NUMBER` is left out, rows stand in order of age; where `_VALUE_KIND` is, all rows are adds.
Source: `MergeFunction`, `ReducerMergeFunctionWrapper`, `LookupMergeFunction`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.merge.columnar.ordering.arrival import arrival_of
from paimon.domain.merge.columnar.ordering.nan_order import RUN
from paimon.domain.merge.columnar.ordering.newest import newest
from paimon.domain.merge.columnar.ordering.order import Groups, Mask, groups_of, lookup_groups, restricted, retracts
from paimon.domain.merge.registry import engine_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.system import LEVEL, SEQUENCE_NUMBER


def merge(table: pa.Table, spec: MergeSpec) -> pa.Table:
    """Merge a table with the key columns, `_SEQUENCE_NUMBER`, `_VALUE_KIND`, the sequence fields and any other columns.

    The answer has the same columns (without `_LEVEL`), is sorted by key and may hold retracts.
    """
    engine = engine_of(spec)
    whole = table.combine_chunks()
    arrival = arrival_of(whole, spec)
    groups = taking_part(groups_of(whole, spec), whole, spec) if arrival is None else arrival
    whole = whole.drop_columns([name for name in (LEVEL.name, RUN) if name in whole.column_names])
    if groups.all_lone:
        return whole.take(pa.array(groups.last))
    return engine.columnar(whole, groups, spec)


def surviving(table: pa.Table, spec: MergeSpec) -> Mask:
    """For an engine where the newest record wins: which rows `merge` would answer; takes only what orders records."""
    plain = not spec.sequence_fields and not spec.ignore_delete
    if plain and not {LEVEL.name, SEQUENCE_NUMBER.name} & set(table.column_names):
        return newest([table[name] for name in spec.key_names])
    groups = taking_part(groups_of(table, spec), table, spec)
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    mask[groups.order[groups.ends - 1]] = True
    return mask


def taking_part(groups: Groups, table: pa.Table, spec: MergeSpec) -> Groups:
    """The groups without the records that the engine is not shown."""
    if spec.lookup and LEVEL.name in table.column_names:
        groups = lookup_groups(groups, table)
    if spec.ignore_delete:
        dropped = retracts(table)[groups.order] & ~groups.lone[groups.of_row()]
        groups = restricted(groups, ~dropped) if dropped.any() else groups
    return groups
