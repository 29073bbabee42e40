"""Expressions that an update assigns to a column: a value, another column, arithmetic on them, or scalar SQL.

An expression has no types. `evaluate_reference` and `evaluate_columnar` define its value for a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from attrs import evolve, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import ScalarSql
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import format_type


class Operation(Enum):
    """The arithmetic operators, by their SQL text."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


@frozen
class Expression:
    """Base class of the nodes of an expression."""


@frozen
class Constant(Expression):
    """A value as the caller gave it; the column type defines its meaning."""

    value: Any


@frozen
class ColumnValue(Expression):
    """The value of a column of the same row before the update."""

    name: str


@frozen
class Arithmetic(Expression):
    """An arithmetic operation on two numbers."""

    operation: Operation
    left: Expression
    right: Expression


@frozen
class SqlValue(Expression):
    """A scalar SQL expression that an evaluator outside of the core computes."""

    expression: ScalarSql


@frozen
class Assignment:
    """A column and the expression that it is set to."""

    column: DataField
    expression: Expression


def columns_of(expression: Expression) -> Iterator[str]:
    """Yield the names of the columns that an expression reads."""
    match expression:
        case ColumnValue(name=name):
            yield name
        case Arithmetic(left=left, right=right):
            yield from columns_of(left)
            yield from columns_of(right)
        case SqlValue(expression=scalar):
            yield from scalar.columns


def map_columns(expression: Expression, rename: Callable[[str], str]) -> Expression:
    """Return the expression with each name of a column replaced.

    Parameters
    ----------
    expression : Expression
        The expression.
    rename : callable
        Takes a name and returns the name that replaces it.

    Returns
    -------
    Expression
        The same expression over other names.
    """
    match expression:
        case ColumnValue(name=name):
            return ColumnValue(rename(name))
        case Arithmetic(left=left, right=right):
            return evolve(expression, left=map_columns(left, rename), right=map_columns(right, rename))
        case SqlValue(expression=scalar):
            return SqlValue(evolve(scalar, columns=tuple(rename(name) for name in scalar.columns)))
    return expression


def misfit_error(column: DataField) -> InvalidRequest:
    """Return the error for a number that a column cannot hold."""
    return InvalidRequest(
        f"Column {column.name!r} cannot be set: the number does not fit {format_type(column.type)}",
        subject=column.name,
    )
