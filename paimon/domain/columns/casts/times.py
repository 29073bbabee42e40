"""Casts between dates, times of day, timestamps and seconds.

Invariant: casts behave as Java's, which stores a timestamp as milliseconds and the nanoseconds within the millisecond.
Digits are cut off as follows: to 3 digits or fewer, and for the day of a TIMESTAMP, towards 1970; to 4 digits or more,
towards the past. Local time is UTC. A time that the target's unit cannot represent is Unsupported. Unlike in Java, a
time of day is never negative.
Source: `TimestampToTimestampCastRule`, `TimestampToDateCastRule`, `DateTimeUtils`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import LocalZonedTimestampType, TimestampType
from paimon.domain.types.time_range import far_time_error

Integers = npt.NDArray[np.int64]
TimestampKind = TimestampType | LocalZonedTimestampType

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_MILLIS_PER_DAY = 86_400_000


def _integers(array: pa.Array) -> Integers:
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return np.asarray(array.cast(width).fill_null(0)).astype(np.int64)


def _make_times(values: Integers, like: pa.Array, target: pa.DataType) -> pa.Array:
    width = pa.int32() if target.bit_width == 32 else pa.int64()
    return pa.array(values, mask=np.asarray(like.is_null())).cast(width, safe=False).cast(target)


def _towards_zero(values: Integers, divisor: int) -> Integers:
    return np.where(values < 0, -(-values // divisor), values // divisor)


def _millis(array: pa.Array) -> Integers:
    """Return the milliseconds of timestamps, dates, times and seconds (as whole numbers)."""
    values = _integers(array)
    if pa.types.is_timestamp(array.type):
        rate = _PER_SECOND[array.type.unit]
        return values * (1000 // rate) if rate <= 1000 else values // (rate // 1000)
    if pa.types.is_date(array.type):
        return values * _MILLIS_PER_DAY
    return values if pa.types.is_time(array.type) else values * 1000


def to_timestamp(array: pa.Array, target: TimestampKind) -> pa.Array:
    """Cast timestamps of another precision, days, times of 1970-01-01, or seconds to timestamps."""
    kind = arrow_type(target)
    if target.precision <= 3:
        step = 10 ** (3 - target.precision)
        millis = _towards_zero(_millis(array), step) * step
        return _make_times(millis // 1000 if kind.unit == "s" else millis, array, kind)
    rate = _PER_SECOND[kind.unit]
    fine = pa.types.is_timestamp(array.type) and _PER_SECOND[array.type.unit] > 1000
    values = _integers(array) if fine else _millis(array)
    given = _PER_SECOND[array.type.unit] if fine else 1000
    if given > rate:
        values, factor = values // (given // rate), 1
    else:
        factor = rate // given
    limit = (2**63 - 1) // factor
    if bool(np.any((values > limit) | (values < -limit))):
        raise far_time_error(target)
    step = 10 ** ((6 if kind.unit == "us" else 9) - target.precision)
    return _make_times(values * factor // step * step, array, kind)


def fit_timestamps(array: pa.Array, target: TimestampKind, column: str | None = None) -> pa.Array:
    """Return stored timestamps of any unit in the type of a column; more digits are cut off towards the past."""
    kind = arrow_type(target)
    if array.type.unit == kind.unit:
        return array.view(kind)
    given, wanted = _PER_SECOND[array.type.unit], _PER_SECOND[kind.unit]
    if given > wanted:
        return _make_times(_integers(array) // (given // wanted), array, kind)
    try:
        return array.cast(pa.timestamp(kind.unit, array.type.tz)).view(kind)
    except pa.ArrowInvalid as error:
        raise far_time_error(target, column) from error


def to_date(array: pa.Array, zoned: bool) -> pa.Array:
    """Cast timestamps to days; `zoned` marks instants, which are cut towards the past."""
    millis = _millis(array)
    days = millis // _MILLIS_PER_DAY if zoned else _towards_zero(millis, _MILLIS_PER_DAY)
    return _make_times(days, array, pa.date32())


def to_time(array: pa.Array) -> pa.Array:
    """Cast timestamps to times of day; times of day do not change."""
    if pa.types.is_time(array.type):
        return array
    return _make_times(_millis(array) % _MILLIS_PER_DAY, array, pa.time32("ms"))


def to_seconds(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast timestamps to whole seconds since 1970; INT wraps."""
    return _make_times(_towards_zero(_millis(array), 1000), array, pa.int64()).cast(target, safe=False)
