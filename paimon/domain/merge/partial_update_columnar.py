"""The partial-update engine on columns: first what each record does to each column, then one reduction a column.

A record is in order in its sequence group if it has a sequence that is not smaller than what the group holds. The group
holds the largest sequence so far, or that of a record that removed the row.

Invariant: equals `paimon.domain.merge.partial_update_reference`. A singleton is returned unchanged. The zeros are
equal; keys with a NaN are computed by `paimon.domain.columns.java_float_order`.

Source: `PartialUpdateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon.domain.columns.buffers import combine_column, read_validity
from paimon.domain.columns.java_float_order import NanKey, find_nan_keys, mask_nan_rows, unify_zeros
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.reduce_columnar import aggregate_adds, aggregate_column, build_merged_table
from paimon.domain.merge.aggregate.rule import ADD, ADD_OLDER, CLEAR, RETRACT, SET, SKIP
from paimon.domain.merge.aggregate.steps_columnar import Actions, Steps, find_row_numbers
from paimon.domain.merge.merge_spec import MergeSpec, SequenceGroup
from paimon.domain.merge.ordering.key_groups import Grouping, find_largest_positions
from paimon.domain.merge.ordering.merge_order import (
    Groups,
    Mask,
    Rows,
    argsort_keys,
    get_row_kinds,
    mark_key_starts,
    mask_retracts,
    number_keys_in_order,
)
from paimon.domain.merge.ordering.normalized_keys import KeyWord, combine_chunks, pack_keys, to_key_parts
from paimon.domain.types.arrow_arrays import from_numpy

# A sequence group gives some columns an order of their own. With `'fields.g.sequence-group' = 'a'`, and the records of
# one key in merge order:
#
#     record   g      a     rank of g   before   in order?
#       +I     2      x         2         0      yes: a = x, and the group now holds 2
#       +U     1      y         1         2      no: the record is late; a stays x
#       +U     null   z         0         2      no sequence: the group ignores the record
#       -D     3      -         3         2      yes: the group retracts, or removes the row
#       +I     1      w         1         3      no
#
# A record is in order if its rank is not below the largest rank before it, which is a running maximum. To compute it
# for all keys at once, `_mask_in_order` adds `segment number * (largest rank + 1)` to each rank: segments ascend, so
# what an earlier segment holds never exceeds a rank of a later one. A new segment begins with each key, and with a
# record that removed the row: the group then holds the rank of that record, even if it held a larger one.
#
# Which -D records remove their row depends on what is in order, and the other way round. `_find_removing_deletes`
# starts without any, and adds the first one of each key until none is new; each round fixes one more record of a key,
# and usually there is one round.
#
# If no record retracts, nothing removes rows, and the last record with the largest sequence of a key is all that counts
# (`find_newest_in_order`). NaN sequences have no rank; the few keys with one are computed record by record.


_NUMBER_BITS = 61
"""Bits for a rank and a segment number together."""


class _Ranked(NamedTuple):
    """The rank of each position in a group (0: the record has no sequence), and the keys without ranks."""

    ranks: Rows
    nans: list[NanKey]


class GroupOrder(NamedTuple):
    """Which positions in merge order have no sequence in a sequence group, and which are in order."""

    empty: Mask
    in_order: Mask


def select_known_groups(table: pa.Table, spec: MergeSpec) -> list[SequenceGroup]:
    """Return the groups whose sequence fields the table has; no column of the other groups is wanted."""
    names = {*table.column_names}
    return [g for g in spec.sequence_groups if names.issuperset(g.sequence)]


def find_newest_in_order(table: pa.Table, groups: Grouping, group: SequenceGroup) -> Rows:
    """Find each key's last record in order, as a position; -1 if no record has a sequence. No retracts."""
    columns = [unify_zeros(column) for column in combine_chunks([table[name] for name in group.sequence])]
    keys = [groups.gather(word) for word in pack_keys(part for column in columns for part in to_key_parts(column))]
    has_sequence = groups.singletons[groups.group_ids()]
    for column in columns:
        has_sequence |= groups.gather(read_validity(column))
    found = find_largest_positions(
        keys, groups.group_ids(), groups.key_count, None if has_sequence.all() else has_sequence
    )
    for key in _find_nan_keys(table, groups, group.sequence):
        found[key.number] = key.places[key.mask_in_order([False] * len(key.places))][-1]
    return found


