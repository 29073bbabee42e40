"""Conditions and new values of columns as callers give them: computed late, as SQL text, or as Python values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from paimon.domain.assignment.expression import Constant, Expression
from paimon.domain.predicate.expression import Predicate


@frozen(eq=False)
class LateInput(Predicate):
    """A condition or new value that is computed from tables, again for each attempt to change rows."""

    compute: Callable[[], Any]


def compute_late_input(given: Any) -> Any:
    """Return a condition or new value; what is computed late is computed now."""
    return given.compute() if isinstance(given, LateInput) else given


def to_expression(value: Any) -> Expression:
    """Convert the new value of a column to an expression: text is parsed as SQL, other values are constants."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        from paimon.domain.assignment.sql import parse_expression  # loads the parser only for text

        return parse_expression(value)
    return Constant(value)
