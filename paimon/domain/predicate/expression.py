"""Predicates over rows as frozen trees.

Law: a predicate has SQL's three truth values; a row is selected only where it is true. Unbound predicates hold the
literals that the user gave; `bind` checks columns and turns literals into internal values of their column's type.
Floating columns order as in Java: -0.0 < 0.0, NaN is the largest and equals itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, NoReturn

from attrs import field, frozen

from paimon.domain.errors import InvalidRequest

HOW_TO_COMBINE = (
    "combine conditions with & (and), | (or) and ~ (not), each condition in parentheses; "
    "write a range as col(...).between(low, high)"
)
"""Python's `and`, `or`, `not` and chained comparisons ask for a truth value and then drop one of the conditions."""


class Operator(Enum):
    """Comparison operators, by their SQL text."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@frozen
class Predicate:
    """Root of all predicates; `&`, `|` and `~` combine them.

    Notes
    -----
    A predicate has no truth value: ``p and q``, ``p or q``, ``not p``, ``1 < col("id") < 3`` and ``if p`` raise
    `InvalidRequest`, for Python would keep only one of the conditions.
    """

    def __and__(self, other: Predicate) -> Predicate:
        return And((self, _operand(other)))

    def __rand__(self, other: Predicate) -> Predicate:
        return And((_operand(other), self))

    def __or__(self, other: Predicate) -> Predicate:
        return Or((self, _operand(other)))

    def __ror__(self, other: Predicate) -> Predicate:
        return Or((_operand(other), self))

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise InvalidRequest(f"The predicate {self!r} has no truth value.", subject="predicate", hint=HOW_TO_COMBINE)


def _operand(other: object) -> Predicate:
    if isinstance(other, Predicate):
        return other
    raise InvalidRequest(
        f"A predicate cannot be combined with {other!r}, which is not a predicate.", subject="predicate",
        hint=HOW_TO_COMBINE,
    )


@frozen
class Literal(Predicate):
    """A constant truth value; None is SQL's unknown."""

    value: bool | None


@frozen
class Compare(Predicate):
    """`column op literal`; a null literal makes it unknown."""

    column: str
    op: Operator
    literal: Any


@frozen
class In(Predicate):
    """`column [NOT] IN (literals)`."""

    column: str
    literals: tuple[Any, ...] = field(converter=tuple)
    negated: bool = False


@frozen
class Like(Predicate):
    """`column [NOT] LIKE pattern`; `%` any text, `_` one character, `escape` quotes the next character."""

    column: str
    pattern: str
    escape: str | None = None
    negated: bool = False


@frozen
class IsNull(Predicate):
    """`column IS [NOT] NULL`; never unknown."""

    column: str
    negated: bool = False


def _children(values: Iterable[Predicate]) -> tuple[Predicate, ...]:
    return tuple(values)


@frozen
class And(Predicate):
    """All of them."""

    children: tuple[Predicate, ...] = field(converter=_children)


@frozen
class Or(Predicate):
    """Any of them."""

    children: tuple[Predicate, ...] = field(converter=_children)


@frozen
class Not(Predicate):
    """The opposite; unknown stays unknown."""

    child: Predicate
