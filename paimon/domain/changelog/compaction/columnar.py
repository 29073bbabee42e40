"""What a compaction makes of its records, and what it tells, on columns.

Law: equals `reference.compacted`, window by window: a window holds each of its keys whole. Source:
`LookupChangelogMergeFunctionWrapper`, `FirstRowMergeFunctionWrapper`, `FullChangelogMergeFunctionWrapper`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon.domain.changelog.compaction.rules import FIRST_ROW, ChangeRules
from paimon.domain.changelog.difference.same import same_rows
from paimon.domain.merge.columnar.merge import taking_part
from paimon.domain.merge.columnar.ordering.order import Groups, Mask, Rows, groups_of, restricted, retracts
from paimon.domain.merge.columnar.ordering.words import concatenated
from paimon.domain.merge.registry import engine_of
from paimon.domain.row.kinds import RowKind
from paimon.domain.types.system import LEVEL, VALUE_KIND

_NONE = np.iinfo(np.int64).max


class Window(NamedTuple):
    """Records that hold each of their keys whole, with their `_LEVEL`, in merge order."""

    table: pa.Table
    groups: Groups


class Found(NamedTuple):
    """Records above the output, and which of the keys asked for they are of; columns as the rules need them."""

    rows: pa.Table
    asked: Rows


class Compacted(NamedTuple):
    """Merged rows (retracts included) and changes, both ascending by key, with `_SEQUENCE_NUMBER`, `_VALUE_KIND`."""

    rows: pa.Table
    changes: pa.Table


def window_of(table: pa.Table, rules: ChangeRules) -> Window:
    """A window of these records."""
    whole = table.combine_chunks()
    return Window(whole, groups_of(whole, rules.spec))


def keys_to_find(window: Window, rules: ChangeRules) -> pa.Table:
    """The keys, ascending, of which the window has no record above level 0."""
    rows = window.groups.order[window.groups.starts[_without_above(window)]]
    return window.table.select(rules.spec.key_names).take(pa.array(rows))


def compacted(window: Window, found: Found | None, rules: ChangeRules) -> Compacted:
    """Merge a window; `found` answers `keys_to_find`, None where nothing was looked for."""
    if rules.top_level is not None:
        low = _smallest(window, above=-1)
        return _merged(window, _rows_of_level(window, rules.top_level), low < rules.top_level, rules)
    if rules.spec.engine == FIRST_ROW:
        return _first_row(window, found, rules)
    if found is not None and found.rows.num_rows:
        joined = pa.concat_tables([window.table, found.rows.select(window.table.column_names)])
        window = window_of(joined, rules)
    reached = _smallest(window, above=-1) == 0
    lone = window.groups.lone & rules.moves | ~reached  # the engine sees new records, lone too, unless they only move
    window = Window(window.table, window.groups._replace(lone=lone))
    return _merged(window, _rows_of_level(window, _smallest(window, above=0)), reached, rules)


def _first_row(window: Window, found: Found | None, rules: ChangeRules) -> Compacted:
    new = _without_above(window)
    keep = np.ones(len(new), dtype=np.bool_)
    if found is not None:
        keep[np.flatnonzero(new)[found.asked]] = False
    groups = restricted(window.groups, keep[window.groups.of_row()])
    groups = groups if rules.moves else groups._replace(lone=groups.lone & ~new[keep])
    return _merged(Window(window.table, groups), np.full(keep.sum(), -1), new[keep], rules)


def _levels(window: Window) -> Rows:
    """The level of each place in merge order."""
    (levels,) = concatenated([window.table[LEVEL.name]])
    return np.asarray(levels).astype(np.int64)[window.groups.order]


def _smallest(window: Window, above: int) -> Rows:
    """The smallest level above another one, group by group; a very large number where there is none."""
    levels = _levels(window)
    if len(levels) == 0:
        return levels
    return np.minimum.reduceat(np.where(levels > above, levels, _NONE), window.groups.starts)


def _without_above(window: Window) -> Mask:
    mask: Mask = _smallest(window, above=0) == _NONE
    return mask


def _rows_of_level(window: Window, level: Rows | int) -> Rows:
    """The record of each group that is of its level; -1 where there is none."""
    numbers = window.groups.of_row()
    wanted = np.broadcast_to(np.asarray(level), len(window.groups.starts))[numbers]
    hit = _levels(window) == wanted
    rows = np.full(len(window.groups.starts), -1, dtype=np.int64)
    rows[numbers[hit]] = window.groups.order[hit]
    return rows


def _merged(window: Window, before: Rows, reached: Mask, rules: ChangeRules) -> Compacted:
    """The groups through the engine; `before`: the row of each group that was there, `reached`: by a new record."""
    table, groups = window
    visible = taking_part(groups, table, rules.spec)
    bare = table.drop_columns([LEVEL.name])
    if len(visible.order) == 0:
        return Compacted(bare.slice(0, 0), bare.slice(0, 0))
    rows = engine_of(rules.spec).columnar(bare, visible, rules.spec).combine_chunks()
    if not rules.tells:
        return Compacted(rows, bare.slice(0, 0))
    group_of = np.empty(table.num_rows, dtype=np.int64)
    group_of[groups.order] = groups.of_row()
    after = np.full(len(groups.starts), -1, dtype=np.int64)
    after[group_of[visible.order[visible.starts]]] = np.arange(rows.num_rows)
    return Compacted(rows, _changes(bare, _adds(before, bare), rows, _adds(after, rows), reached, rules))


def _adds(rows: Rows, table: pa.Table) -> Rows:
    """The row numbers; -1 for those of retracts."""
    gone = np.append(retracts(table), False)
    return np.where(gone[rows], -1, rows)


def _changes(
    old: pa.Table, before: Rows, new: pa.Table, after: Rows, reached: Mask, rules: ChangeRules
) -> pa.Table:
    """What is told of each group, whose row was `old[before]` and is `new[after]` (-1: nothing)."""
    was, now = reached & (before >= 0), reached & (after >= 0)
    both = was & now
    if rules.skips_equal and both.any():
        counted = [f.name for f in rules.spec.fields if f.name not in rules.ignored]
        one, other = (t.select(counted).take(pa.array(r[both])) for t, r in ((old, before), (new, after)))
        same = np.zeros(len(both), dtype=np.bool_)
        same[both] = same_rows(one, other) if counted else True
        was, now, both = was & ~same, now & ~same, both & ~same
    gone, come = np.flatnonzero(was), np.flatnonzero(now)
    kinds = np.concatenate([
        np.where(both[gone], RowKind.UPDATE_BEFORE, RowKind.DELETE),
        np.where(both[come], RowKind.UPDATE_AFTER, RowKind.INSERT),
    ]).astype(np.int8)
    told = pa.concat_tables([old.take(pa.array(before[gone])), new.take(pa.array(after[come]))])
    at = told.schema.get_field_index(VALUE_KIND.name)
    told = told.set_column(at, told.schema.field(at), pa.array(kinds))
    order = np.argsort(np.concatenate([gone, come]), kind="stable")
    return told.combine_chunks().take(pa.array(order))
