"""The partial-update engine, row by row: columns are laid over each other, those of a sequence group in its own order.

Law: a retract that comes first is taken as it is; then it acts on each group, deletes the row, or is refused. A record
that deletes the row is taken as it is too, and what follows is laid over it. A row that its last record deleted, or
that saw no add, ends as a delete. Source: `PartialUpdateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.deeds import ADD, ADD_OLDER, CLEAR, RETRACT, SET, SKIP
from paimon.domain.merge.aggregate.registry import function_named
from paimon.domain.merge.reference.record import DELETE, Record
from paimon.domain.merge.reference.values import compare_by_operators
from paimon.domain.merge.sequence_groups import SequenceGroup
from paimon.domain.merge.spec import MergeSpec

States = dict[str, Any]
"""By column: the state of its function; of sequence fields that is their value."""


def partial_update(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """The columns of all records, laid over each other."""
    states: States = {a.column.name: function_named(a).reference.start for a in spec.aggregates}
    seen_add = deleted = False
    for place, record in enumerate(records):
        if place == 0 and not record.is_add:
            _take(states, record, spec)
        deleted = _deletes(record, states, spec)
        if deleted:
            _take(states, record, spec)
        elif spec.sequence_groups:
            _merge_groups(states, record, spec)
        else:
            _lay_over(states, record, spec)
        seen_add = seen_add or record.is_add
    values = {a.column.name: function_named(a).reference.value(states[a.column.name]) for a in spec.aggregates}
    last = records[-1]
    return Record(dict(last.values) | values, last.sequence, DELETE if deleted or not seen_add else 0, last.level)


def _take(states: States, record: Record, spec: MergeSpec) -> None:
    """Take the columns of a record as they are."""
    for aggregate in spec.aggregates:
        name = aggregate.column.name
        states[name] = function_named(aggregate).reference.put(states[name], record.values[name], aggregate)


def _deletes(record: Record, states: States, spec: MergeSpec) -> bool:
    if record.kind != DELETE:
        return False
    return spec.removes_on_delete or any(_is_in_order(record, states, g) for g in spec.sequence_groups if g.removes)


def _lay_over(states: States, record: Record, spec: MergeSpec) -> None:
    if not record.is_add:
        if spec.removes_on_delete:
            return
        raise InvalidRequest(
            "merge engine partial-update takes no -D and -U records",
            hint="set ignore-delete, partial-update.remove-record-on-delete or sequence groups",
        )
    for aggregate in spec.aggregates:
        name = aggregate.column.name
        value = record.values[name]
        if value is None and not aggregate.column.type.nullable:
            raise InvalidRequest(f"column {name!r} is NOT NULL, but a record has no value for it", subject=name)
        states[name] = function_named(aggregate).reference.after(states[name], ADD, value, aggregate)


def _merge_groups(states: States, record: Record, spec: MergeSpec) -> None:
    deeds = {a.column.name: ADD if record.is_add else SKIP for a in spec.aggregates}
    for group in spec.sequence_groups:
        deeds |= _group_deeds(record, states, group, spec)
    for aggregate in spec.aggregates:
        name = aggregate.column.name
        folding = function_named(aggregate).reference
        states[name] = folding.after(states[name], deeds[name], record.values[name], aggregate)


def _group_deeds(record: Record, states: States, group: SequenceGroup, spec: MergeSpec) -> Mapping[str, int]:
    if _is_empty(record, group):
        return dict.fromkeys((*group.sequence, *group.members), SKIP)
    in_order = _is_in_order(record, states, group)
    plain = SKIP if not in_order else SET if record.is_add else CLEAR
    aggregated = RETRACT if not record.is_add else ADD if in_order else ADD_OLDER
    deeds = {name: aggregated if spec.is_aggregated(name) else plain for name in group.members}
    return deeds | dict.fromkeys(group.sequence, SET if in_order else SKIP)


def _is_empty(record: Record, group: SequenceGroup) -> bool:
    return all(record.values[name] is None for name in group.sequence)


def _is_in_order(record: Record, states: States, group: SequenceGroup) -> bool:
    """Whether the record is not older than what the group holds."""
    if _is_empty(record, group):
        return False
    orders = (compare_by_operators(record.values[name], states[name]) for name in group.sequence)
    return next((order > 0 for order in orders if order), True)
