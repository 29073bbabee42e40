"""Predicates written in Python: ``col("amount") > 10``, ``col("name").like("a%") & ~col("day").is_null()``.

Law: each method makes exactly one node; literals stay as given until `bind` knows their column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import (
    HOW_TO_COMBINE,
    And,
    Compare,
    In,
    IsNull,
    Like,
    Operator,
    Predicate,
)
from paimon.domain.texts import check_text

_PARENTHESES = (
    "& and | bind tighter than ==, so put each condition in parentheses: (col('a') == 1) & (col('b') == 2); "
    "compare a BOOLEAN column with True or False; " + HOW_TO_COMBINE
)


@frozen(eq=False)
class Column:
    """A column that is about to be compared; `a.b` names a field of a ROW column.

    Notes
    -----
    A column has no truth value, no hash and no members, so ``col("id") and …``, ``not col("id")``,
    ``col("id") in {1, 2}`` and ``"a" in col("tags")`` raise `InvalidRequest` instead of dropping a condition.
    """

    name: str

    def __eq__(self, literal: object) -> Predicate:  # type: ignore[override]
        return self._compare(Operator.EQ, literal)

    def __ne__(self, literal: object) -> Predicate:  # type: ignore[override]
        return self._compare(Operator.NE, literal)

    def __lt__(self, literal: Any) -> Predicate:
        return self._compare(Operator.LT, literal)

    def __le__(self, literal: Any) -> Predicate:
        return self._compare(Operator.LE, literal)

    def __gt__(self, literal: Any) -> Predicate:
        return self._compare(Operator.GT, literal)

    def __ge__(self, literal: Any) -> Predicate:
        return self._compare(Operator.GE, literal)

    def __hash__(self) -> NoReturn:
        raise self._misused("cannot be looked up in a set or dict", "write col(...).isin([1, 2])")

    def __bool__(self) -> NoReturn:
        raise self._misused("has no truth value", HOW_TO_COMBINE)

    def __contains__(self, item: object) -> NoReturn:
        raise self._misused("is not a collection", "write col(...).contains(text) or col(...).isin([1, 2])")

    def __iter__(self) -> NoReturn:
        raise self._misused("is not a collection", "write col(...).isin([1, 2])")

    def __and__(self, other: object) -> NoReturn:
        raise self._misused("is not a condition", _PARENTHESES)

    __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __and__

    def __invert__(self) -> NoReturn:
        raise self._misused("is not a condition", _PARENTHESES)

    def _misused(self, how: str, hint: str) -> InvalidRequest:
        return InvalidRequest(f"Column {self.name!r} {how}.", subject=self.name, hint=hint)

    def _compare(self, op: Operator, literal: Any) -> Predicate:
        if isinstance(literal, Column | Predicate):
            raise InvalidRequest(
                f"column {self.name!r} is compared with {literal!r}", subject=self.name,
                hint="a column compares with a value; filter rows by two columns after reading them",
            )
        return Compare(self.name, op, literal)

    def _list(self, literals: object) -> tuple[Any, ...]:
        if isinstance(literals, str | bytes) or not isinstance(literals, Iterable):
            hint = "give a list of values"
            raise InvalidRequest(f"column {self.name!r} is looked for in {literals!r}", subject=self.name, hint=hint)
        return tuple(literals)

    def isin(self, literals: Iterable[Any]) -> Predicate:
        """Whether the value is one of these."""
        return In(self.name, self._list(literals))

    def not_in(self, literals: Iterable[Any]) -> Predicate:
        """Whether the value is none of these."""
        return In(self.name, self._list(literals), negated=True)

    def is_null(self) -> Predicate:
        """Whether the value is null."""
        return IsNull(self.name)

    def is_not_null(self) -> Predicate:
        """Whether the value is not null."""
        return IsNull(self.name, negated=True)

    def between(self, low: Any, high: Any) -> Predicate:
        """Whether the value is at least `low` and at most `high`."""
        return And((self >= low, self <= high))

    def like(self, pattern: str, escape: str | None = None) -> Predicate:
        """Whether the text fits the pattern: `%` any text, `_` one character."""
        return Like(self.name, pattern, escape)

    def startswith(self, text: str) -> Predicate:
        """Whether the text begins so; `%` and `_` are ordinary characters here."""
        return Like(self.name, _quoted(text) + "%", "\\")

    def endswith(self, text: str) -> Predicate:
        """Whether the text ends so."""
        return Like(self.name, "%" + _quoted(text), "\\")

    def contains(self, text: str) -> Predicate:
        """Whether the text occurs in it."""
        return Like(self.name, "%" + _quoted(text) + "%", "\\")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def col(name: str) -> Column:
    """The column of this name, to be compared."""
    return Column(check_text(name, "column name"))
