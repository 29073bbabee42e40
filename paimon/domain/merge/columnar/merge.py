"""Merge rows, each key whole, into one row a key: what flushes, compactions and reads have in common.

Law: equals `paimon.domain.merge.reference.merge` for every engine; a key that comes as a single record is answered
as it is. Source: `MergeFunction`, `ReducerMergeFunctionWrapper`, `LookupMergeFunction`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.merge.columnar.order import groups_of, lookup_groups, restricted, retracts
from paimon.domain.merge.registry import engine_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.system import LEVEL


def merge(table: pa.Table, spec: MergeSpec) -> pa.Table:
    """Merge a table with the key columns, `_SEQUENCE_NUMBER`, `_VALUE_KIND`, the sequence fields and any other columns.

    The answer has the same columns (without `_LEVEL`), is sorted by key and may hold retracts.
    """
    whole = table.combine_chunks()
    groups = groups_of(whole, spec)
    if spec.lookup and LEVEL.name in whole.column_names:
        groups = lookup_groups(groups, whole)
    if spec.ignore_delete:
        dropped = retracts(whole)[groups.order] & ~groups.lone[groups.of_row()]
        groups = restricted(groups, ~dropped) if dropped.any() else groups
    if LEVEL.name in whole.column_names:
        whole = whole.drop_columns([LEVEL.name])
    return engine_of(spec.engine).columnar(whole, groups, spec)
