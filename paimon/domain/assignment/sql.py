"""Parse assignment expressions from SQL text: ``"amount * 2 + fee"``, ``"'shipped'"``, ``"DATE '2026-01-01'"``.

Importing this module loads the SQL parser. Import it only where there is text to parse.

Invariant: The text has the meaning that it has in SQL, so a text value needs quotes. DEFAULT is a value only alone.
Other scalar SQL (functions, CASE, CAST) becomes a `ScalarSql`. Subqueries and aggregates are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from paimon.domain.assignment.expression import (
    Arithmetic,
    ColumnDefault,
    ColumnValue,
    Constant,
    Expression,
    Operation,
    SqlValue,
)
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.field_paths import DEFAULT
from paimon.domain.predicate.scalar_sql import convert_or_wrap, to_scalar_sql
from paimon.domain.predicate.sql import PredicateDialect, column_path, literal_value, parse_sql

HINT = "use a scalar SQL expression: a number, 'text', TRUE, NULL, columns, arithmetic, CASE, CAST, or a function"

_OPERATIONS: Mapping[type[exp.Expression], Operation] = {
    exp.Add: Operation.ADD,
    exp.Sub: Operation.SUBTRACT,
    exp.Mul: Operation.MULTIPLY,
    exp.Div: Operation.DIVIDE,
}


def parse_expression(text: str) -> Expression:
    """Parse the SQL of an expression; Unsupported for a subquery, an aggregate, or more than one row."""
    return parse_sql(text, "expression", HINT, convert_expression)


def convert_expression(node: exp.Expression) -> Expression:
    """Return the expression of a syntax tree."""
    is_plain_word = isinstance(node, exp.Column) and len(node.parts) == 1 and not node.this.args.get("quoted")
    if is_plain_word and node.name.upper() == DEFAULT:
        return ColumnDefault()
    return convert_or_wrap(node, _convert, lambda other: SqlValue(to_scalar_sql(other)))


def _convert(node: exp.Expression) -> Expression:
    match node:
        case exp.Paren(this=inner):
            return _convert(inner)
        case exp.Column() | exp.Identifier():
            return ColumnValue(column_path(node))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return Arithmetic(_OPERATIONS[type(node)], _convert(node.this), _convert(node.expression))
        case exp.Neg(this=inner) if not isinstance(inner, exp.Literal):
            return Arithmetic(Operation.SUBTRACT, Constant(0), _convert(inner))
        case exp.Literal() | exp.Neg() | exp.Boolean() | exp.Null() | exp.HexString() | exp.Cast():
            return Constant(literal_value(node))
    text = node.sql(dialect=PredicateDialect)
    raise InvalidRequest(f"Expression {text!r} cannot be assigned to a column", subject=text, hint=HINT)
