"""The aggregation engine, row by row: each column folds its values with its own function.

Invariant: -U and -D take their values back. With `aggregation.remove-record-on-delete`, a -D replaces everything before
it, and later records are merged with it. A key never disappears because its values were taken back.

Source: `AggregateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from paimon.domain.merge.aggregate.actions import ADD, RETRACT, SET
from paimon.domain.merge.aggregate.aggregate_functions import get_function
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import DELETE, Record
from paimon.domain.types.data_types import DataField


def aggregation(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """Return the record of one key, with the aggregates of all columns."""
    last = records[-1]
    row = dict(last.values)
    for aggregate in spec.aggregates:
        steps = list(_steps(records, aggregate.column, spec))
        row[aggregate.column.name] = get_function(aggregate).reference.fold_steps(steps, aggregate)
    removed = spec.removes_on_delete and last.kind == DELETE
    return Record(row, last.sequence, DELETE if removed else 0, last.level)


def _steps(records: Sequence[Record], column: DataField, spec: MergeSpec) -> Iterator[tuple[int, Any]]:
    """Yield the action and the value of each record for one column."""
    for record in records:
        value = record.values[column.name]
        if record.kind == DELETE and spec.removes_on_delete:
            yield SET, value
        else:
            yield ADD if record.is_add else RETRACT, value
