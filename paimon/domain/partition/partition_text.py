"""Partition values as text, in the two renderings that tables may ask for.

Invariant: equal values have equal texts, in Java's form (``1.0E10``, ``2024-01-01T00:00``).
Source: `InternalRowPartitionComputer`, `CastExecutors`, `DateTimeUtils`, and Java's own `toString` of numbers and
date-times.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from paimon.domain.columns.java_text import format_java_float
from paimon.domain.errors import Unsupported
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    TIMESTAMP_TYPES,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    TimeType,
)

_NANOS_PER_SECOND = 1_000_000_000
_SECONDS_PER_DAY = 86_400


def format_legacy_text(value: Any, data_type: DataType) -> str:
    """Format an internal value for `partition.legacy-name=true`, the default; a binary column raises `Unsupported`."""
    if isinstance(data_type, BYTES_TYPES):
        raise Unsupported(
            "binary partition columns under partition.legacy-name", hint="set 'partition.legacy-name' to false"
        )
    if isinstance(data_type, TIMESTAMP_TYPES):
        return _iso(value)
    return _number_text(value, data_type)


def format_plain_text(value: Any, data_type: DataType) -> str:
    """Format an internal value for `partition.legacy-name=false`."""
    match data_type:
        case DateType():
            return format_date(value)
        case TimeType(precision=precision):
            return _time(value, precision)
        case _ if isinstance(data_type, TIMESTAMP_TYPES):
            return _timestamp(value, data_type.precision)
        case _ if isinstance(data_type, BYTES_TYPES):
            return str(value, "utf-8", "replace")
        case _:
            return _number_text(value, data_type)


def format_utc(millis: int) -> str:
    """Format a time in milliseconds since 1970 as text in UTC."""
    return _timestamp(millis * 1_000_000, 3) + "Z"


def _number_text(value: Any, data_type: DataType) -> str:
    renderers: dict[type[DataType], Callable[[Any], str]] = {
        BooleanType: lambda v: "true" if v else "false",
        FloatType: lambda v: format_java_float(np.float32(v)),
        DoubleType: lambda v: format_java_float(np.float64(v)),
        DecimalType: lambda v: format(Decimal(v), "f"),
    }
    return renderers.get(type(data_type), str)(value)


def format_date(epoch_days: int) -> str:
    """Format epoch days as ``yyyy-MM-dd``; years beyond 9999 have a sign.

    >>> format_date(0), format_date(2_932_897)
    ('1970-01-01', '+10000-01-01')
    """
    # Days since 0000-03-01, in eras of 400 years: Python's own dates end at the year 9999.
    era, day = divmod(epoch_days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month, year = (month + 3, year + 400 * era) if month < 10 else (month - 9, year + 400 * era + 1)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day + 1:02d}"


def _iso(nanos: int) -> str:
    day, hour, minute, second, fraction = _clock(nanos)
    text = f"{day}T{hour:02d}:{minute:02d}"
    if second or fraction:
        text += f":{second:02d}"
    if fraction:
        digits = f"{fraction:09d}"
        text += "." + (digits[:3] if digits[3:] == "000000" else digits[:6] if digits[6:] == "000" else digits)
    return text


def _timestamp(nanos: int, precision: int) -> str:
    day, hour, minute, second, fraction = _clock(nanos)
    digits = f"{fraction:09d}"
    digits = digits[:precision] + digits[precision:].rstrip("0")
    return f"{day} {hour:02d}:{minute:02d}:{second:02d}" + (f".{digits}" if digits else "")


def _time(millis: int, precision: int) -> str:
    seconds, rest = divmod(millis, 1000)
    digits = (f"{rest:03d}"[:precision].rstrip("0") or "0") if precision else ""
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{digits}" if digits else "")


def _clock(nanos: int) -> tuple[str, int, int, int, int]:
    seconds, fraction = divmod(nanos, _NANOS_PER_SECOND)
    day, second = divmod(seconds, _SECONDS_PER_DAY)
    return format_date(day), second // 3600, second // 60 % 60, second % 60, fraction
