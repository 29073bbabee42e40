"""Rewrite predicates for columns that have a default in place of null.

Invariant: The rewritten predicate has the same truth value for the stored row as the original predicate for the row
that a reader sees. Code that prunes by stored values (statistics, indexes) therefore does not need to know the
defaults.
Source: `DefaultValueAssigner` (0.9), which drops such predicates instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import And, IsNull, Literal, Or, Predicate
from paimon.domain.predicate.transform import Leaf, map_leaves


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
