"""Compute the rows and the changelog of a compaction, row by row: the reference of `compaction_changelog_columnar`.

Invariant: each key that a new record reaches has a change, which depends on its row before and after:

| before | after | changes |
|---|---|---|
| no row | a row | +I after |
| no row | no row | - |
| a row | no row | -D before |
| a row | another row | -U before, +U after |
| a row | an equal row, and `changelog-producer.row-deduplicate` | - |

A retract counts as no row. For lookups, new records are those of level 0. They pass through the engine, also as
singletons, together with the row before. A key without a new record keeps its newest record. First-row keeps the row
before, and drops what is above the output. For full compactions, new records are those below the top level. Where a
file only moves, Java reports what the engine would make of its records. This library reports the records themselves,
because they are what is stored.

Source: `LookupChangelogMergeFunctionWrapper`, `FirstRowMergeFunctionWrapper`, `FullChangelogMergeFunctionWrapper`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve

from paimon.domain.changelog.compaction_changelog_rules import ChangeRules
from paimon.domain.changelog.difference_reference import is_equal_value
from paimon.domain.merge.merge_reference import apply_engine, group_by_key, merge
from paimon.domain.merge.record import Record
from paimon.domain.row.kinds import RowKind

Find = Callable[[Record], Record | None]
"""Returns the newest record above the output with the same key as the given record, if any."""


def compact_records(records: Sequence[Record], find: Find, rules: ChangeRules) -> tuple[list[Record], list[Record]]:
    """Merge compacted records and derive their changes, both by key; `find` looks up older ones."""
    rows: list[Record] = []
    changes: list[Record] = []
    for group in group_by_key(records, rules.spec):
        row, key_changes = _compact_key(group, find, rules)
        rows += [] if row is None else [row]
        changes += key_changes if rules.writes_changelog else []
    return rows, changes


def _compact_key(group: Sequence[Record], find: Find, rules: ChangeRules) -> tuple[Record | None, list[Record]]:
    if rules.top_level is not None:
        top = [r for r in group if r.level == rules.top_level]
        after = next(iter(merge(group, rules.spec)), None)
        return after, derive_key_changes(top[-1] if top else None, after, rules) if len(top) < len(group) else []
    if rules.oldest_wins:
        return _first_row(group, find, rules)
    above = sorted((r for r in group if r.level > 0), key=lambda r: r.level)
    if len(above) == len(group):
        return above[0], []
    before = above[0] if above else find(group[0])
    if before is not None and not above:
        (group,) = group_by_key([*group, before], rules.spec)
    after = group[0] if rules.only_moves_file and len(group) == 1 else apply_engine(group, rules.spec)
    return after, derive_key_changes(before, after, rules)


def _first_row(group: Sequence[Record], find: Find, rules: ChangeRules) -> tuple[Record | None, list[Record]]:
    if any(r.level > 0 for r in group):
        return next(iter(merge(group, rules.spec)), None), []
    if find(group[0]) is not None:
        return None, []
    after = group[0] if rules.only_moves_file and len(group) == 1 else apply_engine(group, rules.spec)
    return after, derive_key_changes(None, after, rules)


def derive_key_changes(before: Record | None, after: Record | None, rules: ChangeRules) -> list[Record]:
    """Return the changes of one key: none, one or two records, with their row kinds."""
    was = before if before is not None and before.is_add else None
    now = after if after is not None and after.is_add else None
    if was is None:
        return [] if now is None else [evolve(now, kind=RowKind.INSERT)]
    if now is None:
        return [evolve(was, kind=RowKind.DELETE)]
    if rules.skips_equal and _is_equal_row(was, now, rules):
        return []
    return [evolve(was, kind=RowKind.UPDATE_BEFORE), evolve(now, kind=RowKind.UPDATE_AFTER)]


def _is_equal_row(was: Record, now: Record, rules: ChangeRules) -> bool:
    counted = [f.name for f in rules.spec.fields if f.name not in rules.ignored]
    return all(is_equal_value(was.values[name], now.values[name]) for name in counted)
