"""What a compaction makes of its records, and what it tells, row by row: the specification of `columnar`.

Law: a change is told of a key that a new record reached, by what its row was before and what it is after:

| before | after | told |
|---|---|---|
| nothing | a row | +I after |
| nothing | nothing | - |
| a row | nothing | -D before |
| a row | another row | -U before, +U after |
| a row | an equal row, and equal rows are skipped | - |

A retract is nothing. For lookups, new records are those of level 0: they go through the engine, a lone one too, and the
row before takes part; a key that they do not reach keeps its newest record; first-row keeps what it has, and drops
what lies above. For full compactions, new records are those below the top level. Java tells of a file that only moves
what the engine would make of its records; here what they hold is told, because that is what stays. Source:
`LookupChangelogMergeFunctionWrapper`, `FirstRowMergeFunctionWrapper`, `FullChangelogMergeFunctionWrapper`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve

from paimon.domain.changelog.compaction.rules import FIRST_ROW, ChangeRules
from paimon.domain.changelog.difference.reference import same_value
from paimon.domain.merge.reference.merge import by_key, merge, through_engine
from paimon.domain.merge.reference.record import Record
from paimon.domain.row.kinds import RowKind

Find = Callable[[Record], Record | None]
"""The newest record above the output of the same key as the given one."""


def compacted(records: Sequence[Record], find: Find, rules: ChangeRules) -> tuple[list[Record], list[Record]]:
    """The merged records (retracts included) and the changes, both ascending by key."""
    rows: list[Record] = []
    changes: list[Record] = []
    for group in by_key(records, rules.spec):
        row, told = _of_key(group, find, rules)
        rows += [] if row is None else [row]
        changes += told if rules.tells else []
    return rows, changes


def _of_key(group: Sequence[Record], find: Find, rules: ChangeRules) -> tuple[Record | None, list[Record]]:
    if rules.top_level is not None:
        top = [r for r in group if r.level == rules.top_level]
        after = next(iter(merge(group, rules.spec)), None)
        return after, told(top[-1] if top else None, after, rules) if len(top) < len(group) else []
    if rules.spec.engine == FIRST_ROW:
        return _first_row(group, find, rules)
    above = sorted((r for r in group if r.level > 0), key=lambda r: r.level)
    if len(above) == len(group):
        return above[0], []
    before = above[0] if above else find(group[0])
    if before is not None and not above:
        (group,) = by_key([*group, before], rules.spec)
    after = group[0] if rules.moves and len(group) == 1 else through_engine(group, rules.spec)
    return after, told(before, after, rules)


def _first_row(group: Sequence[Record], find: Find, rules: ChangeRules) -> tuple[Record | None, list[Record]]:
    if any(r.level > 0 for r in group):
        return next(iter(merge(group, rules.spec)), None), []
    if find(group[0]) is not None:
        return None, []
    after = group[0] if rules.moves and len(group) == 1 else through_engine(group, rules.spec)
    return after, told(None, after, rules)


def told(before: Record | None, after: Record | None, rules: ChangeRules) -> list[Record]:
    """The change of one key."""
    was = before if before is not None and before.is_add else None
    now = after if after is not None and after.is_add else None
    if was is None:
        return [] if now is None else [evolve(now, kind=RowKind.INSERT)]
    if now is None:
        return [evolve(was, kind=RowKind.DELETE)]
    if rules.skips_equal and _same(was, now, rules):
        return []
    return [evolve(was, kind=RowKind.UPDATE_BEFORE), evolve(now, kind=RowKind.UPDATE_AFTER)]


def _same(was: Record, now: Record, rules: ChangeRules) -> bool:
    counted = [f.name for f in rules.spec.fields if f.name not in rules.ignored]
    return all(same_value(was.values[name], now.values[name]) for name in counted)
