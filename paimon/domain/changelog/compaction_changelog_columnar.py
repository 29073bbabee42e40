"""Compute the rows and the changelog of a compaction, on columns.

Invariant: equals `paimon.domain.changelog.compaction_changelog_reference`, window by window. A window holds all records
of each of its keys.

Source: `LookupChangelogMergeFunctionWrapper`, `FirstRowMergeFunctionWrapper`, `FullChangelogMergeFunctionWrapper`.
"""

# The changelog of a compaction says what it changes for a reader: the row of each key before, and after. Records on
# level 0 are new; a reader of the changelog has not seen them. For one key, and the producer `lookup`:
#
#     level   record        before = the record of the smallest level above 0: v 5
#       0     +U  v 7       after  = the merge of all visible records:         v 7
#       3     +I  v 5       changes: -U v 5, +U v 7
#
# 1. A window has all records of its keys in the files that are compacted. Where none of them is above level 0
#    (`select_keys_to_find`), the caller looks the key up in the levels above the output, and passes what it `found`.
# 2. `_find_rows_of_level` returns the row before. For `full-compaction` it is the record of the top level, and every
#    key with a record below the top is new. With first-row, a key that was found is left out, since the old row stays.
# 3. The merge engine makes the row after. A single new record must pass through it, too (a -D alone is no row), so
#    `singletons` are switched off for keys with new records, unless their file only changes its level.
# 4. `_changes` compares both: only before: -D; only after: +I; both: -U and +U, or nothing if they are equal and
#    `changelog-producer.row-deduplicate` is set. Retracts count as no row. Changes ascend by key, -U before +U.
#
# The old records of a key that has no new ones are in the window because their file overlaps; they give no change.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon.domain.changelog.compaction_changelog_rules import ChangeRules
from paimon.domain.changelog.equal_rows import mask_equal_rows
from paimon.domain.merge.merge_columnar import restrict_to_visible
from paimon.domain.merge.merge_engines import get_merge_engine
from paimon.domain.merge.ordering.merge_order import (
    Groups,
    Mask,
    Rows,
    group_rows_by_key,
    mask_retracts,
    restrict_groups,
)
from paimon.domain.merge.ordering.normalized_keys import combine_chunks
from paimon.domain.row.kinds import RowKind
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.system_columns import LEVEL, VALUE_KIND

_NONE = np.iinfo(np.int64).max


class Window(NamedTuple):
    """All records of some keys, with their `_LEVEL`, and their order by key and age."""

    table: pa.Table
    groups: Groups


class Found(NamedTuple):
    """Records of higher levels that a lookup found; `key_positions` refers to `select_keys_to_find`."""

    rows: pa.Table
    key_positions: Rows


class Compacted(NamedTuple):
    """Merged rows (retracts included) and changes, both ascending by key, with `_SEQUENCE_NUMBER` and `_VALUE_KIND`."""

    rows: pa.Table
    changes: pa.Table


def build_window(table: pa.Table, rules: ChangeRules) -> Window:
    """Return a window of records, ordered by key and age."""
    whole = table.combine_chunks()
    return Window(whole, group_rows_by_key(whole, rules.spec))


def select_keys_to_find(window: Window, rules: ChangeRules) -> pa.Table:
    """Return the keys, ascending, of which the window has no record above level 0."""
    rows = window.groups.order[window.groups.starts[_mask_keys_without_above(window)]]
    return window.table.select(rules.spec.key_names).take(from_numpy(rows))


def compact_window(window: Window, found: Found | None, rules: ChangeRules) -> Compacted:
    """Merge a window, and derive its changes if `rules` say so; `found` is None without a lookup."""
    if rules.top_level is not None:
        low = _find_smallest_levels(window, above=-1)
        return _merge_groups(window, _find_rows_of_level(window, rules.top_level), low < rules.top_level, rules)
    if rules.oldest_wins:
        return _first_row(window, found, rules)
    if found is not None and found.rows.num_rows:
        joined = pa.concat_tables([window.table, found.rows.select(window.table.column_names)])
        window = build_window(joined, rules)
    return _merge_by_lookup(window, rules)


def _merge_by_lookup(window: Window, rules: ChangeRules) -> Compacted:
    """Merge a window that holds the records above the output, too."""
    has_new_records = _find_smallest_levels(window, above=-1) == 0
    # New records pass through the engine, also singletons, unless their file only moves.
    singletons = window.groups.singletons & rules.only_moves_file | ~has_new_records
    window = Window(window.table, window.groups._replace(singletons=singletons))
    before = _find_rows_of_level(window, _find_smallest_levels(window, above=0))
    return _merge_groups(window, before, has_new_records, rules)


