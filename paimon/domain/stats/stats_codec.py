"""Statistics of columns to and from the two binary rows in manifests.

Invariant: a row is decoded by its own number of fields. Empty statistics (no fields) and those of fewer columns are
read as what they are.
Source: `SimpleStats`, `SimpleStatsConverter`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.row.binary_row import deserialize, serialize
from paimon.domain.stats.simple_stats import EMPTY_STATS, ColumnStats, SimpleStats
from paimon.domain.types.data_types import DataType


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
