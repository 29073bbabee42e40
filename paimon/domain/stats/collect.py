"""Full statistics of Arrow columns, for formats whose files have none of their own.

Law: order is Java's: text by its bytes, floating numbers with -0.0 below 0.0 and NaN above all.
Source: `FullSimpleColStatsCollector`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.row.values import to_values
from paimon.domain.stats.modes import has_bounds
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import DataType, DoubleType, FloatType


def collect(array: pa.Array | pa.ChunkedArray, data_type: DataType) -> ColumnStats:
    """Bounds and null count of a canonical Arrow column; no bounds where it has no value."""
    nulls = array.null_count
    if nulls == len(array) or not has_bounds(data_type):
        return ColumnStats(null_count=nulls)
    if isinstance(data_type, FloatType | DoubleType):
        return _floating(array, nulls)
    bounds = pc.min_max(array)
    low, high = (to_values(pa.array([bounds[end]], array.type), data_type)[0] for end in ("min", "max"))
    return ColumnStats(low, high, nulls)


def _floating(array: pa.Array | pa.ChunkedArray, nulls: int) -> ColumnStats:
    values = array.drop_null().to_numpy()
    numbers = values[~np.isnan(values)]
    if len(numbers) == 0:
        return ColumnStats(math.nan, math.nan, nulls)
    low, high = float(numbers.min()), float(numbers.max())
    zeros = np.signbit(numbers[numbers == 0]) if 0.0 in (low, high) else np.empty(0, bool)
    if low == 0:
        low = -0.0 if zeros.any() else 0.0
    if high == 0:
        high = -0.0 if zeros.all() else 0.0
    return ColumnStats(low, high if len(numbers) == len(values) else math.nan, nulls)


def combine(first: ColumnStats, second: ColumnStats, data_type: DataType) -> ColumnStats:
    """The statistics of two parts of a column together, both as `collect` gives them."""
    counts = (first.null_count, second.null_count)
    return ColumnStats(
        _chosen(first.minimum, second.minimum, data_type, min),
        _chosen(first.maximum, second.maximum, data_type, max),
        None if counts[0] is None or counts[1] is None else counts[0] + counts[1],
    )


def _chosen(first: Any, second: Any, data_type: DataType, better: Callable[..., Any]) -> Any:
    if first is None or second is None:
        return second if first is None else first
    if isinstance(data_type, FloatType | DoubleType):
        return better(first, second, key=_rank)
    # Python orders text by code point, which is the order of its bytes in UTF-8.
    return better(first, second)


def _rank(value: float) -> tuple[bool, float, bool]:
    nan = math.isnan(value)
    return nan, 0.0 if nan else value, not nan and math.copysign(1.0, value) > 0
