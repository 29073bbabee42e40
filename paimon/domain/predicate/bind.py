"""Predicates bound to a schema: every column exists, every literal is an internal value of its column's type.

Law: a bound predicate means what the unbound one means over the numbers, texts and times themselves: a literal that
the column cannot hold is no error but an answer (``small_int > 3.5`` is ``small_int > 3``, ``small_int = 3.5`` is
never true, and still unknown for null). A literal of another kind is InvalidRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate
from paimon.domain.predicate.terms.fit import Beyond, Fit, fit
from paimon.domain.predicate.terms.like import parts_of
from paimon.domain.predicate.terms.paths import type_at
from paimon.domain.predicate.transform import unknown_kind
from paimon.domain.texts import check_text
from paimon.domain.types.data_types import CHARACTER_TYPES, NESTED_TYPES, BlobType, DataField, DataType, VariantType

_INCOMPARABLE = (*NESTED_TYPES, VariantType, BlobType)


def bind(predicate: Predicate, fields: Sequence[DataField]) -> Predicate:
    """The bound predicate; columns are named as given, also nested (``a.b``).

    Raises
    ------
    InvalidRequest
        For an unknown column (with the nearest name), a literal of another kind, LIKE on what is no text.
    """
    match predicate:
        case Compare(column=column, op=op, literal=value):
            return _compare(column, op, value, _comparable(column, fields))
        case In(column=column):
            return _in(predicate, _comparable(column, fields))
        case Like(column=column):
            return _like(predicate, type_at(column, fields))
        case IsNull(column=column):
            type_at(column, fields)
            return predicate
        case And(children=children):
            return And(tuple(bind(child, fields) for child in children))
        case Or(children=children):
            return Or(tuple(bind(child, fields) for child in children))
        case Not(child=child):
            return Not(bind(child, fields))
        case Literal():
            return predicate
    raise unknown_kind(predicate)


def _comparable(column: str, fields: Sequence[DataField]) -> DataType:
    data_type = type_at(column, fields)
    if isinstance(data_type, _INCOMPARABLE):
        name = type(data_type).__name__.removesuffix("Type").upper()
        raise InvalidRequest(
            f"column {column!r} is of type {name}, which has no order", subject=column, hint="only IS NULL works on it"
        )
    return data_type


def _place(column: str, value: Any, data_type: DataType) -> Fit:
    try:
        return fit(value, data_type)
    except InvalidRequest as error:
        raise InvalidRequest(f"column {column!r}: {error.message}", subject=column, hint=error.hint) from error


def _compare(column: str, op: Operator, value: Any, data_type: DataType) -> Predicate:
    if value is None:
        return Compare(column, op, None)
    place = _place(column, value, data_type)
    if place.exact:
        return Compare(column, op, place.floor)
    if op in (Operator.EQ, Operator.NE):
        return _where_known(column, op is Operator.NE)
    above = op in (Operator.GT, Operator.GE)
    if isinstance(place.floor, Beyond):
        return _where_known(column, above == (place.floor is Beyond.BELOW))
    return Compare(column, Operator.GT if above else Operator.LE, place.floor)


def _where_known(column: str, answer: bool) -> Predicate:
    """This answer wherever the column is not null, unknown where it is."""
    if answer:
        return Or((IsNull(column, negated=True), Literal(None)))
    return And((IsNull(column), Literal(None)))


def _in(predicate: In, data_type: DataType) -> Predicate:
    places = [None if v is None else _place(predicate.column, v, data_type) for v in predicate.literals]
    kept: tuple[Any, ...] = tuple(None if p is None else p.floor for p in places if p is None or p.exact)
    if not kept:
        return _where_known(predicate.column, predicate.negated)
    return In(predicate.column, kept, predicate.negated)


def _like(predicate: Like, data_type: DataType) -> Predicate:
    if not isinstance(data_type, CHARACTER_TYPES):
        name = type(data_type).__name__.removesuffix("Type").upper()
        raise InvalidRequest(
            f"LIKE on column {predicate.column!r} of type {name}", subject=predicate.column, hint="LIKE takes texts"
        )
    if not isinstance(predicate.pattern, str):
        raise InvalidRequest(f"LIKE {predicate.pattern!r} is no text", subject=predicate.column, hint="give a text")
    check_text(predicate.pattern, "LIKE pattern")
    parts_of(predicate.pattern, predicate.escape)
    return predicate
