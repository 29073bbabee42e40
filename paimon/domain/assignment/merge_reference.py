"""Merge a source into a target row by row: the reference for `merge_columnar` and for the operations on it.

Invariant: a row of the source matches a row of the target if each pair of columns is equal, as predicates compare
them (null equals nothing, NaN equals NaN), and the remaining condition is true. Two matches of one row are refused if
there is a clause for matched rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paimon.domain.assignment.evaluate_reference import evaluate_assignment
from paimon.domain.assignment.merge_clauses import SOURCE, TARGET, BoundMerge, MergeAction, MergeClause
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import Compare, Operator

Row = Mapping[str, Any]


class MergedRows(NamedTuple):
    """The rows after a merge, and the number of rows that were inserted, updated and deleted."""

    # the remaining rows of the target in order, then the inserted rows in the order of the source
    rows: list[Row]
    inserted: int
    updated: int
    deleted: int


def merge_rows(target: Sequence[Row], source: Sequence[Row], merge: BoundMerge) -> MergedRows:
    """Merge source into target rows of internal values; InvalidRequest if two match one row."""
    rows: list[Row] = []
    counts = dict.fromkeys(MergeAction, 0)
    matched_sources: set[int] = set()
    for old in target:
        found = [n for n, new in enumerate(source) if _is_match(old, new, merge)]
        if len(found) > 1 and merge.matched:
            raise InvalidRequest(f"Rows {found[:2]} of the source match one row of the target")
        matched_sources.update(found)
        view = {**_name_columns(TARGET, old), **(_name_columns(SOURCE, source[found[0]]) if found else {})}
        clause = _find_clause(merge.matched if found else merge.not_matched_by_source, view)
        if clause is None:
            rows.append(old)
            continue
        counts[clause.action] += 1
        if clause.action is MergeAction.UPDATE:
            rows.append({**old, **_compute_values(clause, view)})
    empty = dict.fromkeys(target[0] if target else ())
    for number, new in enumerate(source):
        view = _name_columns(SOURCE, new)
        clause = None if number in matched_sources else _find_clause(merge.not_matched, view)
        if clause is not None:
            counts[clause.action] += 1
            rows.append({**empty, **_compute_values(clause, view)})
    return MergedRows(rows, counts[MergeAction.INSERT], counts[MergeAction.UPDATE], counts[MergeAction.DELETE])


def _is_match(old: Row, new: Row, merge: BoundMerge) -> bool:
    for target, source in merge.on.pairs:
        if new[source] is None or matches(Compare(target, Operator.EQ, new[source]), old) is not True:
            return False
    view = {**_name_columns(TARGET, old), **_name_columns(SOURCE, new)}
    return merge.on.condition is None or matches(merge.on.condition, view) is True


def _name_columns(side: str, row: Row) -> dict[str, Any]:
    return {f"{side}.{name}": value for name, value in row.items()}


def _find_clause(clauses: Sequence[MergeClause], view: Row) -> MergeClause | None:
    return next((c for c in clauses if c.condition is None or matches(c.condition, view) is True), None)


def _compute_values(clause: MergeClause, view: Row) -> dict[str, Any]:
    return {a.column.name: evaluate_assignment(a.expression, view, a.column) for a in clause.assignments}
