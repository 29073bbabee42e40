"""Parse conditions that may contain any scalar SQL expression.

Importing this module loads the SQL parser. Import it only where there is text to parse.

Invariant: what `parse_predicate` reads keeps its meaning and prunes files. Each other conjunct becomes a `ScalarSql`,
in which columns are numbered identifiers. Subqueries, aggregates, windows and lambdas are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.expression import Predicate, ScalarSql, SqlCondition
from paimon.domain.predicate.sql import PredicateDialect, column_path, convert_predicate, parse_sql
from paimon.domain.predicate.transform import join_conjuncts

T = TypeVar("T")
HINT = "a condition is a scalar SQL expression over columns, such as upper(name) = 'X' AND amount > 2 * fee"
_REFUSED: tuple[tuple[type[exp.Expression] | tuple[type[exp.Expression], ...], str], ...] = (
    ((exp.Query, exp.Subquery, exp.SubqueryPredicate), "a subquery"),
    (exp.AggFunc, "an aggregate function"),
    (exp.Window, "a window function"),
    (exp.Lambda, "a lambda"),
    ((exp.UDTF, exp.Unnest, exp.Explode), "a function that returns several rows"),
    ((exp.Placeholder, exp.Parameter, exp.SessionParameter), "a parameter"),
    ((exp.Star, exp.Alias, exp.Table, exp.Command, exp.DDL, exp.DML), "more than an expression"),
)
"""Syntax nodes that are not part of a scalar expression over one row."""


def parse_condition(text: str) -> Predicate:
    """Return the unbound predicate of a SQL text.

    Raises
    ------
    InvalidRequest
        The text is not valid SQL.
    Unsupported
        The text contains a subquery, an aggregate, or something else that is not computed from one row.
    """
    return parse_sql(text, "condition", HINT, convert_condition)


def convert_condition(node: exp.Expression) -> Predicate:
    """Return the predicate of a syntax tree; a conjunct that is no plain predicate becomes a scalar expression."""
    return join_conjuncts(_convert_conjunct(part) for part in split_conjunction(node))


def split_conjunction(node: exp.Expression) -> list[exp.Expression]:
    """Return the operands of AND in a syntax tree, in order; chains can be long, so this does not recurse."""
    parts, rest = [], [node]
    while rest:
        current = rest.pop()
        if isinstance(current, exp.Paren):
            rest.append(current.this)
        elif isinstance(current, exp.And):
            rest += [current.expression, current.this]
        else:
            parts.append(current)
    return parts


def _convert_conjunct(node: exp.Expression) -> Predicate:
    return convert_or_wrap(node, convert_predicate, lambda other: SqlCondition(to_scalar_sql(other)))


def convert_or_wrap(
    node: exp.Expression, convert: Callable[[exp.Expression], T], wrap: Callable[[exp.Expression], T]
) -> T:
    """Convert a syntax tree with the core's own rules; wrap one that they refuse and that contains more than values.

    Parameters
    ----------
    node : exp.Expression
        The syntax tree.
    convert : callable
        The core's own rules; raises InvalidRequest for other expressions.
    wrap : callable
        Wraps any scalar expression.

    Returns
    -------
    T
        The result of one of them.

    Raises
    ------
    InvalidRequest
        The expression is a value that the core knows, and that is wrong here.
    """
    try:
        return convert(node)
    except InvalidRequest:
        if isinstance(node, exp.Literal):
            raise
        return wrap(node)


def to_scalar_sql(node: exp.Expression) -> ScalarSql:
    """Convert the syntax tree of a scalar expression.

    Parameters
    ----------
    node : exp.Expression
        The syntax tree; it is not changed.

    Returns
    -------
    ScalarSql
        The expression with numbered columns.

    Raises
    ------
    Unsupported
        The tree contains a node that is not computed from one row.
    """
    text = node.sql(dialect=PredicateDialect)
    for kinds, what in _REFUSED:
        if node.find(*(kinds if isinstance(kinds, tuple) else (kinds,))) is not None:
            raise Unsupported(f"SQL expression {text!r}, which contains {what}", hint=HINT)
    columns: list[str] = []

    def number_column(part: exp.Expression) -> exp.Expression:
        """Return the numbered identifier of a column; other nodes as they are."""
        path = _find_path(part)
        if path is None:
            return part
        if path not in columns:
            columns.append(path)
        return exp.column(exp.to_identifier(f"c{columns.index(path)}", quoted=True))

    numbered = node.transform(number_column)
    return ScalarSql(text, numbered.sql(dialect=DuckDB, comments=False), tuple(columns))


def _find_path(node: exp.Expression) -> str | None:
    """Return the name of a column, or the path of a nested field; None for any other node."""
    base = node
    while isinstance(base, exp.Dot):
        base = base.this
    if not isinstance(base, exp.Column) or isinstance(base.this, exp.Star):
        return None
    try:
        return column_path(node)
    except InvalidRequest:  # a method call on a column, such as a.f(x)
        return None
