"""Which records are in order within their sequence groups, on columns.

Law: a record is in order if its sequence fields are not all null and not smaller than what the group holds; what it
holds is the largest so far, or what a record that removed the row left. The zeros are one; for NaN see `nan_standings`.
Twin: `paimon.domain.merge.reference.partial_update`. Source: `PartialUpdateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon.domain.columns.stored import validity
from paimon.domain.merge.columnar.nan_standings import NanKey, nan_keys
from paimon.domain.merge.columnar.ordering.arrival import Grouping
from paimon.domain.merge.columnar.ordering.largest import largest_place
from paimon.domain.merge.columnar.ordering.order import Groups, Mask, Rows, one_zero, sorted_rows
from paimon.domain.merge.columnar.ordering.words import Words, concatenated, packed, parts_of
from paimon.domain.merge.sequence_groups import SequenceGroup
from paimon.domain.merge.spec import MergeSpec

_NUMBER_BITS = 61
"""Bits for a rank and a number of segments side by side."""


class _Ranked(NamedTuple):
    """By place: how a record ranks in a group, 0 where it says nothing of it; and the keys that have no ranks."""

    ranks: Rows
    nans: list[NanKey]


class Standing(NamedTuple):
    """By place in merge order: whether a record says nothing of a group, and whether it is in order."""

    empty: Mask
    in_order: Mask


def known_groups(table: pa.Table, spec: MergeSpec) -> list[SequenceGroup]:
    """The groups whose sequence fields the table has: of the others nobody asked for a column."""
    names = {*table.column_names}
    return [g for g in spec.sequence_groups if names.issuperset(g.sequence)]


def largest_standing(table: pa.Table, groups: Grouping, group: SequenceGroup) -> Rows:
    """Where nothing retracts: the place of the last record in order, key by key; -1 where none says anything.

    A key that came as a single record has that one.
    """
    columns = [one_zero(column) for column in concatenated([table[name] for name in group.sequence])]
    words = [groups.placed(word) for word in packed(part for column in columns for part in parts_of(column))]
    said = groups.lone[groups.of_row()]
    for column in columns:
        said |= groups.placed(validity(column))
    found = largest_place(words, groups.of_row(), groups.key_count, None if said.all() else said)
    for key in nan_keys(table, groups, group.sequence):
        found[key.number] = key.places[key.in_order([False] * len(key.places))][-1]
    return found


def standings(
    table: pa.Table, groups: Groups, spec: MergeSpec, deletes: Mask
) -> tuple[Mask, Mapping[tuple[str, ...], Standing]]:
    """Which records remove the row, and by sequence fields the standing of all records."""
    known = known_groups(table, spec)
    ranks = {g.sequence: _ranked(table, groups, g) for g in known}
    removed = _removed([ranks[g.sequence] for g in known if g.removes], groups, deletes)
    return removed, {
        sequence: Standing(rank.ranks == 0, _in_order(rank, groups, removed)) for sequence, rank in ranks.items()
    }


def _ranked(table: pa.Table, groups: Groups, group: SequenceGroup) -> _Ranked:
    order, parts = groups.order, []
    said = np.zeros(len(order), dtype=np.bool_)
    for name in group.sequence:
        column = concatenated([table[name]])[0].take(pa.array(order))
        said |= validity(column)
        parts += parts_of(one_zero(column))
    ranks: Rows = np.where(said, _numbers(packed(parts), len(order)) + 1, 0)
    return _Ranked(ranks, nan_keys(table, groups, group.sequence))


def _numbers(words: list[Words], rows: int) -> Rows:
    """Small numbers that order as the words do."""
    if not words:
        return np.zeros(rows, dtype=np.int64)
    if len(words) == 1 and int(words[0].max()).bit_length() + rows.bit_length() < _NUMBER_BITS:
        return words[0].astype(np.int64)
    by_rank = sorted_rows(words, rows)
    change = np.zeros(rows, dtype=np.bool_)
    for word in words:
        change[1:] |= word[by_rank[1:]] != word[by_rank[:-1]]
    ranks = np.empty(rows, dtype=np.int64)
    ranks[by_rank] = np.cumsum(change)
    return ranks


def _removed(ranks: Sequence[_Ranked], groups: Groups, deletes: Mask) -> Mask:
    """The -D records that are in order in a group that removes: found one after another, in all keys at once."""
    removed = np.zeros(len(groups.order), dtype=np.bool_)
    numbers = groups.of_row()
    while ranks:
        found = [_in_order(rank, groups, removed) for rank in ranks]
        fresh = np.flatnonzero(np.logical_or.reduce(found) & deletes & ~removed)
        if len(fresh) == 0:
            break
        _, first = np.unique(numbers[fresh], return_index=True)
        removed[fresh[first]] = True
    return removed


def _in_order(ranked: _Ranked, groups: Groups, removed: Mask) -> Mask:
    ranks = ranked.ranks
    span = int(ranks.max()) + 1
    segments = groups.of_row() + np.cumsum(removed)
    running = np.maximum.accumulate(segments * span + ranks)
    held = np.empty(len(running), dtype=np.int64)
    held[1:] = running[:-1] - segments[:-1] * span
    held[groups.starts] = 0
    mask: Mask = (ranks > 0) & (ranks >= held)
    for key in ranked.nans:
        mask[key.places] = key.in_order(removed[key.places])
    return mask
