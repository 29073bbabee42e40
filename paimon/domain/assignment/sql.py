"""Expressions from SQL text: ``"amount * 2 + fee"``, ``"'shipped'"``, ``"DATE '2026-01-01'"``.

Law: text is SQL as it is in a predicate, so a text value stands in quotes; what else SQL has (functions, subqueries,
CASE) is refused with a hint. This module loads the SQL parser: import it only where there is text to parse.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from paimon.domain.assignment.expression import Arithmetic, ColumnValue, Constant, Expression, Operation
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.sql import PredicateDialect, column_path, literal_value, understood

HINT = "a column is set to a number, 'text', TRUE, NULL, another column, or sums and products of them with + - * /"

_OPERATIONS: Mapping[type[exp.Expression], Operation] = {
    exp.Add: Operation.ADD,
    exp.Sub: Operation.SUBTRACT,
    exp.Mul: Operation.MULTIPLY,
    exp.Div: Operation.DIVIDE,
}


def parse_expression(text: str) -> Expression:
    """The expression that the text says.

    Raises
    ------
    InvalidRequest
        Where the text is not SQL, or asks for more than values, columns and arithmetic.
    """
    return understood(text, "expression", HINT, _expression)


def _expression(node: exp.Expression) -> Expression:
    match node:
        case exp.Paren(this=inner):
            return _expression(inner)
        case exp.Column() | exp.Identifier():
            return ColumnValue(column_path(node))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return Arithmetic(_OPERATIONS[type(node)], _expression(node.this), _expression(node.expression))
        case exp.Neg(this=inner) if not isinstance(inner, exp.Literal):
            return Arithmetic(Operation.SUBTRACT, Constant(0), _expression(inner))
        case exp.Literal() | exp.Neg() | exp.Boolean() | exp.Null() | exp.HexString() | exp.Cast():
            return Constant(literal_value(node))
    text = node.sql(dialect=PredicateDialect)
    raise InvalidRequest(f"{text!r} cannot be put into a column", subject=text, hint=HINT)
