"""The aggregation engine, row by row: each column folds its values with its own function.

Law: -U and -D take their values back; with `aggregation.remove-record-on-delete` a -D is taken as it is, in place of
all before, and what follows is merged with it. A key never disappears by taking back. Source: `AggregateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from paimon.domain.merge.aggregate.deeds import ADD, RETRACT, SET
from paimon.domain.merge.aggregate.registry import function_named
from paimon.domain.merge.reference.record import DELETE, Record
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.data_types import DataField


def aggregation(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """The aggregates of all columns."""
    last = records[-1]
    row = dict(last.values)
    for aggregate in spec.aggregates:
        steps = list(_steps(records, aggregate.column, spec))
        row[aggregate.column.name] = function_named(aggregate).reference.fold(steps, aggregate)
    removed = spec.removes_on_delete and last.kind == DELETE
    return Record(row, last.sequence, DELETE if removed else 0, last.level)


def _steps(records: Sequence[Record], column: DataField, spec: MergeSpec) -> Iterator[tuple[int, Any]]:
    for record in records:
        value = record.values[column.name]
        if record.kind == DELETE and spec.removes_on_delete:
            yield SET, value
        else:
            yield ADD if record.is_add else RETRACT, value
