"""Build predicates in Python: ``col("amount") > 10``, ``col("name").like("a%") & ~col("day").is_null()``.

Invariant: Each method creates exactly one node. Literals stay as given until `bind` knows the type of their column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import HOW_TO_COMBINE, And, Compare, In, IsNull, Like, Operator, Predicate
from paimon.domain.predicate.field_paths import name_key
from paimon.domain.text_checks import check_text

_PARENTHESES = (
    "& and | bind tighter than ==, so put each condition in parentheses: (col('a') == 1) & (col('b') == 2); "
    "compare a BOOLEAN column with True or False; " + HOW_TO_COMBINE
)


@frozen(eq=False)
class Column:
    """A column to build a comparison from; ``a.b`` names a field of a ROW column, ``col("m")["key"]`` a key of a MAP.

    Notes
    -----
    A column has no truth value, no hash and no members. Therefore ``col("id") and …``, ``not col("id")``,
    ``col("id") in {1, 2}`` and ``"a" in col("tags")`` raise `InvalidRequest` instead of dropping a condition.
    """

    name: str

    def __getitem__(self, key: str) -> Column:
        if not isinstance(key, str):
            raise self._misuse_error(f"has no key {key!r}, which is not a text", "write col('m')['key']")
        return Column(name_key(self.name, check_text(key, "key of a map")))

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
        raise self._misuse_error("cannot be looked up in a set or dict", "write col(...).isin([1, 2])")

    def __bool__(self) -> NoReturn:
        raise self._misuse_error("has no truth value", HOW_TO_COMBINE)

    def __contains__(self, item: object) -> NoReturn:
        raise self._misuse_error("is not a collection", "write col(...).contains(text) or col(...).isin([1, 2])")

    def __iter__(self) -> NoReturn:
        raise self._misuse_error("is not a collection", "write col(...).isin([1, 2])")

    def __and__(self, other: object) -> NoReturn:
        raise self._misuse_error("is not a condition", _PARENTHESES)

    __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __and__

    def __invert__(self) -> NoReturn:
        raise self._misuse_error("is not a condition", _PARENTHESES)

    def _misuse_error(self, how: str, hint: str) -> InvalidRequest:
        return InvalidRequest(f"Column {self.name!r} {how}", subject=self.name, hint=hint)

    def _compare(self, op: Operator, literal: Any) -> Predicate:
        if isinstance(literal, Column | Predicate):
            raise InvalidRequest(
                f"Column {self.name!r} cannot be compared with {literal!r}",
                subject=self.name,
                hint="compare a column with a value; filter rows by two columns after reading them",
            )
        return Compare(self.name, op, literal)

    def _to_literals(self, literals: object) -> tuple[Any, ...]:
        if isinstance(literals, str | bytes) or not isinstance(literals, Iterable):
            hint = "pass a list of values"
            raise InvalidRequest(
                f"Column {self.name!r} cannot be searched for in {literals!r}, which is not a list",
                subject=self.name,
                hint=hint,
            )
        return tuple(literals)

    def isin(self, literals: Iterable[Any]) -> Predicate:
        """Return the predicate that the value is one of the literals."""
        return In(self.name, self._to_literals(literals))

    def not_in(self, literals: Iterable[Any]) -> Predicate:
        """Return the predicate that the value is none of the literals."""
        return In(self.name, self._to_literals(literals), negated=True)

    def is_null(self) -> Predicate:
        """Return the predicate that the value is null."""
        return IsNull(self.name)

    def is_not_null(self) -> Predicate:
        """Return the predicate that the value is not null."""
        return IsNull(self.name, negated=True)

    def between(self, low: Any, high: Any) -> Predicate:
        """Return the predicate that the value is at least `low` and at most `high`."""
        return And((self >= low, self <= high))

    def like(self, pattern: str, escape: str | None = None) -> Predicate:
        """Return the predicate that the text matches a pattern: ``%`` is any text, ``_`` is one character."""
        return Like(self.name, pattern, escape)

    def startswith(self, text: str) -> Predicate:
        """Return the predicate that the text begins with `text`, in which ``%`` and ``_`` are ordinary characters."""
        return Like(self.name, _escape_like(text) + "%", "\\")

    def endswith(self, text: str) -> Predicate:
        """Return the predicate that the text ends with `text`, in which ``%`` and ``_`` are ordinary characters."""
        return Like(self.name, "%" + _escape_like(text), "\\")

    def contains(self, text: str) -> Predicate:
        """Return the predicate that the text contains `text`, in which ``%`` and ``_`` are ordinary characters."""
        return Like(self.name, "%" + _escape_like(text) + "%", "\\")


def _escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def col(name: str) -> Column:
    """Return a column of this name, from which comparisons are built.

    Raises
    ------
    InvalidRequest
        The name is not a text.

    Examples
    --------
    >>> from paimon import col
    >>> condition = (col("amount") > 10) & col("day").is_not_null()
    """
    return Column(check_text(name, "column name"))
