"""Rewrite predicates: normalize, rename columns, reduce to some columns, or add the defaults of nulls.

Invariant: `simplify` and `rename_columns` keep the truth value for each row. `restrict_to_columns` is true wherever the
whole predicate is true. `rewrite_for_stored_rows` gives the stored row the truth value of the row that a reader sees.
Source: `DefaultValueAssigner` (0.9), which drops predicates on columns with a default instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from attrs import evolve

from paimon.domain.errors import Unsupported
from paimon.domain.predicate.evaluate_row import matches
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
from paimon.domain.predicate.field_paths import list_ancestors

Leaf = Compare | In | Like | IsNull
"""A condition on one column."""

OPPOSITE: Mapping[Operator, Operator] = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}
"""The negation of each operator. It is exact, because values are totally ordered and null stays unknown."""


def unknown_predicate_error(predicate: Predicate) -> Unsupported:
    """Return the error for a predicate node of an unknown class."""
    return Unsupported(f"predicate {type(predicate).__name__}")


def split_conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the conditions that a predicate combines with AND; none if it is always true."""
    if isinstance(predicate, And):
        return tuple(part for child in predicate.children for part in split_conjuncts(child))
    return () if predicate == Literal(True) else (predicate,)


def join_conjuncts(parts: Iterable[Predicate]) -> Predicate:
    """Return the conjunction of the parts, simplified."""
    return _join_predicates(tuple(parts), And, absorbing=False)


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Return the names of the columns, or the paths of the nested fields, that a predicate uses."""
    match predicate:
        case Compare(column=column) | In(column=column) | Like(column=column) | IsNull(column=column):
            return frozenset((column,))
        case SqlCondition(expression=expression):
            return frozenset(expression.columns)
        case And(children=children) | Or(children=children):
            return frozenset().union(*(columns_of(c) for c in children))
        case Not(child=child):
            return columns_of(child)
        case Literal():
            return frozenset()
    raise unknown_predicate_error(predicate)


def simplify(predicate: Predicate) -> Predicate:
    """Return an equal predicate without NOT, without AND inside AND or OR inside OR, and without constants."""
    return _normalize(predicate, negate=False)


def _normalize(predicate: Predicate, negate: bool) -> Predicate:
    match predicate:
        case Not(child=child):
            return _normalize(child, not negate)
        case Literal(value=value):
            return Literal(value if value is None else value != negate)
        case Compare(op=op, literal=literal):
            if literal is None:
                return Literal(None)
            return evolve(predicate, op=OPPOSITE[op]) if negate else predicate
        case In(negated=negated) | Like(negated=negated) | IsNull(negated=negated) | SqlCondition(negated=negated):
            return evolve(predicate, negated=negated != negate)
        case And(children=children) | Or(children=children):
            parts = tuple(_normalize(c, negate) for c in children)
            is_and = isinstance(predicate, And) != negate
            return (
                _join_predicates(parts, And, absorbing=False) if is_and else _join_predicates(parts, Or, absorbing=True)
            )
    raise unknown_predicate_error(predicate)


def _join_predicates(parts: tuple[Predicate, ...], join: type[And] | type[Or], absorbing: bool) -> Predicate:
    flat: list[Predicate] = []
    for part in parts:
        for piece in part.children if isinstance(part, join) else (part,):
            if piece == Literal(absorbing):
                return piece
            if piece != Literal(not absorbing):
                flat.append(piece)
    if not flat:
        return Literal(not absorbing)
    return flat[0] if len(flat) == 1 else join(tuple(flat))


def restrict_to_columns(predicate: Predicate, names: Collection[str]) -> Predicate | None:
    """Return the strongest condition on these columns alone that the predicate implies; None if there is none.

    Scalar SQL expressions are left out, because only their evaluator knows them. Those of other libraries are replaced
    by what they imply.
    """
    weak = _weaken_to_columns(simplify(predicate), names)
    return None if weak == Literal(True) else weak


def _weaken_to_columns(predicate: Predicate, names: Collection[str]) -> Predicate:
    match predicate:
        case And(children=children):
            return _join_predicates(tuple(_weaken_to_columns(c, names) for c in children), And, absorbing=False)
        case Or(children=children):
            return _join_predicates(tuple(_weaken_to_columns(c, names) for c in children), Or, absorbing=True)
        case Compare(column=column) | In(column=column) | Like(column=column) | IsNull(column=column):
            return predicate if any(prefix in names for prefix in list_ancestors(column)) else Literal(True)
        case ForeignCondition():
            implied = predicate.implied_by_opposite if predicate.negated else predicate.implied
            return Literal(True) if implied is None else _weaken_to_columns(simplify(implied), names)
        case SqlCondition():
            return Literal(True)  # statistics cannot decide it
    return predicate


def rename_columns(predicate: Predicate, mapping: Mapping[str, str]) -> Predicate:
    """Rename columns of a predicate, also in paths; names that `mapping` (old to new) lacks stay."""
    return map_names(predicate, lambda name: _rename_column(name, mapping))


def map_names(predicate: Predicate, rename: Callable[[str], str]) -> Predicate:
    """Return the predicate with each column name, or path of a nested field, replaced by the result of `rename`."""

    def rename_sql(condition: SqlCondition) -> Predicate:
        columns = tuple(rename(name) for name in condition.expression.columns)
        renamed = evolve(condition, expression=evolve(condition.expression, columns=columns))
        if not isinstance(renamed, ForeignCondition):
            return renamed
        parts = (renamed.implied, renamed.implied_by_opposite)
        implied, opposite = (None if part is None else map_names(part, rename) for part in parts)
        return evolve(renamed, implied=implied, implied_by_opposite=opposite)

    return map_leaves(predicate, lambda leaf: evolve(leaf, column=rename(leaf.column)), rename_sql)


def _refuse_sql(condition: SqlCondition) -> Predicate:
    raise Unsupported(
        f"SQL expression {condition.expression.text!r} in a condition on default values of reads",
        hint="compare the column with a value",
    )


def map_leaves(
    predicate: Predicate,
    change: Callable[[Leaf], Predicate],
    change_sql: Callable[[SqlCondition], Predicate] = _refuse_sql,
) -> Predicate:
    """Rewrite each one-column condition by `change`, and scalar SQL by `change_sql`, else Unsupported."""
    match predicate:
        case Compare() | In() | Like() | IsNull():
            return change(predicate)
        case SqlCondition():
            return change_sql(predicate)
        case And(children=children) | Or(children=children):
            return evolve(predicate, children=tuple(map_leaves(child, change, change_sql) for child in children))
        case Not(child=child):
            return Not(map_leaves(child, change, change_sql))
        case Literal():
            return predicate
    raise unknown_predicate_error(predicate)


def _rename_column(column: str, mapping: Mapping[str, str]) -> str:
    for prefix in list_ancestors(column):
        if prefix in mapping:
            return mapping[prefix] + column[len(prefix) :]
    return column


def rewrite_for_stored_rows(predicate: Predicate, defaults: Mapping[str, Any]) -> Predicate:
    """Return the predicate rewritten for stored rows, in which null appears where readers see the default.

    `defaults` are internal values, never null. Without defaults, the same object is returned.
    """
    if not defaults:
        return predicate

    def rewrite(leaf: Leaf) -> Predicate:
        """Rewrite a condition on a column with a default."""
        return _rewrite_leaf(leaf, defaults[leaf.column]) if leaf.column in defaults else leaf

    return map_leaves(predicate, rewrite)


def _rewrite_leaf(predicate: Leaf, default: Any) -> Predicate:
    """Return the condition on one column, with null counted as the default."""
    column = predicate.column
    truth = matches(predicate, {column: default})
    if isinstance(predicate, IsNull):
        return Literal(truth)
    if truth is None:  # the literal is null, so the condition is unknown for all values
        return predicate
    return Or((predicate, IsNull(column))) if truth else And((predicate, IsNull(column, negated=True)))
