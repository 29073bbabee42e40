"""Evaluate bound predicates on one row; `evaluate_columnar` does the same for many rows.

Invariant: The result follows SQL's three-valued logic. A property test holds `evaluate_columnar.evaluate` equal to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon.domain.columns.java_float_order import to_float_sort_key
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate


def matches(predicate: Predicate, row: Mapping[str, Any]) -> bool | None:
    """Return the truth value of a bound predicate for one row; None is SQL's unknown.

    `row` has internal values by column name. A ROW value is a mapping if the predicate names its fields, and a MAP is a
    list of pairs, of which the first one with a key counts.
    """
    match predicate:
        case Literal(value=value):
            return value
        case Compare(column=column, op=op, literal=literal):
            return _compare(_value(row, column), op, literal)
        case In(column=column, literals=literals, negated=negated):
            value = _value(row, column)
            found = None if value is None else _any_true(_compare(value, Operator.EQ, v) for v in literals)
            return _invert(found) if negated else found
        case Like(column=column, pattern=pattern, escape=escape, negated=negated):
            text = _value(row, column)
            return None if text is None else _like(text, pattern, escape) != negated
        case IsNull(column=column, negated=negated):
            return (_value(row, column) is None) != negated
        case And(children=children):
            return _invert(_any_true(_invert(matches(child, row)) for child in children))  # AND by De Morgan's law
        case Or(children=children):
            return _any_true(matches(child, row) for child in children)
        case Not(child=child):
            return _invert(matches(child, row))
    raise Unsupported(f"predicate {type(predicate).__name__}")


def _any_true(truths: Any) -> bool | None:
    known = list(truths)
    if True in known:
        return True
    return None if None in known else False


def _invert(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _value(row: Mapping[str, Any], name: str) -> Any:
    if name in row:
        return row[name]
    for column, value in row.items():
        if name.startswith(column + "."):
            return None if value is None else _value(value, name[len(column) + 1 :])
        if name.startswith(column + "[") and name.endswith("]"):
            pairs = value.items() if isinstance(value, Mapping) else value or ()
            return next((item for key, item in pairs if key == name[len(column) + 1 : -1]), None)
    raise InvalidRequest(f"Column {name!r} does not exist", subject=name)


def _compare(value: Any, op: Operator, literal: Any) -> bool | None:
    if value is None or literal is None:
        return None
    order = _compare_values(value, literal)
    return {
        Operator.EQ: order == 0,
        Operator.NE: order != 0,
        Operator.LT: order < 0,
        Operator.LE: order <= 0,
        Operator.GT: order > 0,
        Operator.GE: order >= 0,
    }[op]


def _compare_values(left: Any, right: Any) -> int:
    """Return a negative number, zero or a positive number, as `left` sorts before, equal to or after `right`."""
    a, b = _to_sort_key(left), _to_sort_key(right)
    return int(a > b) - int(a < b)


def _to_sort_key(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return to_float_sort_key(value)
    return value


def _like(text: str, pattern: str, escape: str | None) -> bool:
    """Return whether the pattern matches the whole text."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == escape:
        return text[:1] == rest[:1] and bool(text) and _like(text[1:], rest[1:], escape)
    if first == "%":
        return any(_like(text[n:], rest, escape) for n in range(len(text) + 1))
    return bool(text) and (first == "_" or first == text[0]) and _like(text[1:], rest, escape)
