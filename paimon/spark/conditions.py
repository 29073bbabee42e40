"""Find what a condition in Spark's SQL lets a scan leave out.

Invariant: Spark evaluates the condition again. So a scan may return more rows and columns than it needs, never fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError

from paimon.domain.predicate.expression import Predicate
from paimon.domain.types.data_types import DataField
from paimon.sql.plan.pushdown_predicates import find_condition

_AMBIGUOUS = frozenset('\\"')
"""Settings of the session decide what these characters mean."""
_TRUTH = {"TRUE": True, "FALSE": False}


def find_where(text: str, fields: Sequence[DataField]) -> Predicate | None:
    """Return a scan predicate that is true wherever a Spark SQL condition is true; None to return all rows."""
    by_name: Mapping[str, DataField] = {f.name.lower(): f for f in fields}
    if _AMBIGUOUS.intersection(text) or len(by_name) < len(fields):
        return None
    try:
        node = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return None
    return find_condition(node, by_name, _compute_constants)


def _compute_constants(expressions: Sequence[str]) -> list[Any]:
    """Compute negative numbers and truth values; other expressions have no value."""
    return [_TRUTH.get(text, int(text) if text.removeprefix("-").isdecimal() else None) for text in expressions]


def find_columns(text: str, wanted: Collection[str] | None, names: Sequence[str]) -> list[str]:
    """Return the columns that a Spark SQL condition and the columns of a result need, in the order of the table.

    `wanted` may also contain nested fields; None means all columns.
    """
    if wanted is None or not text.isascii() or "*" in text or "``" in text:
        return list(names)
    kept = {column if column in names else column.partition(".")[0] for column in wanted}
    return [name for name in names if name in kept or name.lower() in text.lower()]
