"""Literals that users write, as Python values or SQL text, converted to internal values of a column.

Invariant: a literal fits or is refused; nothing is rounded, cut or wrapped silently. Text is read in each type's own
form, so that partition specs and predicates can be given as text.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from paimon.domain.errors import InvalidRequest
from paimon.domain.text_checks import is_unicode, show_value
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    CHARACTER_TYPES,
    INTEGER_TYPES,
    ArrayType,
    BigIntType,
    BlobType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VectorType,
)

_INFINITY_TEXT = re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""The calendar repeats after these; Python's dates end at the year 9999."""
_MILLIS_PER_DAY = 86_400_000
_NANOS_PER_DAY = _MILLIS_PER_DAY * 1_000_000
INTEGER_BITS = {TinyIntType: 8, SmallIntType: 16, IntType: 32, BigIntType: 64}
_DATE_TEXT = re.compile(r"([+-]?\d{4,9})-(\d{1,2})-(\d{1,2})")
_TIME_TEXT = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")
_ZONE_TEXT = re.compile(r"(?:\s*(Z|UTC)|([+-])(\d{2})(?::?(\d{2}))?)$")

_DATE_SHAPE = "'2026-01-31'"
_TIME_SHAPE = "'12:30:00.123'"
_TIMESTAMP_SHAPE = "'2026-01-31 12:30:00'"


class _Misfit(Exception):
    """Why a value does not fit, as a hint for the person who wrote it."""


def parse_literal(value: Any, data_type: DataType) -> Any:
    """Convert a Python value or the text of an SQL literal to an internal value (see `paimon.domain.row.values`).

    None is null. A value that does not fit the type raises `InvalidRequest`.

    >>> parse_literal("1970-01-02", DateType()), parse_literal("12.5", DecimalType(10, 2))
    (1, Decimal('12.50'))
    """
    if value is None:
        return None
    try:
        return _literal(value, data_type)
    except InvalidRequest:
        raise
    except (_Misfit, ValueError, TypeError, LookupError, ArithmeticError) as error:
        # Python's own messages name its classes, so only the reasons of this module are shown.
        hint = str(error) if isinstance(error, _Misfit) else _describe_expected(data_type)
        raise InvalidRequest(
            f"Value {show_value(value)} is not a valid {_type_name(data_type)}",
            subject=value if isinstance(value, str) else show_value(value),
            hint=hint,
        ) from error


def _literal(value: Any, data_type: DataType) -> Any:
    match data_type:
        case BooleanType():
            return _boolean(value)
        case FloatType() | DoubleType():
            return _floating(value, isinstance(data_type, FloatType))
        case DecimalType(precision=precision, scale=scale):
            return _decimal(value, precision, scale)
        case DateType():
            return _date(value)
        case TimeType():
            return _time(value)
        case TimestampType() | LocalZonedTimestampType():
            return _timestamp(value, isinstance(data_type, LocalZonedTimestampType))
        case _ if isinstance(data_type, INTEGER_TYPES):
            return _integer(value, INTEGER_BITS[type(data_type)])
        case _ if isinstance(data_type, CHARACTER_TYPES):
            return _text(value)
        case _ if isinstance(data_type, (*BYTES_TYPES, BlobType)):
            return _bytes(value)
        case _:
            return _nested_literal(value, data_type)


def _describe_expected(data_type: DataType) -> str:
    """Return the hint for a value of another kind."""
    match data_type:
        case DateType():
            return f"give a day such as {_DATE_SHAPE}"
        case TimeType():
            return f"give a time of day such as {_TIME_SHAPE}"
        case TimestampType() | LocalZonedTimestampType():
            return f"give a date and a time such as {_TIMESTAMP_SHAPE}"
        case ArrayType() | VectorType():
            return "give a list"
        case MapType() | MultisetType():
            return "give a mapping, or a list of pairs"
        case RowType():
            return "give a mapping of field names, or a list with a value for each field"
        case _ if isinstance(data_type, INTEGER_TYPES):
            return "give a whole number"
        case _:
            return "give a number"


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "false": False}
    if isinstance(value, str) and value.strip().lower() in known:
        return known[value.strip().lower()]
    raise _Misfit("use true or false")


