"""Decide by the statistics of one file whether it can contain a row that a predicate selects.

`pruning_columnar` decides the same for many files at once.

Invariant: The result is False only if the predicate is true for no row. An unknown statistic never excludes a file.
Bounds are not always existing values, because long texts are truncated.
Source: `LeafFunction.test`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Operator, Or, Predicate
from paimon.domain.predicate.like_patterns import find_prefix, parse_like
from paimon.domain.predicate.transform import simplify
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import NESTED_TYPES, DataType, DoubleType, FloatType, VariantType


@frozen
class _Range:
    """The range of the values that are not null, from `low` to `high` as sortable keys; None is unbounded."""

    low: Any = None
    high: Any = None
    has_values: bool = True
    has_nulls: bool = True


def may_match(
    predicate: Predicate,
    stats: Callable[[str], ColumnStats | None],
    types: Mapping[str, DataType],
    row_count: int | None,
    nan_in_bounds: bool = False,
) -> bool:
    """Return whether the bound predicate can be true for a row: False only if the statistics prove that no row matches.

    `stats` returns None for a column without statistics. `nan_in_bounds` means that NaN is the largest value in bounds
    (Parquet from Java). Otherwise (ORC), NaN can be above any maximum, and a bound that is NaN is ignored.
    """
    if row_count == 0:
        return False

    def range_of(column: str) -> _Range:
        """Return the range of a column, unbounded if its statistics or its type are unknown."""
        found, data_type = stats(column), types.get(column)
        if found is None or data_type is None:
            return _Range()
        return _to_range(found, data_type, row_count, nan_in_bounds)

    return _may_be_true(simplify(predicate), range_of)


def _may_be_true(predicate: Predicate, range_of: Callable[[str], _Range]) -> bool:
    match predicate:
        case Literal(value=value):
            return value is True
        case And(children=children):
            return all(_may_be_true(child, range_of) for child in children)
        case Or(children=children):
            return any(_may_be_true(child, range_of) for child in children)
        case IsNull(column=column, negated=negated):
            values = range_of(column)
            return values.has_values if negated else values.has_nulls
        case Compare(column=column, op=op, literal=literal):
            return _may_compare(range_of(column), op, literal)
        case In(column=column, literals=literals, negated=False):
            values = range_of(column)
            return any(_may_compare(values, Operator.EQ, literal) for literal in literals)
        case In(column=column, literals=literals, negated=True):
            values = range_of(column)
            return all(_may_compare(values, Operator.NE, literal) for literal in literals) and values.has_values
        case Like(column=column, pattern=pattern, escape=escape, negated=False):
            return _may_begin(range_of(column), find_prefix(parse_like(pattern, escape)))
        case Like(column=column, negated=True):
            return range_of(column).has_values
    return True


def _may_compare(values: _Range, op: Operator, literal: Any) -> bool:
    if literal is None or not values.has_values:
        return False
    key = _to_sort_key(literal)
    match op:
        case Operator.EQ:
            return (values.low is None or values.low <= key) and (values.high is None or key <= values.high)
        case Operator.NE:
            return not (values.low == key == values.high)
        case Operator.LT:
            return bool(values.low is None or values.low < key)
        case Operator.LE:
            return bool(values.low is None or values.low <= key)
        case Operator.GT:
            return bool(values.high is None or values.high > key)
        case Operator.GE:
            return bool(values.high is None or values.high >= key)


def _may_begin(values: _Range, prefix: str) -> bool:
    """Return whether a text in the range can begin with the prefix."""
    if not values.has_values:
        return False
    key = prefix.encode()
    below = values.low is not None and values.low[: len(key)] > key
    above = values.high is not None and values.high[: len(key)] < key
    return not (below or above)


def _to_range(stats: ColumnStats, data_type: DataType, row_count: int | None, nan_in_bounds: bool) -> _Range:
    nulls = stats.null_count
    has_values = nulls is None or row_count is None or nulls < row_count
    has_nulls = nulls is None or nulls > 0
    if isinstance(data_type, (*NESTED_TYPES, VariantType)):
        return _Range(None, None, has_values, has_nulls)
    low, high = stats.minimum, stats.maximum
    if isinstance(data_type, FloatType | DoubleType):
        low, high = _floating_bounds(low, high, nan_in_bounds)
    return _Range(
        None if low is None else _to_sort_key(low), None if high is None else _to_sort_key(high), has_values, has_nulls
    )


def _floating_bounds(low: float | None, high: float | None, nan_in_bounds: bool) -> tuple[float | None, float | None]:
    """Return bounds that are valid in Java's order. Both zeros count as bounds for each other."""
    if not nan_in_bounds:
        high = None  # NaN is left out of the bounds and is larger
        low = None if low is None or math.isnan(low) else low
    return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)


def _to_sort_key(value: Any) -> Any:
    """Return the sort key of an internal value."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (1, 0.0, 0) if math.isnan(value) else (0, value, math.copysign(1, value) if value == 0 else 0)
    return value
