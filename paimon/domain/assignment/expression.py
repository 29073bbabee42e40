"""What an update puts into a column: a value, another column, or arithmetic over those.

Law: an expression is a value and says nothing of types; what it means for a column is said once row by row
(`reference`) and once over columns (`columnar`).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.types.data_types import DataField
from paimon.domain.types.text import format_type


class Operation(Enum):
    """Arithmetic."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


@frozen
class Expression:
    """A node of an expression."""


@frozen
class Constant(Expression):
    """A value as the user gave it; a column's type says what it means."""

    value: Any


@frozen
class ColumnValue(Expression):
    """The value of another column of the row, as it was before the update."""

    name: str


@frozen
class Arithmetic(Expression):
    """Two numbers made into one."""

    operation: Operation
    left: Expression
    right: Expression


@frozen
class Assignment:
    """A column and what is put into it."""

    column: DataField
    expression: Expression


def columns_of(expression: Expression) -> Iterator[str]:
    """The columns that an expression reads."""
    match expression:
        case ColumnValue(name=name):
            yield name
        case Arithmetic(left=left, right=right):
            yield from columns_of(left)
            yield from columns_of(right)


def misfit(column: DataField) -> InvalidRequest:
    """The refusal of a number that a column cannot hold."""
    return InvalidRequest(
        f"column {column.name!r} cannot be set to this number: it does not fit {format_type(column.type)}",
        subject=column.name,
    )