def _integer(value: Any, bits: int) -> int:
    if isinstance(value, bool):
        raise _Misfit("a boolean is not a number")
    if isinstance(value, str):
        decimal = Decimal(value.strip())
        if decimal.is_finite() and decimal.adjusted() > bits:  # 1e999999999 would take all memory as an integer
            raise _Misfit(f"the value needs more than {bits} bits")
        number = int(decimal)
    else:
        number = int(value)
    if Decimal(float(value) if isinstance(value, float | np.floating) else str(value).strip()) != number:
        raise _Misfit("the value has a fraction")
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise _Misfit(f"the value needs more than {bits} bits")
    return number


def _floating(value: Any, is_single: bool) -> float:
    """Return a number; only an infinity becomes one."""
    if isinstance(value, bool):
        raise _Misfit("a boolean is not a number")
    if isinstance(value, np.datetime64):
        raise TypeError
    number = float(value)
    if math.isinf(round_to_single(number) if is_single else number) and not _INFINITY_TEXT.fullmatch(str(value)):
        raise _Misfit("the value is beyond the largest number of the type")
    return number


def round_to_single(number: float) -> float:
    """Return the nearest number of single precision; an infinity beyond the largest one."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    if isinstance(value, bool):
        raise _Misfit("a boolean is not a number")
    try:
        sign, digits, exponent = Decimal(str(value).strip()).as_tuple()
    except ArithmeticError as error:
        raise _Misfit("give a number") from error
    if not isinstance(exponent, int):
        raise _Misfit("the value is not finite")
    number, shift = int("".join(map(str, digits))), exponent + scale
    # A short text such as 1e999999999 names a number of any length: the power of ten is bounded before it is taken.
    shift = max(-len(digits), min(shift, precision)) if number else 0
    scaled, rest = (number * 10**shift, 0) if shift >= 0 else divmod(number, 10**-shift)
    if rest:
        raise _Misfit(f"the value has more than {scale} digits after the point")
    if scaled >= 10**precision:
        raise _Misfit(f"the value has more than {precision} digits")
    return Decimal((sign if scaled else 0, tuple(map(int, str(scaled))), -scale))


def _date(value: Any) -> int:
    if isinstance(value, np.datetime64):
        value = np.datetime_as_string(value).item()
    if isinstance(value, datetime.datetime):
        raise _Misfit(f"the value has a time of day; give a day such as {_DATE_SHAPE}")
    if isinstance(value, datetime.date):
        return value.toordinal() - _EPOCH_DAY
    if isinstance(value, str):
        found = _DATE_TEXT.fullmatch(value.strip())
        if found:
            return _calendar_day(*map(int, found.groups()))
    return _integer(value, 32)


def _calendar_day(year: int, month: int, day: int) -> int:
    cycles, year_of_cycle = divmod(year - _CYCLE_YEARS, _CYCLE_YEARS)
    try:
        near = datetime.date(year_of_cycle + _CYCLE_YEARS, month, day)
    except ValueError as error:
        raise _Misfit(f"the calendar has no such day; give one such as {_DATE_SHAPE}") from error
    return _integer(near.toordinal() + cycles * _CYCLE_DAYS - _EPOCH_DAY, 32)


def _time(value: Any) -> int:
    if isinstance(value, datetime.time):
        nanos = _clock_nanos(value.hour, value.minute, value.second, value.microsecond * 1000)
    elif isinstance(value, str) and ":" in value:
        nanos = _time_text(value.strip())
    else:
        nanos = _integer(value, 32) * 1_000_000
    millis, rest = divmod(nanos, 1_000_000)
    if rest or not 0 <= millis < _MILLIS_PER_DAY:
        raise _Misfit("a time of day has whole milliseconds below 24 hours")
    return millis


def _timestamp(value: Any, zoned: bool) -> int:
    if isinstance(value, np.datetime64):
        value = np.datetime_as_string(value).item()
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            if not zoned:
                raise _Misfit("the value has a time zone, the column has none")
            value = value.astimezone(datetime.UTC)
        day: int = value.toordinal() - _EPOCH_DAY
        nanos = int(getattr(value, "nanosecond", 0)) + value.microsecond * 1000
        return day * _NANOS_PER_DAY + _clock_nanos(value.hour, value.minute, value.second, nanos)
    if isinstance(value, datetime.date):
        return (value.toordinal() - _EPOCH_DAY) * _NANOS_PER_DAY
    if isinstance(value, str):
        return _timestamp_text(value.strip(), zoned)
    raise _Misfit(f"give a datetime, or text such as {_TIMESTAMP_SHAPE}")


def _timestamp_text(text: str, zoned: bool) -> int:
    shift = 0
    zone = _ZONE_TEXT.search(text) if ":" in text else None
    if zone is not None and zone.start() > 10:
        if not zoned:
            raise _Misfit("the value has a time zone, the column has none")
        if zone[2]:
            shift = (int(zone[3]) * 60 + int(zone[4] or 0)) * 60_000_000_000 * (-1 if zone[2] == "+" else 1)
        text = text[: zone.start()]
    day, _, clock = text.replace("T", " ").strip().partition(" ")
    if not _DATE_TEXT.fullmatch(day):
        raise _Misfit(f"give a date and a time such as {_TIMESTAMP_SHAPE}")
    return _date(day) * _NANOS_PER_DAY + (_time_text(clock.strip()) if clock else 0) + shift


def _time_text(text: str) -> int:
    found = _TIME_TEXT.fullmatch(text)
    if found is None:
        raise _Misfit(f"give a time of day such as {_TIME_SHAPE}")
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise _Misfit(f"hours end at 23, minutes and seconds at 59; give a time of day such as {_TIME_SHAPE}")
    return _clock_nanos(hour, minute, second, int((found[4] or "0").ljust(9, "0")))


def _clock_nanos(hour: int, minute: int, second: int, nanos: int) -> int:
    return ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Misfit("write the value in quotes")
    if not is_unicode(value):
        raise _Misfit("remove the unpaired surrogates")
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    raise _Misfit("give bytes or text")


def has_shape(value: Any, data_type: DataType) -> bool:
    """Return whether a value has the parts of a nested type; text has none."""
    if isinstance(value, str | bytes | bytearray) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        return False
    parts = value if isinstance(value, Sequence | np.ndarray) else None
    match data_type:
        case RowType(fields=fields):
            return hasattr(value, "keys") or (parts is not None and len(parts) == len(fields))
        case MapType() | MultisetType() if not hasattr(value, "items"):
            return parts is not None and all(
                isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2 for pair in parts
            )
        case MapType() | MultisetType():
            return True
        case _:
            return not hasattr(value, "keys") or hasattr(value, "dtype")  # a series of pandas has both


def _nested_literal(value: Any, data_type: DataType) -> Any:
    if not has_shape(value, data_type):
        raise TypeError
    match data_type:
        case ArrayType(element=element):
            return [parse_literal(v, element) for v in value]
        case MapType(key=key, value=item):
            pairs = value.items() if hasattr(value, "items") else value
            return [(parse_literal(k, key), parse_literal(v, item)) for k, v in pairs]
        case RowType(fields=fields):
            cells = [value[f.name] for f in fields] if hasattr(value, "keys") else value
            return tuple(parse_literal(v, f.type) for v, f in zip(cells, fields, strict=True))
        case _:
            raise _Misfit("this type has no literals")


def _type_name(data_type: DataType) -> str:
    if isinstance(data_type, LocalZonedTimestampType):
        return "TIMESTAMP_LTZ"
    return type(data_type).__name__.removesuffix("Type").upper()
