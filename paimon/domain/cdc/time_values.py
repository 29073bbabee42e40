"""Days, times of day and timestamps that events contain as text.

Invariant: a text is ISO 8601 with a blank or a `T`, with up to 9 digits of a second's fraction, and with or without an
offset from UTC. A timestamp without an offset is UTC. Digits that the type cannot hold are refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataType

Integers = npt.NDArray[np.int64]
_CLOCK = r"(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
_ZONE = r"(?:Z|(?P<sign>[+-])(?P<zone_hour>\d{2})(?::?(?P<zone_minute>\d{2}))?)?"
_TIME = rf"^{_CLOCK}{_ZONE}$"
_TIMESTAMP = rf"^(?P<day>\d{{4}}-\d{{2}}-\d{{2}})(?:[ T]{_CLOCK}{_ZONE})?$"
_DATE = r"^\d{4}-\d{2}-\d{2}Z?$"
_UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NANOS = 1_000_000_000
_SECONDS_PER_DAY = 86_400


def parse_times(texts: pa.StringArray, target: DataType) -> pa.Array:
    """Parse texts as values of a DATE, TIME or TIMESTAMP type; null for texts that are not such values."""
    if isinstance(target, dt.DateType):
        return _parse_days(pc.if_else(_matches(texts, _DATE), pc.utf8_rtrim(texts, "Z"), pa.scalar(None, pa.string())))
    if isinstance(target, dt.TimeType):
        parts = pc.extract_regex(texts, _TIME)
        seconds, nanos, good = _read_clock(parts)
        good &= (_read_offsets(parts) == 0) & (nanos % 1_000_000 == 0) & np.asarray(parts.is_valid())
        millis = seconds * 1_000 + nanos // 1_000_000
        return pa.array(np.where(good, millis, 0).astype(np.int32), mask=~good).cast(pa.time32("ms"))
    parts = pc.extract_regex(texts, _TIMESTAMP)
    days = _parse_days(pc.struct_field(parts, ["day"]))
    seconds, nanos, good = _read_clock(parts)
    whole = np.asarray(pc.fill_null(days.cast(pa.int32()), 0)).astype(np.int64) * _SECONDS_PER_DAY + seconds
    good &= np.asarray(days.is_valid())
    return _to_timestamps(whole - _read_offsets(parts), nanos, good, arrow_type(target))


def _to_timestamps(seconds: Integers, nanos: Integers, good: npt.NDArray[np.bool_], kind: pa.TimestampType) -> pa.Array:
    units = _UNITS_PER_SECOND[kind.unit]
    limit = (2**63 - 1) // units
    good = good & (nanos % (_NANOS // units) == 0) & (np.abs(seconds) < limit)
    values = np.where(good, seconds, 0) * units + nanos // (_NANOS // units)
    return pa.array(values, mask=~good).cast(kind)


def count_units(numbers: pa.Int64Array, unit: str, target: DataType) -> pa.Array:
    """Convert numbers of units since 1970 or since midnight to a DATE, TIME or TIMESTAMP type.

    `unit` is ``D``, ``s``, ``ms``, ``us`` or ``ns``. Numbers that the type cannot hold become null.
    """
    values, valid = np.asarray(pc.fill_null(numbers, 0)), np.asarray(numbers.is_valid())
    if isinstance(target, dt.DateType):
        per_day = 1 if unit == "D" else _SECONDS_PER_DAY * _UNITS_PER_SECOND[unit]
        days = values // per_day
        good = valid & (values % per_day == 0) & (np.abs(days) < 2**31)
        return pa.array(np.where(good, days, 0).astype(np.int32), mask=~good).cast(pa.date32())
    units = _UNITS_PER_SECOND.get(unit, 1)
    factor = _SECONDS_PER_DAY if unit == "D" else 1
    good = valid & (np.abs(values) < 2**63 // factor)
    seconds, rest = np.divmod(np.where(good, values, 0) * factor, units)
    nanos = rest * (_NANOS // units)
    if isinstance(target, dt.TimeType):
        good = good & (seconds >= 0) & (seconds < _SECONDS_PER_DAY) & (nanos % 1_000_000 == 0)
        millis = np.where(good, seconds * 1_000 + nanos // 1_000_000, 0)
        return pa.array(millis.astype(np.int32), mask=~good).cast(pa.time32("ms"))
    return _to_timestamps(seconds, nanos, good, arrow_type(target))


def isolate(values: pa.Array, convert: Callable[[pa.Array], pa.Array], kind: pa.DataType) -> pa.Array:
    """Convert values; a value that cannot be converted becomes null.

    `convert` takes any slice of the values and fails as a whole, so a failing slice is halved.
    """
    try:
        return convert(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        if len(values) == 1:
            return pa.nulls(1, kind)
    half = len(values) // 2
    return pa.concat_arrays([isolate(values[:half], convert, kind), isolate(values[half:], convert, kind)])


def _matches(texts: pa.StringArray, pattern: str) -> pa.BooleanArray:
    return pc.fill_null(pc.match_substring_regex(texts, pattern), False)


def _parse_days(texts: pa.StringArray) -> pa.Date32Array:
    return isolate(texts, lambda part: part.cast(pa.date32()), pa.date32())


def _read_number(parts: pa.StructArray, name: str) -> Integers:
    text = pc.fill_null(pc.struct_field(parts, [name]), "")
    return np.asarray(pc.if_else(pc.equal(text, ""), "0", text).cast(pa.int64()))


def _read_clock(parts: pa.StructArray) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
    """Return the seconds of the day, the nanoseconds, and which times exist."""
    hour, minute, second = (_read_number(parts, name) for name in ("hour", "minute", "second"))
    digits = pc.utf8_rpad(pc.fill_null(pc.struct_field(parts, ["fraction"]), ""), 9, "0")
    nanos = np.asarray(digits.cast(pa.int64()))
    return (hour * 60 + minute) * 60 + second, nanos, (hour < 24) & (minute < 60) & (second < 60)


def _read_offsets(parts: pa.StructArray) -> Integers:
    """Return the seconds by which the local time is ahead of UTC."""
    seconds = (_read_number(parts, "zone_hour") * 60 + _read_number(parts, "zone_minute")) * 60
    behind = np.asarray(pc.fill_null(pc.equal(pc.struct_field(parts, ["sign"]), "-"), False))
    return np.where(behind, -seconds, seconds)
