"""Where a literal lies among the values that a column can hold.

Law: `floor` is the largest value of the column's type that is not above the literal, `exact` whether it is the literal
itself. Comparisons with the literal and with its floor then agree (`bind`). Floating columns hold no exact decimals,
so a literal of theirs is its nearest value, as in Java.
"""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Context, Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from typing import Any

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.row.literals import literal
from paimon.domain.types.arrow import timestamp_unit
from paimon.domain.types.data_types import (
    INTEGER_TYPES,
    BigIntType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
)

UNIT_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_BITS = {TinyIntType: 8, SmallIntType: 16, IntType: 32, BigIntType: 64}
_NANOS_PER_DAY = 86_400_000_000_000
_LARGEST_FLOAT = float.fromhex("0x1.fffffep+127")
_LARGEST_DOUBLE = float.fromhex("0x1.fffffffffffffp+1023")
_MOST_DIGITS = 400
_WIDE = Context(prec=80)


class Beyond(Enum):
    """Outside of all values of a type."""

    BELOW = "below"
    ABOVE = "above"


@frozen
class Fit:
    """A literal's place: an internal value (or beyond all of them), and whether it is the literal itself."""

    floor: Any
    exact: bool = True


def fit(value: Any, data_type: DataType) -> Fit:
    """The place of a literal that is not None among the values of a type.

    Raises
    ------
    InvalidRequest
        If the literal is not of this kind at all (a text that is no number for an INT, say).
    """
    match data_type:
        case DecimalType():
            return _decimal(_number(value, data_type), data_type)
        case FloatType() | DoubleType():
            return _floating(value, data_type)
        case DateType():
            return _date(value)
        case TimeType():
            return _whole(_millis(value), 0, 86_399_999)
        case TimestampType() | LocalZonedTimestampType():
            unit = UNIT_NANOS[timestamp_unit(data_type.precision)]
            place = _signed(Fraction(literal(value, data_type), unit), 64)
            return place if isinstance(place.floor, Beyond) else Fit(place.floor * unit, place.exact)
        case _ if isinstance(data_type, INTEGER_TYPES):
            return _signed(_number(value, data_type), _BITS[type(data_type)])
    return Fit(literal(value, data_type))


def _no(value: Any, kind: str, hint: str) -> InvalidRequest:
    return InvalidRequest(f"{value!r} is no {kind}", subject=str(value), hint=hint)


def _number(value: Any, data_type: DataType) -> Fraction:
    """The number that a literal is, exactly; of absurd exponents only what decides comparisons is kept."""
    try:
        if isinstance(value, bool | bytes):
            raise ValueError("no number")
        number = value if isinstance(value, Decimal) else Decimal(str(value).strip())
        if not number.is_finite():
            raise ValueError("not finite")
        if number and abs(number.adjusted()) > _MOST_DIGITS:
            size = _MOST_DIGITS if number.adjusted() > 0 else -_MOST_DIGITS
            number = Decimal((0, (1,), size)).copy_sign(number)
        return Fraction(number)
    except (InvalidOperation, ValueError) as error:
        raise _no(value, type(data_type).__name__.removesuffix("Type").upper(), "give a number") from error


def _whole(number: Fraction, smallest: int, largest: int) -> Fit:
    whole = math.floor(number)
    if whole < smallest:
        return Fit(Beyond.BELOW, exact=False)
    if whole > largest:
        return Fit(Beyond.ABOVE, exact=False)
    return Fit(whole, exact=whole == number)


def _signed(number: Fraction, bits: int) -> Fit:
    return _whole(number, -(1 << bits - 1), (1 << bits - 1) - 1)


def _decimal(number: Fraction, data_type: DecimalType) -> Fit:
    largest = 10**data_type.precision - 1
    place = _whole(number * 10**data_type.scale, -largest, largest)
    if isinstance(place.floor, Beyond):
        return place
    return Fit(Decimal(place.floor).scaleb(-data_type.scale, _WIDE), place.exact)


def _floating(value: Any, data_type: FloatType | DoubleType) -> Fit:
    try:
        if isinstance(value, bool | bytes):
            raise ValueError("no number")
        wide = float(value)
    except OverflowError:
        wide = math.inf if value > 0 else -math.inf
    except (ValueError, TypeError) as error:
        raise _no(value, "number", "give a number, 'NaN', 'Infinity' or '-Infinity'") from error
    number = _single(wide) if isinstance(data_type, FloatType) else wide
    if math.isinf(number) and not _is_infinite(value):
        largest = _LARGEST_FLOAT if isinstance(data_type, FloatType) else _LARGEST_DOUBLE
        return Fit(largest if number > 0 else -math.inf, exact=False)
    return Fit(number)


def _is_infinite(value: Any) -> bool:
    return value in (math.inf, -math.inf) if not isinstance(value, str) else "inf" in value.lower()


def _single(wide: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", wide))[0])
    except OverflowError:
        return math.copysign(math.inf, wide)


def _date(value: Any) -> Fit:
    """A day, or a moment in it."""
    if not isinstance(value, datetime.datetime):
        try:
            return Fit(literal(value, DateType()))
        except InvalidRequest:
            if not isinstance(value, str) or ":" not in value:
                raise _no(value, "DATE", "give a day such as '2026-01-31'") from None
    return _signed(Fraction(literal(value, TimestampType(precision=9)), _NANOS_PER_DAY), 32)


def _millis(value: Any) -> Fraction:
    """A time of day in milliseconds, which may have a fraction."""
    text = value.isoformat() if isinstance(value, datetime.time) else value
    if isinstance(text, str) and ":" in text:
        try:
            return Fraction(literal(f"1970-01-01 {text.strip()}", TimestampType(precision=9)), 1_000_000)
        except InvalidRequest:
            raise _no(value, "TIME", "give a time of day such as '12:30:00.123'") from None
    return Fraction(literal(value, TimeType()))
