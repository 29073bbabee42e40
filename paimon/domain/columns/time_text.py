"""Dates and timestamps as text, also those of years that Arrow does not print: it writes '<value out of range: …>'.

Invariant: `format_times` writes every year in full. `format_java_times` writes what Java's casts write: exactly four
characters for a year, which are its last four digits from year 10000 on, and no digits before year 0.
Source: `DateTimeUtils.formatTimestamp`, `formatDate`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]

_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896
"""The first day of year 0, and the last of year 9999."""
_FAR_DAYS = 32_000 * 365
_JULIAN_SHIFT = 2_440_588 + 32_044


def has_printable_years(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which dates or timestamps have a year from 1 to 9999; those that are null do."""
    days = _split_days(array)[0]
    return (days >= _FIRST_DAY + 366) & (days <= _LAST_DAY)


def has_far_times(array: pa.Array) -> bool:
    """Return whether there are dates or timestamps that Arrow does not print."""
    return bool(np.any(np.abs(_split_days(array)[0]) > _FAR_DAYS))


def format_times(array: pa.Array) -> pa.StringArray:
    """Return the text of dates or timestamps as Arrow writes it, for any year."""
    text = array.cast(pa.string())
    days, ticks = _split_days(array)
    far = np.abs(days) > _FAR_DAYS
    if not far.any():
        return text
    years = _to_calendar(days[far])[0]
    cycles = (years - 2000) // _CYCLE_YEARS
    near = _join_days(days[far] - cycles * _CYCLE_DAYS, ticks[far], array.type).cast(pa.string())
    rest = pc.utf8_slice_codeunits(near, 4)
    found = pc.binary_join_element_wise(pa.array(years).cast(pa.string()), rest, "")
    return pc.replace_with_mask(text, pa.array(far), found)


def format_java_times(array: pa.Array) -> pa.StringArray:
    """Return the text of dates, or of timestamps without a time zone, as Java casts them."""
    text = array.cast(pa.string())
    days, ticks = _split_days(array)
    odd = (days < _FIRST_DAY) | (days > _LAST_DAY)
    if not odd.any():
        return text
    days, ticks = days[odd], ticks[odd]
    calendar = _to_java_calendar(days) if pa.types.is_date(array.type) else _to_calendar(days)
    found = pa.array([_join_java_digits(*map(int, parts)) for parts in zip(*calendar, strict=True)], pa.string())
    if not pa.types.is_date(array.type):
        clock = pc.utf8_slice_codeunits(_join_days(np.zeros_like(days), ticks, array.type).cast(pa.string()), 10)
        found = pc.binary_join_element_wise(found, clock, "")
    return pc.replace_with_mask(text, pa.array(odd), found)


def _split_days(array: pa.Array) -> tuple[Integers, Integers]:
    """Return the days since 1970, and the units within the day; zero where it is null."""
    if pa.types.is_date(array.type):
        days = np.asarray(array.cast(pa.int32()).fill_null(0)).astype(np.int64)
        return days, np.zeros_like(days)
    values = np.asarray(array.cast(pa.int64()).fill_null(0))
    per_day = _PER_DAY[array.type.unit]
    return values // per_day, values % per_day


def _join_days(days: Integers, ticks: Integers, kind: pa.DataType) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(days).cast(pa.int32()).cast(kind)
    return pa.array(days * _PER_DAY[kind.unit] + ticks).cast(kind)


def _to_calendar(days: Integers) -> tuple[Integers, Integers, Integers]:
    """Return year, month and day of the proleptic Gregorian calendar."""
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    numbers = months.astype(np.int64)
    return numbers // 12 + 1970, numbers % 12 + 1, days - months.astype("datetime64[D]").astype(np.int64) + 1


def _to_java_calendar(days: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the numbers that Java computes for days: the same, except before March of the year -4800."""
    shifted = _wrap_int32(days + _JULIAN_SHIFT)
    cycle, in_cycle = _divide(shifted, _CYCLE_DAYS)
    century = _divide((_divide(in_cycle, 36_524)[0] + 1) * 3, 4)[0]
    leap, in_leap = _divide(in_cycle - century * 36_524, 1_461)
    year_in_leap = _divide((_divide(in_leap, 365)[0] + 1) * 3, 4)[0]
    in_year = in_leap - year_in_leap * 365
    month = _divide(in_year * 5 + 308, 153)[0] - 2
    day = in_year - _divide((month + 4) * 153, 5)[0] + 123
    carry, month = _divide(month + 2, 12)
    return cycle * _CYCLE_YEARS + century * 100 + leap * 4 + year_in_leap - 4800 + carry, month + 1, day


def _divide(values: Integers, divisor: int) -> tuple[Integers, Integers]:
    """Divide as Java does: towards zero, with a remainder of the sign of the value."""
    quotient = np.where(values < 0, -(-values // divisor), values // divisor)
    return quotient, values - quotient * divisor


def _wrap_int32(values: Integers) -> Integers:
    return values.astype(np.int32).astype(np.int64)


def _join_java_digits(year: int, month: int, day: int) -> str:
    return f"{_to_java_digits(year, 4)}-{_to_java_digits(month, 2)}-{_to_java_digits(day, 2)}"


def _to_java_digits(number: int, count: int) -> str:
    """Return the last digits of a number; those of a negative one are the characters before '0'."""
    sign = -1 if number < 0 else 1
    return "".join(chr(ord("0") + sign * (abs(number) // 10**place % 10)) for place in reversed(range(count)))
