"""Convert the statistics in a Parquet footer to ColumnStats.

Invariant: bounds are internal values that bound every value of the column, with NaN as the largest. Nested columns have
no statistics; binary columns and INT96 have a null count only.
Source: `ParquetSimpleStatsExtractor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from typing import Any

import pyarrow.parquet as pq

from paimon.adapters.formats.parquet.schema import is_int96
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

NAN = float("nan")
NO_STATS = ColumnStats()
_LOGICAL_UNIT_NANOS = {"milliseconds": 1_000_000, "microseconds": 1_000, "nanoseconds": 1}
_EXACT = Context(prec=50)
_UNBOUNDED = (*dt.BYTES_TYPES, dt.BlobType)


def read_chunk_stats(chunk: pq.ColumnChunkMetaData, data_type: DataType) -> ColumnStats:
    """Return the statistics of one column chunk; bounds of floating columns leave NaN out, as the file does."""
    found = chunk.statistics
    if found is None or isinstance(data_type, (*dt.NESTED_TYPES, dt.VariantType)):
        return NO_STATS
    nulls = found.null_count if found.has_null_count else None
    unbounded = isinstance(data_type, _UNBOUNDED) or is_int96(data_type) or _has_unknown_unit(found, data_type)
    if not found.has_min_max or unbounded:
        return ColumnStats(None, None, nulls)
    value = _choose_reader(data_type, str(found.logical_type))
    try:
        return ColumnStats(value(found.min_raw), value(found.max_raw), nulls)
    except UnicodeDecodeError:  # other writers truncate long bounds inside of a character
        return ColumnStats(None, None, nulls)


def combine_stats(parts: Iterable[ColumnStats], counts: Iterable[int]) -> ColumnStats:
    """Combine the statistics of a column's chunks, which have `counts` rows; what one lacks is unknown."""
    known = list(zip(parts, counts, strict=True))
    if not known or any(p.null_count is None for p, _ in known):
        return NO_STATS
    nulls = sum(p.null_count for p, _ in known if p.null_count is not None)
    bounded = [p for p, rows in known if p.null_count != rows]
    if not bounded or any(p.minimum is None for p in bounded):
        return ColumnStats(None, None, nulls)
    lowest = min((p.minimum for p in bounded), key=_order_nan_last)
    highest = max((p.maximum for p in bounded), key=_order_nan_last)
    return ColumnStats(lowest, highest, nulls)


def _order_nan_last(value: Any) -> tuple[bool, Any]:
    return (True, 0) if value != value else (False, value)


def _has_unknown_unit(found: pq.Statistics, data_type: DataType) -> bool:
    """Return whether the file holds times in a unit that Java would not have chosen."""
    logical_type = str(found.logical_type)
    if isinstance(data_type, dt.TIMESTAMP_TYPES):
        return not any(unit in logical_type for unit in _LOGICAL_UNIT_NANOS)
    return isinstance(data_type, dt.TimeType) and "milliseconds" not in logical_type


def _choose_reader(data_type: DataType, logical: str) -> Callable[[Any], Any]:
    match data_type:
        case dt.CharType() | dt.VarCharType():
            return _read_text
        case dt.DecimalType(scale=scale):
            return lambda raw: _read_decimal(raw, scale)
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            nanos = next(n for unit, n in _LOGICAL_UNIT_NANOS.items() if unit in logical)
            return lambda raw: raw * nanos
    return lambda raw: raw


def _read_text(raw: Any) -> str:
    return raw if isinstance(raw, str) else bytes(raw).decode()


def _read_decimal(raw: Any, scale: int) -> Decimal:
    unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    return Decimal(unscaled).scaleb(-scale, _EXACT)
