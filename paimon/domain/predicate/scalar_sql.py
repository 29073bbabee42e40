"""Parse conditions that may contain any scalar SQL expression.

Importing this module loads the SQL parser. Import it only where there is text to parse.

Invariant: what `parse_predicate` reads keeps its meaning and prunes files. Each other conjunct becomes a `ScalarSql`,
in which columns are numbered identifiers. Subqueries, aggregates, windows and lambdas are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sqlglot
from attrs import evolve
from sqlglot import exp

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.expression import Predicate, ScalarSql, SqlCondition
from paimon.domain.predicate.sql import InvalidLiteral, PredicateDialect, column_path, convert_predicate, parse_sql
from paimon.domain.predicate.transform import join_conjuncts

T = TypeVar("T")
_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In),
)
HINT = "a condition is a scalar SQL expression over columns, such as upper(name) = 'X' AND amount > 2 * fee"
_REFUSED: tuple[tuple[type[exp.Expression] | tuple[type[exp.Expression], ...], str], ...] = (
    ((exp.Query, exp.Subquery), "a subquery"),
    (exp.AggFunc, "an aggregate function"),
    (exp.Window, "a window function"),
    ((exp.Lambda, exp.Comprehension), "a lambda or a list comprehension"),
    ((exp.UDTF, exp.Unnest, exp.Explode), "a function that returns several rows"),
    ((exp.Placeholder, exp.Parameter, exp.SessionParameter), "a parameter"),
    ((exp.Star, exp.Alias, exp.Table, exp.Command, exp.DDL, exp.DML), "more than an expression"),
)
"""Syntax nodes that are not part of a scalar expression over one row."""


def parse_condition(text: str) -> Predicate:
    """Return the predicate of a SQL text; Unsupported for a subquery, an aggregate, or several rows."""
    return parse_sql(text, "condition", HINT, convert_condition)


def parse_scalar_condition(text: str, has_zero_order: bool = False) -> SqlCondition:
    """Return the unbound condition of a SQL text, all of which is evaluated as scalar SQL."""
    expression = parse_sql(text, "condition", HINT, to_scalar_sql)
    return SqlCondition(evolve(expression, has_zero_order=has_zero_order))


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
    """Convert a tree, or wrap what `convert` refuses; a refused literal or invalid date is not wrapped."""
    try:
        return convert(node)
    except InvalidRequest as error:
        if isinstance(node, exp.Literal) or isinstance(error, InvalidLiteral):
            raise
        return wrap(node)


def to_scalar_sql(node: exp.Expression) -> ScalarSql:
    """Convert a scalar tree to SQL with numbered columns; Unsupported for nodes of several rows."""
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
    return ScalarSql(text, numbered.sql(dialect=PredicateDialect, comments=False), tuple(columns))


# Columns compare -0.0 < 0.0, as Java's predicates do, while SQL engines compare -0.0 = 0.0. So `order_zeros` adds the
# signs to each comparison:
#
#     a = b     a = b AND is_negative(a) = is_negative(b)
#     a < b     a < b OR (a = b AND is_negative(a) AND NOT is_negative(b))
#
# The other comparisons are made of these two. CASE with an operand and NULLIF also compare, and are written as CASE
# with a comparison before.
def order_zeros(expression: ScalarSql) -> ScalarSql:
    """Return an expression whose comparisons put -0.0 below 0.0.

    `_is_negative` looks at the text of a value, because the types of operands are not known here. Of other types, equal
    values have the same sign, so nothing changes for them.
    """
    if expression.has_zero_order:
        return expression
    root = exp.paren(sqlglot.parse_one(expression.sql, dialect=PredicateDialect)).transform(_sign_zero)
    root = root.transform(_write_out_equality)
    for comparison in reversed(list(root.find_all(*_COMPARISONS))):  # inner ones first
        comparison.replace(exp.paren(_order_comparison(comparison)))
    return evolve(expression, sql=root.sql(dialect=PredicateDialect), has_zero_order=True)


def _sign_zero(node: exp.Expression) -> exp.Expression:
    """Return a literal -0.0 as DOUBLE: as a DECIMAL, it would have no sign."""
    inner = node.this if isinstance(node, exp.Neg) else None
    is_zero = isinstance(inner, exp.Literal) and not inner.is_string and not inner.is_int and not float(inner.name)
    return exp.cast(exp.Literal.string("-0.0"), "DOUBLE") if is_zero else node


def _write_out_equality(node: exp.Expression) -> exp.Expression:
    """Return a CASE with an operand, or a NULLIF, as a CASE with comparisons."""
    match node:
        case exp.Case(this=exp.Expression() as operand):
            branches = [(_compare(exp.EQ, operand, part.this), part.args["true"]) for part in node.args["ifs"]]
            default = node.args.get("default")
        case exp.Nullif():
            branches, default = [(_compare(exp.EQ, node.this, node.expression), exp.null())], node.this
        case _:
            return node
    parts = [exp.If(this=condition, true=value.copy()) for condition, value in branches]
    return exp.Case(ifs=parts, default=None if default is None else default.copy())


def _order_comparison(node: exp.Expression) -> exp.Expression:
    left, right = node.this, node.args.get("expression")
    match node:
        case exp.EQ() | exp.NullSafeEQ():
            return _equal(type(node), left, right)
        case exp.NEQ():
            return exp.not_(exp.paren(_equal(exp.EQ, left, right)))
        case exp.NullSafeNEQ():
            return exp.not_(exp.paren(_equal(exp.NullSafeEQ, left, right)))
        case exp.LT():
            return _less(left, right)
        case exp.GT():
            return _less(right, left)
        case exp.GTE():
            return exp.not_(exp.paren(_less(left, right)))
        case exp.LTE():
            return exp.not_(exp.paren(_less(right, left)))
        case exp.Between():
            outside = exp.or_(exp.paren(_less(left, node.args["low"])), exp.paren(_less(node.args["high"], left)))
            return exp.not_(exp.paren(outside))
    values = node.expressions
    return exp.or_(*(exp.paren(_equal(exp.EQ, left, value)) for value in values)) if values else node.copy()


def _equal(operator: type[exp.Expression], left: exp.Expression, right: exp.Expression) -> exp.Expression:
    signs = operator(this=_is_negative(left), expression=_is_negative(right))
    return exp.and_(_compare(operator, left, right), signs)


def _less(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    zeros = exp.and_(_compare(exp.EQ, left, right), _is_negative(left), exp.not_(_is_negative(right)))
    return exp.or_(_compare(exp.LT, left, right), exp.paren(zeros))


def _compare(operator: type[exp.Expression], left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return operator(this=exp.paren(left.copy()), expression=exp.paren(right.copy()))


def _is_negative(value: exp.Expression) -> exp.Expression:
    text = exp.cast(exp.paren(value.copy()), "VARCHAR")
    unsigned_nan = exp.func("replace", text, exp.Literal.string("-nan"), exp.Literal.string("nan"))
    return exp.func("starts_with", unsigned_nan, exp.Literal.string("-"))


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
