"""Predicates rewritten without a change of meaning, or weakened on purpose.

Law: `simplify` and `rename` keep all three truth values of every row; `only_columns` is true wherever the whole is
true.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import evolve

from paimon.domain.errors import Unsupported
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate

Leaf = Compare | In | Like | IsNull

OPPOSITE: Mapping[Operator, Operator] = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}
"""What NOT makes of an operator; exact, because values are totally ordered and null stays unknown."""


def unknown_kind(predicate: Predicate) -> Unsupported:
    """The error for a node that is none of ours."""
    return Unsupported(f"predicate {type(predicate).__name__}")


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The parts that all must hold; none for a predicate that is always true."""
    if isinstance(predicate, And):
        return tuple(part for child in predicate.children for part in conjuncts(child))
    return () if predicate == Literal(True) else (predicate,)


def both(parts: Iterable[Predicate]) -> Predicate:
    """The conjunction of the parts, without needless nodes."""
    return _joined(tuple(parts), And, absorbing=False)


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Names of the columns (or nested paths) that it looks at."""
    match predicate:
        case Compare(column=column) | In(column=column) | Like(column=column) | IsNull(column=column):
            return frozenset((column,))
        case And(children=children) | Or(children=children):
            return frozenset().union(*(columns_of(c) for c in children))
        case Not(child=child):
            return columns_of(child)
        case Literal():
            return frozenset()
    raise unknown_kind(predicate)


def simplify(predicate: Predicate) -> Predicate:
    """The same without NOT, nested AND in AND or OR in OR, and constants."""
    return _normal(predicate, negate=False)


def _normal(predicate: Predicate, negate: bool) -> Predicate:
    match predicate:
        case Not(child=child):
            return _normal(child, not negate)
        case Literal(value=value):
            return Literal(value if value is None else value != negate)
        case Compare(op=op, literal=literal):
            if literal is None:
                return Literal(None)
            return evolve(predicate, op=OPPOSITE[op]) if negate else predicate
        case In(negated=negated) | Like(negated=negated) | IsNull(negated=negated):
            return evolve(predicate, negated=negated != negate)
        case And(children=children) | Or(children=children):
            parts = tuple(_normal(c, negate) for c in children)
            is_and = isinstance(predicate, And) != negate
            return _joined(parts, And, absorbing=False) if is_and else _joined(parts, Or, absorbing=True)
    raise unknown_kind(predicate)


def _joined(parts: tuple[Predicate, ...], join: type[And] | type[Or], absorbing: bool) -> Predicate:
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


def only_columns(predicate: Predicate, names: Collection[str]) -> Predicate | None:
    """What the predicate demands of these columns alone; None where that is nothing."""
    weak = _weakened(simplify(predicate), names)
    return None if weak == Literal(True) else weak


def _weakened(predicate: Predicate, names: Collection[str]) -> Predicate:
    match predicate:
        case And(children=children):
            return _joined(tuple(_weakened(c, names) for c in children), And, absorbing=False)
        case Or(children=children):
            return _joined(tuple(_weakened(c, names) for c in children), Or, absorbing=True)
        case Compare(column=column) | In(column=column) | Like(column=column) | IsNull(column=column):
            return predicate if any(prefix in names for prefix in _prefixes(column)) else Literal(True)
    return predicate


def rename(predicate: Predicate, mapping: Mapping[str, str]) -> Predicate:
    """The same over renamed columns; a nested path follows the name of its column. Names not in the map stay."""
    match predicate:
        case Compare() | In() | Like() | IsNull():
            return evolve(predicate, column=_renamed(predicate.column, mapping))
        case And(children=children):
            return And(tuple(rename(c, mapping) for c in children))
        case Or(children=children):
            return Or(tuple(rename(c, mapping) for c in children))
        case Not(child=child):
            return Not(rename(child, mapping))
        case Literal():
            return predicate
    raise unknown_kind(predicate)


def _renamed(column: str, mapping: Mapping[str, str]) -> str:
    for prefix in _prefixes(column):
        if prefix in mapping:
            return mapping[prefix] + column[len(prefix) :]
    return column


def _prefixes(column: str) -> Iterable[str]:
    """The name itself, then its ancestors: ``a.b.c``, ``a.b``, ``a``."""
    parts = column.split(".")
    return (".".join(parts[:n]) for n in range(len(parts), 0, -1))
