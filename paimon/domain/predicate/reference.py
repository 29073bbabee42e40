"""Predicates over one row, written to be read.

Law: SQL's three-valued logic, word by word; `columnar.evaluate` is held equal to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate


def matches(predicate: Predicate, row: Mapping[str, Any]) -> bool | None:
    """The truth value of a bound predicate for a row of internal values; None is unknown.

    A ROW value is a mapping where the predicate names its fields.
    """
    match predicate:
        case Literal(value=value):
            return value
        case Compare(column=column, op=op, literal=literal):
            return _compare(_value(row, column), op, literal)
        case In(column=column, literals=literals, negated=negated):
            if _value(row, column) is None:
                return None
            return _invert(_any(_compare(_value(row, column), Operator.EQ, v) for v in literals), negated)
        case Like(column=column, pattern=pattern, escape=escape, negated=negated):
            text = _value(row, column)
            return None if text is None else _like(text, pattern, escape) != negated
        case IsNull(column=column, negated=negated):
            return (_value(row, column) is None) != negated
        case And(children=children):
            return _invert(_any(_invert(matches(child, row)) for child in children))
        case Or(children=children):
            return _any(matches(child, row) for child in children)
        case Not(child=child):
            return _invert(matches(child, row))
    raise Unsupported(f"predicate {type(predicate).__name__}")


def _any(truths: Any) -> bool | None:
    known = list(truths)
    if True in known:
        return True
    return None if None in known else False


def _invert(truth: bool | None, wanted: bool = True) -> bool | None:
    return truth if truth is None or not wanted else not truth


def _value(row: Mapping[str, Any], name: str) -> Any:
    if name in row:
        return row[name]
    for column, value in row.items():
        if name.startswith(column + "."):
            return None if value is None else _value(value, name[len(column) + 1 :])
    raise InvalidRequest(f"there is no column {name!r}", subject=name)


def _compare(value: Any, op: Operator, literal: Any) -> bool | None:
    if value is None or literal is None:
        return None
    order = _order(value, literal)
    return {
        Operator.EQ: order == 0,
        Operator.NE: order != 0,
        Operator.LT: order < 0,
        Operator.LE: order <= 0,
        Operator.GT: order > 0,
        Operator.GE: order >= 0,
    }[op]


def _order(left: Any, right: Any) -> int:
    """Negative, zero or positive, as left lies before, at or after right."""
    a, b = _sortable(left), _sortable(right)
    return int(a > b) - int(a < b)


def _sortable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        is_nan = value != value
        negative_zero = value == 0 and str(value).startswith("-")
        return (is_nan, 0.0 if is_nan else value, not negative_zero)
    return value


def _like(text: str, pattern: str, escape: str | None) -> bool:
    """Whether the pattern, read from its start, fits the whole text."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == escape:
        return text[:1] == rest[:1] and bool(text) and _like(text[1:], rest[1:], escape)
    if first == "%":
        return any(_like(text[n:], rest, escape) for n in range(len(text) + 1))
    return bool(text) and (first == "_" or first == text[0]) and _like(text[1:], rest, escape)
