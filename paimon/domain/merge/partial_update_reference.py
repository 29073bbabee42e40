"""The partial-update engine, row by row: later values replace earlier ones, in each sequence group in its own order.

A retract that comes first sets its own values; then it acts on each group, deletes the row, or is refused. A record
that deletes the row sets its own values too, and later records are merged with them.

Invariant: a row that its last record deleted, or that has no add, is returned as -D.

Source: `PartialUpdateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paimon.domain.columns.java_float_order import compare_by_operators
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.aggregate_functions import get_function
from paimon.domain.merge.aggregate.rule import ADD, ADD_OLDER, CLEAR, RETRACT, SET, SKIP
from paimon.domain.merge.merge_spec import MergeSpec, SequenceGroup
from paimon.domain.merge.record import DELETE, Record

States = dict[str, Any]
"""The state of the function of each column; the state of a sequence field is its value."""


def partial_update(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """Return the record of one key, with the columns of all its records."""
    states: States = {a.column.name: get_function(a).folding.start for a in spec.aggregates}
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
            _update_columns(states, record, spec)
        seen_add = seen_add or record.is_add
    values = {a.column.name: get_function(a).folding.value(states[a.column.name]) for a in spec.aggregates}
    last = records[-1]
    return Record(dict(last.values) | values, last.sequence, DELETE if deleted or not seen_add else 0, last.level)


def _take(states: States, record: Record, spec: MergeSpec) -> None:
    """Set all columns to those of a record."""
    for aggregate in spec.aggregates:
        name = aggregate.column.name
        states[name] = get_function(aggregate).folding.put(states[name], record.values[name], aggregate)


def _deletes(record: Record, states: States, spec: MergeSpec) -> bool:
    """Return whether a record deletes the row."""
    if record.kind != DELETE:
        return False
    return spec.removes_on_delete or any(_is_in_order(record, states, g) for g in spec.sequence_groups if g.removes)


def _update_columns(states: States, record: Record, spec: MergeSpec) -> None:
    """Merge a record into all columns, in a table without sequence groups."""
    if not record.is_add:
        if spec.removes_on_delete:
            return
        raise InvalidRequest(
            "Merge engine 'partial-update' does not accept -U and -D records",
            hint="set 'ignore-delete', 'partial-update.remove-record-on-delete' or sequence groups",
        )
    for aggregate in spec.aggregates:
        name = aggregate.column.name
        value = record.values[name]
        if value is None and not aggregate.column.type.nullable:
            raise InvalidRequest(f"Column {name!r} is NOT NULL, but a record has no value for it", subject=name)
        states[name] = get_function(aggregate).folding.apply(states[name], ADD, value, aggregate)


def _merge_groups(states: States, record: Record, spec: MergeSpec) -> None:
    """Merge a record into each sequence group."""
    actions = {a.column.name: ADD if record.is_add else SKIP for a in spec.aggregates}
    for group in spec.sequence_groups:
        actions |= _group_actions(record, states, group, spec)
    for aggregate in spec.aggregates:
        name = aggregate.column.name
        folding = get_function(aggregate).folding
        states[name] = folding.apply(states[name], actions[name], record.values[name], aggregate)


def _group_actions(record: Record, states: States, group: SequenceGroup, spec: MergeSpec) -> Mapping[str, int]:
    if _is_empty(record, group):
        return dict.fromkeys((*group.sequence, *group.members), SKIP)
    in_order = _is_in_order(record, states, group)
    plain = SKIP if not in_order else SET if record.is_add else CLEAR
    aggregated = RETRACT if not record.is_add else ADD if in_order else ADD_OLDER
    actions = {name: aggregated if spec.is_aggregated(name) else plain for name in group.members}
    return actions | dict.fromkeys(group.sequence, SET if in_order else SKIP)


def _is_empty(record: Record, group: SequenceGroup) -> bool:
    return all(record.values[name] is None for name in group.sequence)


def _is_in_order(record: Record, states: States, group: SequenceGroup) -> bool:
    """Return whether the sequence that the group holds is not larger than that of the record."""
    if _is_empty(record, group):
        return False
    orders = (compare_by_operators(record.values[name], states[name]) for name in group.sequence)
    return next((order > 0 for order in orders if order), True)
