"""Find the columns that a query reads of each of its tables, and check those of subqueries.

Invariant: no column is missing. A name that occurs anywhere in the query selects the column of this name in all tables.
The check refuses only columns that certainly do not exist; the engine checks all columns again. DuckDB reports that the
table of a subquery is unknown if a column does not exist and the subquery also names a column of the outer query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.field_paths import suggest_column
from paimon.sql.parse.query_tree import QueryTree

_NAMES = ("Columns", "Pivot", "PositionalColumn")
_READS_ALL = tuple(getattr(exp, name) for name in _NAMES if hasattr(exp, name))
"""Nodes that may read columns without naming them; older parsers refuse `#1`, for which they have no node."""
_OTHER_NAMES = (exp.Subquery, exp.CTE, exp.UDTF, exp.Pivot, exp.Lambda)
"""Nodes that give a name to something else than a table."""


def find_columns(tree: QueryTree, columns: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the columns that each table must give, in the order of the table; at least one, even to count rows."""
    used = {node.name.lower() for node in tree.find_all(exp.Identifier, exp.Var)}
    everything = tree.has(*_READS_ALL) or any(
        str(join.args.get("method") or "").upper() == "NATURAL" for join in tree.find_all(exp.Join)
    )
    starred = _find_starred_tables(tree)
    rows_as_values = {column.name.lower() for column in tree.find_all(exp.Column)}
    found: dict[str, tuple[str, ...]] = {}
    for node in tree.find_all(exp.Table):
        names = columns.get(node.name)
        if names is None:
            continue
        if everything or None in starred or node.name in starred or node.alias.lower() in rows_as_values:
            found[node.name] = tuple(names)
        else:
            needed = tuple(name for name in names if name.lower() in used)
            found[node.name] = needed or tuple(names[:1])
    return found


def _find_starred_tables(tree: QueryTree) -> set[str | None]:
    """Return the tables whose columns a star lists; None means all of them."""
    found: set[str | None] = set()
    for star in tree.find_all(exp.Star):
        parent = star.parent
        if isinstance(parent, exp.Count):
            continue
        scope = star.find_ancestor(exp.Select)
        if scope is None or not isinstance(parent, exp.Select | exp.Column):
            return {None}
        if parent is scope and _is_existence_test(scope):
            continue
        alias = parent.table.lower() if isinstance(parent, exp.Column) else None
        # A qualified star may name a table of an outer query, so its alias is looked up in the whole tree.
        inside = tree.find_all(exp.Table) if alias else tree.tables_of(scope)
        found |= {table.name for table in inside if alias in (None, table.alias.lower())}
    return found


def _is_existence_test(scope: exp.Select) -> bool:
    """Return whether a SELECT is that of EXISTS, whose columns do not matter."""
    others = ("distinct", "group", "having", "qualify", "order")
    return isinstance(scope.parent, exp.Exists) and not any(scope.args.get(name) for name in others)


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
