"""Texts as days, times of day and timestamps.

Invariant: a day is ``year-month-day``, a time is ``hour:minute[:second[.fraction]]``. A DATE is a day; text after a
blank is ignored. A timestamp is both, separated by a blank or a `T`; the time may be missing. Days and times that do
not exist are refused, but in a timestamp, as in Java, day 30 of a shorter month means its last day.
Source: `DateTimeUtils`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.casts.times import to_timestamp
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType
from paimon.domain.types.time_range import far_time_error

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_DAY = r"(?P<year>[0-9]{1,4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
_NANOS_PER_SECOND = 1_000_000_000


def find_pattern(target: DataType) -> str:
    """Return the regular expression for texts of a type."""
    if isinstance(target, dt.DateType):
        return rf"^\s*{_DAY}\s*(?: .*)?$"
    if isinstance(target, dt.TimeType):
        return rf"^{_CLOCK}$"
    return rf"^{_DAY}(?:[ T]{_CLOCK})?$"


def parse_time_texts(array: pa.Array, target: DataType) -> tuple[pa.Array, pa.Array]:
    """Parse texts that match `find_pattern`; return values (null if no such time), and whether each exists."""
    parts = pc.extract_regex(array, find_pattern(target))
    nulls = np.asarray(array.is_null())
    if isinstance(target, dt.TimeType):
        seconds, nanos, good = _clock(parts)
        millis, good = seconds * 1000 + nanos // 1_000_000, good & (seconds < 86_400)
        return pa.array(millis, pa.int64(), mask=nulls | ~good).cast(pa.int32()).cast(pa.time32("ms")), pa.array(good)
    days, good = _days(parts, clamped=not isinstance(target, dt.DateType))
    if isinstance(target, dt.DateType):
        return pa.array(days, pa.int64(), mask=nulls | ~good).cast(pa.int32()).cast(pa.date32()), pa.array(good)
    assert isinstance(target, dt.TimestampType | dt.LocalZonedTimestampType)
    seconds, nanos, real = _clock(parts)
    good &= real
    return _moments(days * 86_400 + seconds, nanos, nulls | ~good, target), pa.array(good)


def _moments(
    seconds: Integers, nanos: Integers, mask: Flags, target: dt.TimestampType | dt.LocalZonedTimestampType
) -> pa.Array:
    if target.precision <= 6:
        micros = pa.array(seconds * 1_000_000 + nanos // 1_000, mask=mask).cast(pa.timestamp("us"))
        return to_timestamp(micros, target)
    limit = (2**63 - 1) // _NANOS_PER_SECOND
    if bool(np.any(~mask & ((seconds >= limit) | (seconds <= -limit)))):
        raise far_time_error(target)
    whole = np.where(mask, 0, seconds) * _NANOS_PER_SECOND + nanos
    return to_timestamp(pa.array(whole, mask=mask).cast(pa.timestamp("ns")), target)


def _number(parts: pa.StructArray, name: str) -> Integers:
    text = pc.struct_field(parts, [name])
    filled = pc.if_else(pc.fill_null(pc.equal(text, ""), True), "0", text)
    return np.asarray(filled.cast(pa.int64()))


def _days(parts: pa.StructArray, clamped: bool) -> tuple[Integers, Flags]:
    """Return epoch days, and which exist; if `clamped`, a day up to 31 behind the end of its month is the last one."""
    year, month, day = (_number(parts, name) for name in ("year", "month", "day"))
    good = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    months = (year - 1970) * 12 + np.where(good, month - 1, 0)
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    after = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    days = first + np.where(good, day - 1, 0)
    return np.minimum(days, after - 1), good & (clamped | (days < after))


def _clock(parts: pa.StructArray) -> tuple[Integers, Integers, Flags]:
    hour, minute, second = (_number(parts, name) for name in ("hour", "minute", "second"))
    fraction = pc.utf8_rpad(pc.fill_null(pc.struct_field(parts, ["fraction"]), ""), 9, "0")
    nanos = np.asarray(fraction.cast(pa.int64()))
    seconds = (hour * 60 + minute) * 60 + second
    midnight = (hour == 24) & (seconds == 86_400) & (nanos == 0)  # 24:00 ends a day
    return seconds, nanos, ((hour < 24) | midnight) & (minute < 60) & (second < 60)
