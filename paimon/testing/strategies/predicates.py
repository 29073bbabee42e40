"""Strategies for predicates.

Law: they are bound: columns exist, literals are internal values of their column's type, LIKE stands on texts only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate
from paimon.domain.types.data_types import CHARACTER_TYPES, NESTED_TYPES, BlobType, DataField, VariantType
from paimon.testing.strategies.values import values_of

_PATTERN_PARTS = st.sampled_from(["%", "_", "a", "b", "ä", "!%", "!_", "!!", "\n", ".", "\\"])


def predicates(
    fields: Sequence[DataField], *, rows: Sequence[Sequence[Any]] = (), nan: bool = True
) -> st.SearchStrategy[Predicate]:
    """Predicates over these columns; literals are drawn, or taken out of `rows` so that they meet."""
    leaves = [_leaves(field, [row[i] for row in rows], nan) for i, field in enumerate(fields)]
    constants = st.sampled_from([Literal(True), Literal(False), Literal(None)])
    return st.recursive(st.one_of(*leaves, constants), _joined, max_leaves=6)


def _joined(parts: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    some = st.lists(parts, max_size=3).map(tuple)
    return st.one_of(st.builds(And, some), st.builds(Or, some), st.builds(Not, parts))


def _leaves(field: DataField, met: Sequence[Any], nan: bool) -> st.SearchStrategy[Predicate]:
    name, negated = st.just(field.name), st.booleans()
    nulls = st.builds(IsNull, name, negated)
    if isinstance(field.type, (*NESTED_TYPES, VariantType, BlobType)):
        return nulls
    values = values_of(field.type.with_nullable(True), nan=nan)
    literals = st.one_of(values, st.sampled_from(list(met))) if met else values
    leaves = [
        nulls,
        st.builds(Compare, name, st.sampled_from(list(Operator)), literals),
        st.builds(In, name, st.lists(literals, max_size=3).map(tuple), negated),
    ]
    if isinstance(field.type, CHARACTER_TYPES):
        drawn = st.lists(_PATTERN_PARTS, max_size=5).map("".join)
        texts = st.one_of(drawn, literals.map(_as_pattern))
        leaves.append(st.builds(Like, name, texts, st.just("!"), negated))
    return st.one_of(*leaves)


def _as_pattern(text: str | None) -> str:
    """The beginning of a text, as a pattern."""
    quoted = "".join(f"!{c}" if c in "%_!" else c for c in (text or "")[:2])
    return quoted + "%"
