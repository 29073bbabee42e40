"""Predicates on rows as frozen trees.

Unbound predicates contain the literals that the caller gave. `bind` checks the columns and converts the literals to
internal values of the column types.

Invariant: A predicate has SQL's three truth values, and a row is selected only if the predicate is true. Floating
columns have Java's order: -0.0 < 0.0, and NaN is the largest value and equals itself.
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
"""Python's `and`, `or`, `not` and chained comparisons request a truth value, and then drop one of the conditions."""


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
    """Base class of all predicates; `&`, `|` and `~` combine them.

    A predicate has no truth value. Therefore ``p and q``, ``p or q``, ``not p``, ``1 < col("id") < 3`` and ``if p``
    raise `InvalidRequest`. Python would keep only one of the conditions.
    """

    def __and__(self, other: Predicate) -> Predicate:
        return And((*_list_parts(self, And), *_list_parts(_operand(other), And)))

    def __rand__(self, other: Predicate) -> Predicate:
        return _operand(other) & self

    def __or__(self, other: Predicate) -> Predicate:
        return Or((*_list_parts(self, Or), *_list_parts(_operand(other), Or)))

    def __ror__(self, other: Predicate) -> Predicate:
        return _operand(other) | self

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise InvalidRequest(f"Predicate {self!r} has no truth value", subject="predicate", hint=HOW_TO_COMBINE)


def _list_parts(predicate: Predicate, kind: type[And | Or]) -> tuple[Predicate, ...]:
    """Return the children of a chain, so that a chain of any length is one level deep."""
    return predicate.children if isinstance(predicate, kind) else (predicate,)


def _operand(other: object) -> Predicate:
    if isinstance(other, Predicate):
        return other
    raise InvalidRequest(
        f"A predicate cannot be combined with {other!r}, which is not a predicate",
        subject="predicate",
        hint=HOW_TO_COMBINE,
    )


@frozen
class Literal(Predicate):
    """A constant truth value; None is SQL's unknown."""

    value: bool | None


@frozen
class Compare(Predicate):
    """`column op literal`; unknown if the literal is null."""

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
    """`column [NOT] LIKE pattern`: ``%`` is any text, ``_`` a character, and `escape` quotes the next."""

    column: str
    pattern: str
    escape: str | None = None
    negated: bool = False


@frozen
class IsNull(Predicate):
    """`column IS [NOT] NULL`; never unknown."""

    column: str
    negated: bool = False


def _to_tuple(values: Iterable[Predicate]) -> tuple[Predicate, ...]:
    return tuple(values)


@frozen
class And(Predicate):
    """The conjunction of its children; true if there are none."""

    children: tuple[Predicate, ...] = field(converter=_to_tuple)


@frozen
class Or(Predicate):
    """The disjunction of its children; false if there are none."""

    children: tuple[Predicate, ...] = field(converter=_to_tuple)


@frozen
class Not(Predicate):
    """The negation of its child; unknown stays unknown."""

    child: Predicate

    def __invert__(self) -> Predicate:
        return self.child


@frozen
class ScalarSql:
    """A scalar SQL expression that an evaluator outside of the core computes, row by row."""

    # the text of the caller, for messages
    text: str
    # DuckDB SQL; columns are the identifiers "c0", "c1", ..., so that no name or value of a table becomes SQL
    sql: str
    # the columns, or the paths of nested fields, that these identifiers mean
    columns: tuple[str, ...]
    # whether `sql` already compares floating zeros as required; otherwise `bind` adds Java's order
    has_zero_order: bool = False
    # the zone of dates and times of day that `sql` computes of instants, and of texts that it converts to instants
    time_zone: str = field(default="UTC", kw_only=True)

    @property
    def kind(self) -> str:
        """What messages call it."""
        return "SQL expression"


@frozen
class SqlCondition(Predicate):
    """A scalar SQL expression whose value is a truth value; it prunes nothing."""

    expression: ScalarSql
    negated: bool = False


@frozen
class ForeignExpression(ScalarSql):
    """A condition of another library, which keeps its meaning there: that library evaluates it."""

    # "pyarrow" or "polars"
    library: str = "pyarrow"
    # in the form in which the library stores its expressions
    stored: bytes = field(default=b"", repr=False)
    # the names of `columns` in the stored form
    names: tuple[str, ...] = ()
    # a readable form of it, where the stored one is not
    tree: bytes = field(default=b"", repr=False)

    @property
    def kind(self) -> str:
        """What messages call it."""
        return f"{self.library} expression"


@frozen
class ForeignCondition(SqlCondition):
    """A condition of another library, with what it implies in the terms of this one: that part prunes."""

    # bound; None for every row
    implied: Predicate | None = None
    # what the negation implies
    implied_by_opposite: Predicate | None = None
