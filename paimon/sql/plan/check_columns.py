"""Check the columns of subqueries, because query engines report a wrong table for them.

DuckDB reports that the table of a subquery is unknown if a column does not exist and the subquery also names a column
of the outer query.

Invariant: only columns that certainly do not exist are refused. The engine checks all columns again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.field_paths import suggest_column
from paimon.sql.parse.query_tree import QueryTree

_OTHER_NAMES = (exp.Subquery, exp.CTE, exp.UDTF, exp.Pivot, exp.Lambda)
"""Nodes that give a name to something else than a table."""


def check_subquery_columns(tree: QueryTree, columns: Mapping[str, Sequence[str]]) -> None:
    """Check the columns that subqueries qualify with a table, against `columns` by table name in the tree."""
    if len(list(tree.find_all(exp.Select))) < 2:
        return
    known = _list_columns(tree, columns)
    for column in tree.find_all(exp.Column):
        if not isinstance(column.this, exp.Identifier) or len(column.parts) != 2:
            continue
        names = known.get(column.table.lower())
        if names is not None and column.name.lower() not in {name.lower() for name in names}:
            hint = suggest_column(column.name, names)
            message = f"Column {column.name!r} does not exist in this part of the query."
            raise InvalidRequest(message, subject=column.name, hint=hint)


def _list_columns(tree: QueryTree, columns: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return by alias the columns of all tables with this alias, without aliases that may mean something else."""
    found: dict[str, list[str]] = {}
    others = {name.lower() for names in columns.values() for name in names}  # the column may be a ROW
    others |= {node.alias.lower() for node in tree.find_all(*_OTHER_NAMES) if node.alias}
    for table in tree.find_all(exp.Table):
        alias = table.alias.lower()
        if table.name not in columns or table.args.get("pivots"):
            others.add(alias)
        else:
            found.setdefault(alias, []).extend(columns[table.name])
    return {alias: names for alias, names in found.items() if alias not in others}
