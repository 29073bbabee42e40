"""Bind predicates to a schema.

In a bound predicate, each column exists, and each literal is an internal value of the type of its column.

Invariant: A bound predicate has the same truth values as the unbound one. A literal that the column cannot hold is not
an error. For example, ``small_int > 3.5`` becomes ``small_int > 3``, and ``small_int = 3.5`` becomes false. A literal
of another kind is refused with `InvalidRequest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import (
    And,
    Compare,
    ForeignCondition,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    SqlCondition,
)
from paimon.domain.predicate.field_paths import type_at
from paimon.domain.predicate.fit_literal import Beyond, Fit, fit_literal
from paimon.domain.predicate.like_patterns import parse_like
from paimon.domain.predicate.map_keys import INCOMPARABLE, is_of_core, to_sql_condition
from paimon.domain.predicate.transform import Leaf, columns_of, unknown_predicate_error
from paimon.domain.predicate.zero_order import is_floating
from paimon.domain.text_checks import check_text
from paimon.domain.types.data_types import CHARACTER_TYPES, BooleanType, DataField, DataType
from paimon.domain.types.type_text import format_type


def bind(predicate: Predicate, fields: Sequence[DataField]) -> Predicate:
    """Return the predicate with its columns checked and its literals converted to internal values.

    Nested fields and keys of maps are named by a path (``a.b``, ``m[key]``); names stay the same. Raises
    `InvalidRequest` for an unknown column, a literal of another kind than its column, or LIKE on a column without text.
    """
    match predicate:
        case Compare() | In() | Like() | IsNull():
            if not is_of_core(predicate, fields):
                return bind(to_sql_condition(predicate), fields)
            return _bind_leaf(predicate, fields)
        case SqlCondition():
            return _bind_sql(predicate, fields)
        case Literal():
            return predicate
        case And(children=children):
            return And(tuple(bind(child, fields) for child in children))
        case Or(children=children):
            return Or(tuple(bind(child, fields) for child in children))
        case Not(child=child):
            return Not(bind(child, fields))
    raise unknown_predicate_error(predicate)


def _bind_leaf(leaf: Leaf, fields: Sequence[DataField]) -> Predicate:
    match leaf:
        case Compare(column=column, op=op, literal=value):
            return _bind_comparison(column, op, value, _comparable_type(column, fields))
        case In(column=column):
            return _bind_in(leaf, _comparable_type(column, fields))
        case Like(column=column):
            return _bind_like(leaf, type_at(column, fields))
    type_at(leaf.column, fields)
    return leaf


def _bind_sql(condition: SqlCondition, fields: Sequence[DataField]) -> Predicate:
    """Return the condition with Java's order of zeros, unless it is from a SQL statement or of another library."""
    types = [type_at(column, fields) for column in columns_of(condition)]
    if isinstance(condition, ForeignCondition):
        return _bind_foreign(condition, fields)
    if condition.expression.has_zero_order or not any(map(is_floating, types)):
        return condition
    from paimon.domain.predicate.scalar_sql import order_zeros  # loads the SQL parser

    return evolve(condition, expression=order_zeros(condition.expression))


def _bind_foreign(condition: ForeignCondition, fields: Sequence[DataField]) -> Predicate:
    """Return the condition with what it implies."""
    from paimon.domain.predicate.foreign import decode_tree  # loaded with the first condition of another library
    from paimon.domain.predicate.implied import imply_condition

    tree = decode_tree(condition.expression)
    if tree is None:
        return condition
    implied = [imply_condition(tree, fields, bind, negated) for negated in (False, True)]
    return evolve(condition, implied=implied[0], implied_by_opposite=implied[1])


def _comparable_type(column: str, fields: Sequence[DataField]) -> DataType:
    data_type = type_at(column, fields)
    if isinstance(data_type, INCOMPARABLE):
        name = type(data_type).__name__.removesuffix("Type").upper()
        raise InvalidRequest(
            f"Column {column!r} is of type {name}, which has no order", subject=column, hint="only IS NULL is possible"
        )
    return data_type


def _fit_literal(column: str, value: Any, data_type: DataType) -> Fit:
    if isinstance(value, bool) and not isinstance(data_type, BooleanType):
        raise InvalidRequest(
            f"Column {column!r} is not TRUE or FALSE, but of type {format_type(data_type.with_nullable(True))}",
            subject=column,
            hint="compare it with a value of its type",
        )
    try:
        return fit_literal(value, data_type)
    except InvalidRequest as error:
        raise InvalidRequest(f"Column {column!r}: {error.message}", subject=column, hint=error.hint) from error


def _bind_comparison(column: str, op: Operator, value: Any, data_type: DataType) -> Predicate:
    if value is None:
        return Compare(column, op, None)
    fit = _fit_literal(column, value, data_type)
    if fit.exact:
        return Compare(column, op, fit.floor)
    if op in (Operator.EQ, Operator.NE):
        return _truth_if_known(column, op is Operator.NE)
    above = op in (Operator.GT, Operator.GE)  # of a literal between two values, the smaller one is the floor
    if isinstance(fit.floor, Beyond):
        return _truth_if_known(column, above == (fit.floor is Beyond.BELOW))
    return Compare(column, Operator.GT if above else Operator.LE, fit.floor)


def _truth_if_known(column: str, is_true: bool) -> Predicate:
    """Return a predicate with this truth value where the column is not null, and unknown where it is null."""
    if is_true:
        return Or((IsNull(column, negated=True), Literal(None)))
    return And((IsNull(column), Literal(None)))


def _bind_in(predicate: In, data_type: DataType) -> Predicate:
    fits = [None if v is None else _fit_literal(predicate.column, v, data_type) for v in predicate.literals]
    exact_values: tuple[Any, ...] = tuple(None if p is None else p.floor for p in fits if p is None or p.exact)
    if not exact_values:
        return _truth_if_known(predicate.column, predicate.negated)
    return In(predicate.column, exact_values, predicate.negated)


def _bind_like(predicate: Like, data_type: DataType) -> Predicate:
    if not isinstance(data_type, CHARACTER_TYPES):
        name = type(data_type).__name__.removesuffix("Type").upper()
        raise InvalidRequest(
            f"Column {predicate.column!r} is of type {name}, and LIKE needs a text column",
            subject=predicate.column,
            hint="use a comparison, IN or IS NULL",
        )
    if not isinstance(predicate.pattern, str):
        raise InvalidRequest(
            f"LIKE pattern {predicate.pattern!r} is not a text", subject=predicate.column, hint="pass a str"
        )
    check_text(predicate.pattern, "LIKE pattern")
    parse_like(predicate.pattern, predicate.escape)
    return predicate
