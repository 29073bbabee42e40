"""Strategies for predicates.

Invariant: predicates are bound. Columns exist, literals are internal values of the type of their column, and LIKE is
applied to text columns only.
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
    """Draw predicates over these columns.

    Parameters
    ----------
    fields : sequence of DataField
        The columns.
    rows : sequence of sequence
        Rows as internal values, in the order of the columns. Some literals are taken from them, so that they match.
    nan : bool
        Whether floating-point literals can be NaN.

    Returns
    -------
    SearchStrategy
        Draws predicates of up to six leaves.
    """
    leaves = [_leaves(field, [row[i] for row in rows], nan) for i, field in enumerate(fields)]
    constants = st.sampled_from([Literal(True), Literal(False), Literal(None)])
    return st.recursive(st.one_of(*leaves, constants), _join_predicates, max_leaves=6)


def _join_predicates(parts: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    some = st.lists(parts, max_size=3).map(tuple)
    return st.one_of(st.builds(And, some), st.builds(Or, some), st.builds(Not, parts))


def _leaves(field: DataField, row_values: Sequence[Any], nan: bool) -> st.SearchStrategy[Predicate]:
    name, negated = st.just(field.name), st.booleans()
    nulls = st.builds(IsNull, name, negated)
    if isinstance(field.type, (*NESTED_TYPES, VariantType, BlobType)):
        return nulls
    values = values_of(field.type.with_nullable(True), nan=nan)
    literals = st.one_of(values, st.sampled_from(list(row_values))) if row_values else values
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
    """Return a pattern for the first two characters of a text."""
    quoted = "".join(f"!{c}" if c in "%_!" else c for c in (text or "")[:2])
    return quoted + "%"
