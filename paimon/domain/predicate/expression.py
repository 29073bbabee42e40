"""Predicates over rows as frozen trees.

Law: a predicate has SQL's three truth values; a row is selected only where it is true. Unbound predicates hold the
literals that the user gave; `bind` checks columns and turns literals into internal values of their column's type.
Floating columns order as in Java: -0.0 < 0.0, NaN is the largest and equals itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from attrs import field, frozen


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
    """Root of all predicates; `&`, `|` and `~` combine them."""

    def __and__(self, other: Predicate) -> Predicate:
        return And((self, other))

    def __or__(self, other: Predicate) -> Predicate:
        return Or((self, other))

    def __invert__(self) -> Predicate:
        return Not(self)


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
