"""Predicates over columns whose nulls are shown as a default.

Law: of a row as it is stored the rewritten predicate is true, false or unknown exactly as the predicate itself is of
the row as it is shown; so whatever skips by stored values (statistics, indexes) needs to know of no default.
Source: `DefaultValueAssigner` (0.9), which gives up such predicates instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Or, Predicate
from paimon.domain.predicate.reference import matches
from paimon.domain.predicate.transform import unknown_kind


def over_stored(predicate: Predicate, defaults: Mapping[str, Any]) -> Predicate:
    """The same of stored rows; `defaults` are internal values by column, none of them null."""
    if not defaults:
        return predicate
    match predicate:
        case Compare(column=column) | In(column=column) | Like(column=column) | IsNull(column=column):
            return _leaf(predicate, column, defaults[column]) if column in defaults else predicate
        case And(children=children):
            return And(tuple(over_stored(child, defaults) for child in children))
        case Or(children=children):
            return Or(tuple(over_stored(child, defaults) for child in children))
        case Not(child=child):
            return Not(over_stored(child, defaults))
        case Literal():
            return predicate
    raise unknown_kind(predicate)


def _leaf(predicate: Predicate, column: str, default: Any) -> Predicate:
    truth = matches(predicate, {column: default})
    if isinstance(predicate, IsNull):
        return Literal(truth)
    if truth is None:  # nothing is known of any value then
        return predicate
    return Or((predicate, IsNull(column))) if truth else And((predicate, IsNull(column, negated=True)))
