"""Expressions that an update assigns to a column: a value, another column, arithmetic on them, or scalar SQL.

An expression has no types. `evaluate_columnar` defines its value for a column.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum
from typing import Any

from attrs import evolve, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import ScalarSql
from paimon.domain.row.literals import parse_literal
from paimon.domain.types.data_types import DataField, DoubleType, FloatType
from paimon.domain.types.type_text import format_type

MOST_DIGITS = 76
"""Digits of exact numbers in arithmetic at most."""


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
class ColumnDefault(Expression):
    """The default of the column that is set; null if it has none."""


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
    """Return the expression with `rename` applied to each column name."""
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
        hint=f"write CAST(… AS {format_type(column.type.with_nullable(True))}), which rounds",
    )


def overflow_error(column: DataField, number: object) -> InvalidRequest:
    """Return the error for a number beyond the largest one of a column's type."""
    return InvalidRequest(
        f"Column {column.name!r} cannot be set: {number!r} does not fit {format_type(column.type)}",
        subject=column.name,
        hint="change the data, or the column's type",
    )


def read_constant(value: object, column: DataField) -> Any:
    """Return the internal value of a Python constant for a column; None is null."""
    if isinstance(column.type, FloatType):
        found = parse_literal(value, DoubleType())
        return None if found is None else to_single(found, column)
    return parse_literal(value, column.type)


def check_digits(number: float | Decimal) -> None:
    """Refuse an exact constant of arithmetic that is not finite or has too many digits; floats always pass."""
    if isinstance(number, float):
        return
    _, digits, exponent = Decimal(number).as_tuple()
    if not isinstance(exponent, int):
        raise InvalidRequest(f"{number!r} is not a finite number", subject=str(number))
    if max(len(digits) + max(exponent, 0), -exponent) > MOST_DIGITS:
        text = str(number)
        shown = text if len(text) <= 30 else f"{text[:30]}…"
        hint = "write a DOUBLE with an exponent between -307 and 307, such as 1.5e80"
        raise InvalidRequest(f"Number {shown} has more than {MOST_DIGITS} digits", subject=shown, hint=hint)


def to_single(number: float, column: DataField) -> float:
    """Round a number to single precision; refuse a number beyond its range. `column` is for the error."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise overflow_error(column, number) from None
