"""Send the condition and the limit of a planned scan to the tasks, as JSON in an option of the data source.

Invariant: decoding returns an equal predicate. A condition with other parts than the planner of SQL makes is not sent.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Not, Operator, Or, Predicate

_VALUES: Mapping[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bool": (bool, bool, bool),
    "int": (int, int, int),
    "text": (str, str, str),
    "decimal": (Decimal, str, Decimal),
    "date": (datetime.date, str, datetime.date.fromisoformat),
}
"""Kinds of literals: their type, and how they are written and read."""


def encode_predicate(predicate: Predicate) -> list[Any] | None:
    """Return a predicate as a value of JSON; None where it has a part that is not sent."""
    match predicate:
        case And() | Or():
            parts = [encode_predicate(child) for child in predicate.children]
            return None if None in parts else ["and" if isinstance(predicate, And) else "or", *parts]
        case Not():
            inner = encode_predicate(predicate.child)
            return None if inner is None else ["not", inner]
        case Compare():
            value = _encode_value(predicate.literal)
            return None if value is None else ["compare", predicate.column, predicate.op.name, value]
        case In():
            values = [_encode_value(literal) for literal in predicate.literals]
            return None if None in values else ["in", predicate.column, values, predicate.negated]
        case Like():
            return ["like", predicate.column, predicate.pattern, predicate.escape, predicate.negated]
        case IsNull():
            return ["null", predicate.column, predicate.negated]
    return None


def decode_predicate(value: list[Any]) -> Predicate:
    """Return the predicate of `encode_predicate`."""
    kind, *parts = value
    match kind:
        case "and":
            return And(tuple(decode_predicate(part) for part in parts))
        case "or":
            return Or(tuple(decode_predicate(part) for part in parts))
        case "not":
            return Not(decode_predicate(parts[0]))
        case "compare":
            return Compare(parts[0], Operator[parts[1]], _decode_value(parts[2]))
        case "in":
            return In(parts[0], tuple(_decode_value(literal) for literal in parts[1]), parts[2])
        case "like":
            return Like(*parts)
    return IsNull(*parts)


def _encode_value(value: Any) -> list[Any] | None:
    for name, (kind, write, _) in _VALUES.items():
        if type(value) is kind:
            return [name, write(value)]
    return None


def _decode_value(value: list[Any]) -> Any:
    return _VALUES[value[0]][2](value[1])
