"""The partial-update engine on columns: first what each record does to each column, then one reduction a column.

Invariant: equals `paimon.domain.merge.partial_update_reference`. A singleton is returned unchanged.

Source: `PartialUpdateMergeFunction`.
"""

# Each column goes its own way, so the records of all keys become one action for each record and column
# (`aggregate.rule`), and then each column is reduced as in the aggregation engine; a column without a function keeps
# the last value that is not null. For the group g -> a, b, where b has the function sum, and c in no group:
#
#     record          in order?     g      a      b            c
#     +I, newer         yes         SET    SET    ADD          ADD
#     +U, older         no          SKIP   SKIP   ADD_OLDER    ADD
#     +U, g is null     -           SKIP   SKIP   SKIP         ADD
#     -D, newer         yes         SET    CLEAR  RETRACT      SKIP
#     -D, older         no          SKIP   SKIP   RETRACT      SKIP
#
# Three rules are on top of the table:
#
# - A singleton is never merged: its action is SET for every column.
# - A record that removes its row (`remove-record-on-delete`, or `remove-record-on-sequence-group`) sets all columns to
#   its own values. If it is the last one, the row is returned as -D; a later record is merged with it.
# - A retract that comes first sets its values, and then acts. It becomes two steps (`_to_steps`).
#
# Most merges have only adds and no aggregates inside of groups. Then (`_merge_adds`) the last record in order of each
# group is found directly, and its row number serves all columns of the group.

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from paimon.domain.columns.buffers import combine_column, read_validity
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.reduce_columnar import aggregate_adds, aggregate_column, build_merged_table
from paimon.domain.merge.aggregate.rule import ADD, ADD_OLDER, CLEAR, RETRACT, SET, SKIP
from paimon.domain.merge.aggregate.steps_columnar import Actions, Steps, find_row_numbers
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.key_groups import Grouping
from paimon.domain.merge.ordering.merge_order import Groups, Mask, Rows, get_row_kinds, mask_retracts
from paimon.domain.merge.ordering.normalized_keys import combine_chunks
from paimon.domain.merge.sequence_groups_columnar import (
    GroupOrder,
    find_newest_in_order,
    find_records_in_order,
    select_known_groups,
)

_DELETE = 3


def partial_update(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """Merge by partial-update; InvalidRequest for a retract without an option, or a null under NOT NULL."""
    members = {name for group in spec.sequence_groups for name in group.members} & {*table.column_names}
    if mask_retracts(table).any() or any(spec.is_aggregated(name) for name in members):
        return _merge_steps(table, groups.to_key_order(), spec)
    return _merge_adds(table, groups, spec)


def _merge_adds(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """Merge adds only: a member of a sequence group takes the value of the record with the largest sequence."""
    if not spec.sequence_groups:
        _check_values(table, groups, spec)
    largest = {
        name: rows
        for group in select_known_groups(table, spec)
        for rows in [find_row_numbers(groups.rows, find_newest_in_order(table, groups, group))]
        for name in (*group.sequence, *group.members)
    }
    values = {f.name for f in spec.value_fields} & {*table.column_names}  # a group can name a key column, which stays
    columns = {name: combine_column(table[name]).take(rows) for name, rows in largest.items() if name in values}
    free = [a for a in spec.aggregates if a.column.name not in largest]
    return build_merged_table(table, groups, columns | aggregate_adds(table, groups, free))


def _merge_steps(table: pa.Table, groups: Groups, spec: MergeSpec) -> pa.Table:
    """Merge with retracts, or with aggregate functions in sequence groups."""
    kinds = get_row_kinds(table)[groups.order]
    numbers = groups.group_ids()
    is_singleton = groups.singletons[numbers]
    adds = (kinds == 0) | (kinds == 2)
    deletes = (kinds == _DELETE) & ~is_singleton
    removed, ordered = find_records_in_order(table, groups, spec, deletes)
    if not spec.sequence_groups:
        removed = deletes & spec.removes_on_delete
        _check_retracts(spec, adds | is_singleton)
        _check_values(table, groups, spec, ~adds)
    actions = _find_actions(spec, ordered, adds)
    found: dict[int, Steps] = {}
    columns = {}
    for aggregate in (a for a in spec.aggregates if a.column.name in table.column_names):
        name = aggregate.column.name
        alike = id(actions[name])  # columns that one rule covers share their steps
        if alike not in found:
            own = np.where(removed | is_singleton, SET, actions[name]).astype(np.int8)
            found[alike] = _to_steps(groups, own, numbers, adds).drop_skips()
        columns[name] = aggregate_column(combine_chunks([table[name]])[0], aggregate, found[alike])
    gone = removed[groups.ends - 1] | ~np.logical_or.reduceat(adds, groups.starts)
    return build_merged_table(table, groups, columns, np.where(gone, _DELETE, 0).astype(np.int8))


def _check_retracts(spec: MergeSpec, harmless: Mask) -> None:
    """Refuse retracts that no option allows; called without sequence groups."""
    if not spec.removes_on_delete and not harmless.all():
        raise InvalidRequest(
            "Merge engine 'partial-update' does not accept -U and -D records",
            hint="set 'ignore-delete', 'partial-update.remove-record-on-delete' or sequence groups",
        )


def _check_values(table: pa.Table, groups: Grouping, spec: MergeSpec, retracting: Mask | None = None) -> None:
    """Refuse nulls for columns that are NOT NULL; called without sequence groups."""
    for column in spec.value_fields:
        if column.type.nullable or column.name not in table.column_names or not table[column.name].null_count:
            continue
        harmless = (
            groups.gather(read_validity(combine_chunks([table[column.name]])[0]))
            | groups.singletons[groups.group_ids()]
        )
        if not (harmless if retracting is None else harmless | retracting).all():
            raise InvalidRequest(
                f"Column {column.name!r} is NOT NULL, but a record has no value for it", subject=column.name
            )


def _find_actions(spec: MergeSpec, ordered: Mapping[tuple[str, ...], GroupOrder], adds: Mask) -> Mapping[str, Actions]:
    """Return what each record does to each column."""
    free = np.where(adds, np.int8(ADD), np.int8(SKIP))
    actions = {f.name: free for f in spec.value_fields}
    for group in spec.sequence_groups:
        if group.sequence not in ordered:  # no column of this group is wanted
            continue
        empty, in_order = ordered[group.sequence]
        plain = np.where(in_order, np.where(adds, SET, CLEAR), SKIP)
        late = np.where(in_order, ADD, ADD_OLDER)
        chosen = np.where(empty, SKIP, np.where(adds, late, RETRACT))
        own = np.where(in_order, SET, SKIP)
        actions |= {name: chosen if spec.is_aggregated(name) else plain for name in group.members}
        actions |= dict.fromkeys(group.sequence, own)
    return actions


def _to_steps(groups: Groups, actions: Actions, numbers: Rows, adds: Mask) -> Steps:
    """Return the steps of a column, where a retract that comes first sets its own values before it acts."""
    first_retracts = groups.starts[~adds[groups.starts] & ~groups.singletons]
    if len(first_retracts) == 0:
        return Steps(groups.order, actions, numbers, len(groups.starts))
    rows, of_row = (np.insert(a, first_retracts, a[first_retracts]) for a in (groups.order, numbers))
    return Steps(rows, np.insert(actions, first_retracts, SET), of_row, len(groups.starts))