def find_records_in_order(
    table: pa.Table, groups: Groups, spec: MergeSpec, deletes: Mask
) -> tuple[Mask, Mapping[tuple[str, ...], GroupOrder]]:
    """Find which positions remove their row, and which are in order, by each group's sequence fields."""
    known = select_known_groups(table, spec)
    ranks = {g.sequence: _rank_records(table, groups, g) for g in known}
    removed = _find_removing_deletes([ranks[g.sequence] for g in known if g.removes], groups, deletes)
    return removed, {
        sequence: GroupOrder(rank.ranks == 0, _mask_in_order(rank, groups, removed)) for sequence, rank in ranks.items()
    }


def _rank_records(table: pa.Table, groups: Groups, group: SequenceGroup) -> _Ranked:
    order, parts = groups.order, []
    has_sequence = np.zeros(len(order), dtype=np.bool_)
    for name in group.sequence:
        column = combine_chunks([table[name]])[0].take(from_numpy(order))
        has_sequence |= read_validity(column)
        parts += to_key_parts(unify_zeros(column))
    ranks: Rows = np.where(has_sequence, _rank_keys(pack_keys(parts), len(order)) + 1, 0)
    return _Ranked(ranks, _find_nan_keys(table, groups, group.sequence))


def _find_nan_keys(table: pa.Table, groups: Grouping, sequence: Sequence[str]) -> list[NanKey]:
    columns = combine_chunks([table[name] for name in sequence])
    nans = mask_nan_rows(columns, table.num_rows)
    if nans is None:
        return []
    return find_nan_keys(columns, nans, groups.group_ids(), groups.gather(np.arange(table.num_rows)))


def _rank_keys(keys: list[KeyWord], rows: int) -> Rows:
    """Return small integers with the same order as the normalized keys."""
    if not keys:
        return np.zeros(rows, dtype=np.int64)
    if len(keys) == 1 and int(keys[0].max()).bit_length() + rows.bit_length() < _NUMBER_BITS:
        return keys[0].astype(np.int64)
    by_rank = argsort_keys(keys, rows)
    return number_keys_in_order(by_rank, mark_key_starts(keys, by_rank))


def _find_removing_deletes(ranks: Sequence[_Ranked], groups: Groups, deletes: Mask) -> Mask:
    """Find the -D records that remove the row: one at a time for each key, in all keys together."""
    removed = np.zeros(len(groups.order), dtype=np.bool_)
    numbers = groups.group_ids()
    while ranks:
        found = [_mask_in_order(rank, groups, removed) for rank in ranks]
        fresh = np.flatnonzero(np.logical_or.reduce(found) & deletes & ~removed)
        if len(fresh) == 0:
            break
        _, first = np.unique(numbers[fresh], return_index=True)
        removed[fresh[first]] = True
    return removed


def _mask_in_order(ranked: _Ranked, groups: Groups, removed: Mask) -> Mask:
    ranks = ranked.ranks
    span = int(ranks.max()) + 1
    segments = groups.group_ids() + np.cumsum(removed)
    running = np.maximum.accumulate(segments * span + ranks)
    before = np.empty(len(running), dtype=np.int64)
    before[1:] = running[:-1] - segments[:-1] * span
    before[groups.starts] = 0
    mask: Mask = (ranks > 0) & (ranks >= before)
    for key in ranked.nans:
        mask[key.places] = key.mask_in_order(removed[key.places])
    return mask


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
