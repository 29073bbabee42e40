"""Statistics in a Parquet footer as ColumnStats.

Law: bounds are internal values and bound every value of the column, NaN counted as the largest; nested columns have
none, binary ones and INT96 have a null count only. Source: `ParquetSimpleStatsExtractor`.
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
_UNIT_NANOS = {"milliseconds": 1_000_000, "microseconds": 1_000, "nanoseconds": 1}
_EXACT = Context(prec=50)
_UNBOUNDED = (*dt.BYTES_TYPES, dt.BlobType)


def chunk_stats(chunk: pq.ColumnChunkMetaData, data_type: DataType) -> ColumnStats:
    """What one column chunk's statistics say; bounds of floats leave NaN out, as the file does."""
    found = chunk.statistics
    if found is None or isinstance(data_type, (*dt.NESTED_TYPES, dt.VariantType)):
        return NO_STATS
    nulls = found.null_count if found.has_null_count else None
    unbounded = isinstance(data_type, _UNBOUNDED) or is_int96(data_type) or _unknown_unit(found, data_type)
    if not found.has_min_max or unbounded:
        return ColumnStats(None, None, nulls)
    value = _reader_of(data_type, str(found.logical_type))
    try:
        return ColumnStats(value(found.min_raw), value(found.max_raw), nulls)
    except UnicodeDecodeError:  # other writers cut long bounds inside of a character
        return ColumnStats(None, None, nulls)


def combined(parts: Iterable[ColumnStats], counts: Iterable[int]) -> ColumnStats:
    """The statistics of a column from those of its chunks (`counts`: rows of each); unknown in one: unknown."""
    known = list(zip(parts, counts, strict=True))
    if not known or any(p.null_count is None for p, _ in known):
        return NO_STATS
    nulls = sum(p.null_count for p, _ in known if p.null_count is not None)
    bounded = [p for p, rows in known if p.null_count != rows]
    if not bounded or any(p.minimum is None for p in bounded):
        return ColumnStats(None, None, nulls)
    lowest = min((p.minimum for p in bounded), key=_nan_last)
    highest = max((p.maximum for p in bounded), key=_nan_last)
    return ColumnStats(lowest, highest, nulls)


def _nan_last(value: Any) -> tuple[bool, Any]:
    return (True, 0) if value != value else (False, value)


def _unknown_unit(found: pq.Statistics, data_type: DataType) -> bool:
    """Whether the file holds times in a unit that Java would not have chosen."""
    told = str(found.logical_type)
    if isinstance(data_type, dt.TIMESTAMP_TYPES):
        return not any(unit in told for unit in _UNIT_NANOS)
    return isinstance(data_type, dt.TimeType) and "milliseconds" not in told


def _reader_of(data_type: DataType, logical: str) -> Callable[[Any], Any]:
    match data_type:
        case dt.CharType() | dt.VarCharType():
            return _text
        case dt.DecimalType(scale=scale):
            return lambda raw: _decimal(raw, scale)
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            nanos = next(n for unit, n in _UNIT_NANOS.items() if unit in logical)
            return lambda raw: raw * nanos
    return lambda raw: raw


def _text(raw: Any) -> str:
    return raw if isinstance(raw, str) else bytes(raw).decode()


def _decimal(raw: Any, scale: int) -> Decimal:
    unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    return Decimal(unscaled).scaleb(-scale, _EXACT)
