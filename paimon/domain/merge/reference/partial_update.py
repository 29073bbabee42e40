"""The partial-update engine without sequence groups, row by row: each column keeps its newest value that is not null.

Law: a retract that comes first fills the NOT NULL columns; then it is ignored, deletes the row
(`remove-record-on-delete`), or is refused. A key of which no add was seen ends as a delete. Source:
`PartialUpdateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.reference.record import Record
from paimon.domain.merge.spec import MergeSpec

DELETE = 3


def partial_update(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """The columns of all adds, laid over each other."""
    row: dict[str, Any] = dict(records[-1].values) | {f.name: None for f in spec.value_fields}
    kind = DELETE
    if not records[0].is_add:
        row |= _required(records[0], spec)
    for record in records:
        if record.is_add:
            for column in spec.value_fields:
                value = record.values[column.name]
                if value is None and not column.type.nullable:
                    raise InvalidRequest(f"column {column.name!r} is NOT NULL, but a record has no value for it")
                row[column.name] = row[column.name] if value is None else value
            kind = 0
        elif not spec.options.partial_update_remove_record_on_delete:
            raise InvalidRequest(
                "merge engine partial-update takes no -D and -U records",
                hint="set ignore-delete, or partial-update.remove-record-on-delete",
            )
        elif record.kind == DELETE:
            kind = DELETE
            row |= {f.name: None for f in spec.value_fields} | _required(record, spec)
    return Record(row, records[-1].sequence, kind, records[-1].level)


def _required(record: Record, spec: MergeSpec) -> dict[str, Any]:
    """The NOT NULL columns of a record."""
    return {f.name: record.values[f.name] for f in spec.value_fields if not f.type.nullable}
