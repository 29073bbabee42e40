"""Statistics as stored (`SimpleStats`, binary rows), and of one column (`ColumnStats`, internal values).

Invariant: None means unknown, never empty. Bounds need not be values that occur. A row is decoded by its own number of
fields, so statistics of fewer columns, or of none, are read as what they are.
Source: `SimpleStats`, `SimpleColStats`, `SimpleStatsConverter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import field, frozen

from paimon.domain.row.binary_row import deserialize, serialize
from paimon.domain.types.data_types import DataType

EMPTY_ROW = bytes(12)
"""A serialized BinaryRow of no fields: arity 0 and eight zero bytes."""


@frozen
class ColumnStats:
    """Bounds and null count of one column in one file; None where unknown."""

    # an internal value, see `paimon.domain.row.values`; a bound that need not occur in the file
    minimum: Any = None
    # as `minimum`
    maximum: Any = None
    null_count: int | None = None


def _counts(values: Iterable[int | None]) -> tuple[int | None, ...]:
    return tuple(values)


@frozen
class SimpleStats:
    """Statistics as manifests store them."""

    # serialized BinaryRow
    min_values: bytes = EMPTY_ROW
    # serialized BinaryRow
    max_values: bytes = EMPTY_ROW
    # one for each field of the rows; None if unknown
    null_counts: tuple[int | None, ...] = field(converter=_counts, default=())


EMPTY_STATS = SimpleStats()


def to_simple_stats(columns: Sequence[ColumnStats], types: Sequence[DataType]) -> SimpleStats:
    """Encode the statistics of columns of these types."""
    if not columns:
        return EMPTY_STATS
    return SimpleStats(
        serialize([c.minimum for c in columns], types),
        serialize([c.maximum for c in columns], types),
        tuple(c.null_count for c in columns),
    )


def from_simple_stats(stats: SimpleStats, types: Sequence[DataType]) -> tuple[ColumnStats, ...]:
    """Decode the statistics of the leading columns: as many as were stored."""
    minima, maxima = deserialize(stats.min_values, types), deserialize(stats.max_values, types)
    known = len(stats.null_counts)
    return tuple(
        ColumnStats(low, high, stats.null_counts[i] if i < known else None)
        for i, (low, high) in enumerate(zip(minima, maxima, strict=False))
    )