def _first_row(window: Window, found: Found | None, rules: ChangeRules) -> Compacted:
    new = _mask_keys_without_above(window)
    keep = np.ones(len(new), dtype=np.bool_)
    if found is not None:
        keep[np.flatnonzero(new)[found.key_positions]] = False
    groups = restrict_groups(window.groups, keep[window.groups.group_ids()])
    groups = groups if rules.only_moves_file else groups._replace(singletons=groups.singletons & ~new[keep])
    return _merge_groups(Window(window.table, groups), np.full(keep.sum(), -1), new[keep], rules)


def _levels(window: Window) -> Rows:
    """Return the level of each position in merge order."""
    (levels,) = combine_chunks([window.table[LEVEL.name]])
    return to_numpy(levels).astype(np.int64)[window.groups.order]


def _find_smallest_levels(window: Window, above: int) -> Rows:
    """Return the smallest level of each group that is larger than `above`; a very large number where there is none."""
    levels = _levels(window)
    if len(levels) == 0:
        return levels
    return np.minimum.reduceat(np.where(levels > above, levels, _NONE), window.groups.starts)


def _mask_keys_without_above(window: Window) -> Mask:
    mask: Mask = _find_smallest_levels(window, above=0) == _NONE
    return mask


def _find_rows_of_level(window: Window, level: Rows | int) -> Rows:
    """Return the row number of the record of each group on a level; -1 where there is none."""
    numbers = window.groups.group_ids()
    wanted = np.broadcast_to(np.asarray(level), len(window.groups.starts))[numbers]
    hit = _levels(window) == wanted
    rows = np.full(len(window.groups.starts), -1, dtype=np.int64)
    rows[numbers[hit]] = window.groups.order[hit]
    return rows


def _merge_groups(window: Window, before: Rows, reached: Mask, rules: ChangeRules) -> Compacted:
    """Merge the groups; `before` is each row before the compaction, `reached` marks groups with new records."""
    table, groups = window
    visible = restrict_to_visible(groups, table, rules.spec)
    bare = table.drop_columns([LEVEL.name])
    if len(visible.order) == 0:
        return Compacted(bare.slice(0, 0), bare.slice(0, 0))
    rows = get_merge_engine(rules.spec).columnar(bare, visible, rules.spec).combine_chunks()
    if not rules.writes_changelog:
        return Compacted(rows, bare.slice(0, 0))
    group_of = np.empty(table.num_rows, dtype=np.int64)
    group_of[groups.order] = groups.group_ids()
    after = np.full(len(groups.starts), -1, dtype=np.int64)
    after[group_of[visible.order[visible.starts]]] = np.arange(rows.num_rows)
    return Compacted(
        rows, _changes(bare, _drop_retracts(before, bare), rows, _drop_retracts(after, rows), reached, rules)
    )


def _drop_retracts(rows: Rows, table: pa.Table) -> Rows:
    """Return the row numbers, with -1 for retracts."""
    gone = np.append(mask_retracts(table), False)
    return np.where(gone[rows], -1, rows)


def _changes(old: pa.Table, before: Rows, new: pa.Table, after: Rows, reached: Mask, rules: ChangeRules) -> pa.Table:
    """Return the changes of each group, whose row was `old[before]` and is `new[after]` (-1: no row)."""
    was, now = reached & (before >= 0), reached & (after >= 0)
    both = was & now
    if rules.skips_equal and both.any():
        counted = [f.name for f in rules.spec.fields if f.name not in rules.ignored]
        one, other = (t.select(counted).take(from_numpy(r[both])) for t, r in ((old, before), (new, after)))
        same = np.zeros(len(both), dtype=np.bool_)
        same[both] = mask_equal_rows(one, other) if counted else True
        was, now, both = was & ~same, now & ~same, both & ~same
    gone, come = np.flatnonzero(was), np.flatnonzero(now)
    kinds = np.concatenate(
        [
            np.where(both[gone], RowKind.UPDATE_BEFORE, RowKind.DELETE),
            np.where(both[come], RowKind.UPDATE_AFTER, RowKind.INSERT),
        ]
    ).astype(np.int8)
    changes = pa.concat_tables([old.take(from_numpy(before[gone])), new.take(from_numpy(after[come]))])
    at = changes.schema.get_field_index(VALUE_KIND.name)
    changes = changes.set_column(at, changes.schema.field(at), from_numpy(kinds))
    order = np.argsort(np.concatenate([gone, come]), kind="stable")
    return changes.combine_chunks().take(from_numpy(order))
