"""Full statistics of Arrow columns, for formats whose files contain none.

Invariant: order is Java's: text by its bytes, floats with -0.0 below 0.0 and NaN above all.
Source: `FullSimpleColStatsCollector`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.java_float_order import find_float_bounds, to_float_sort_key
from paimon.domain.row.values import to_values
from paimon.domain.stats.modes import has_bounds
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.data_types import DataType, DoubleType, FloatType


def collect_column_stats(array: pa.Array | pa.ChunkedArray, data_type: DataType) -> ColumnStats:
    """Collect the bounds and the null count of a canonical Arrow column; a column without values has no bounds.

    >>> collect_column_stats(pa.array([2.5, None, 0.5]), DoubleType())
    ColumnStats(minimum=0.5, maximum=2.5, null_count=1)
    """
    nulls = array.null_count
    if nulls == len(array) or not has_bounds(data_type):
        return ColumnStats(null_count=nulls)
    if isinstance(data_type, FloatType | DoubleType):
        return _floating(array, nulls)
    bounds = pc.min_max(array)
    low, high = (to_values(pa.repeat(bounds[end], 1), data_type)[0] for end in ("min", "max"))
    return ColumnStats(low, high, nulls)


def _floating(array: pa.Array | pa.ChunkedArray, nulls: int) -> ColumnStats:
    values = array.drop_null()
    whole = combine_column(values) if isinstance(values, pa.ChunkedArray) else values
    return ColumnStats(*find_float_bounds(to_numpy(whole)), nulls)


def combine_column_stats(first: ColumnStats, second: ColumnStats, data_type: DataType) -> ColumnStats:
    """Combine the full statistics of two parts of a column; null counts are None if one is unknown."""
    counts = (first.null_count, second.null_count)
    return ColumnStats(
        _choose_bound(first.minimum, second.minimum, data_type, min),
        _choose_bound(first.maximum, second.maximum, data_type, max),
        None if counts[0] is None or counts[1] is None else counts[0] + counts[1],
    )


def _choose_bound(first: Any, second: Any, data_type: DataType, better: Callable[..., Any]) -> Any:
    if first is None or second is None:
        return second if first is None else first
    if isinstance(data_type, FloatType | DoubleType):
        return better(first, second, key=to_float_sort_key)
    # Python orders text by code point, which is the order of its bytes in UTF-8.
    return better(first, second)
