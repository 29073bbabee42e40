"""The merge engines that return one of the records of a key: deduplicate the last one, first-row the first one.

Both are short, so that the row-wise reference and the columnar function of each are next to each other.

Invariant: the columnar function returns for each key the record that the reference returns.
Source: `DeduplicateMergeFunction`, `FirstRowMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.arrival_order import Grouping
from paimon.domain.merge.ordering.merge_order import mask_retracts
from paimon.domain.merge.record import Record


def keep_last_record(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """Return the last record of a key, whatever its row kind: the reference of deduplicate.

    A -D that is last is returned as -D. The caller decides whether it is visible.
    """
    result = None
    for record in records:
        result = record
    return result


def keep_last_rows(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """Merge by deduplicate: return the last row of each group, ascending by key."""
    return table.take(pa.array(groups.last))


def keep_first_record(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """Return the first record of a key: the reference of first-row. Raises `InvalidRequest` for a -U or -D."""
    if not all(record.is_add for record in records):
        raise InvalidRequest(
            "Merge engine 'first-row' does not accept -U and -D records", hint="set 'ignore-delete' to skip them"
        )
    return records[0]


def keep_first_rows(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """Merge by first-row: return the first row of each group, ascending by key.

    Raises `InvalidRequest` if a key with several records has a -U or -D.
    """
    is_retract = groups.gather(mask_retracts(table))
    if is_retract.any() and (is_retract & ~groups.singletons[groups.group_ids()]).any():
        raise InvalidRequest(
            "Merge engine 'first-row' does not accept -U and -D records", hint="set 'ignore-delete' to skip them"
        )
    return table.take(pa.array(groups.first))
