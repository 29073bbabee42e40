"""Find the position of a literal among the values that a column can hold.

Invariant: `floor` is the largest value of the column type that is not larger than the literal. `exact` is true if it
equals the literal. Comparisons with the literal can therefore be replaced by comparisons with the floor (`bind`).
Floating columns do not hold exact decimals, so a literal is replaced by its nearest value, as in Java.
"""

from __future__ import annotations

import datetime
import math
from decimal import Context, Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from typing import Any

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.row.literals import parse_literal, round_to_single
from paimon.domain.text_checks import show_value
from paimon.domain.types.arrow import UNIT_NANOS, timestamp_unit
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

_BITS = {TinyIntType: 8, SmallIntType: 16, IntType: 32, BigIntType: 64}
_NANOS_PER_DAY = 86_400_000_000_000
_LARGEST_FLOAT = float.fromhex("0x1.fffffep+127")
_LARGEST_DOUBLE = float.fromhex("0x1.fffffffffffffp+1023")
_MOST_DIGITS = 400
_WIDE_CONTEXT = Context(prec=80)


class Beyond(Enum):
    """A literal that is smaller or larger than all values of a type."""

    BELOW = "below"
    ABOVE = "above"


@frozen
class Fit:
    """The position of a literal: the nearest internal value below it or `Beyond`, and whether both are equal."""

    floor: Any
    exact: bool = True


def fit_literal(value: Any, data_type: DataType) -> Fit:
    """Return a literal's position among a type's values; InvalidRequest for another kind, such as a text for INT."""
    match data_type:
        case DecimalType():
            return _fit_decimal(_to_fraction(value, data_type), data_type)
        case FloatType() | DoubleType():
            return _fit_floating(value, data_type)
        case DateType():
            return _fit_date(value)
        case TimeType():
            return _fit_whole(_to_millis(value), 0, 86_399_999)
        case TimestampType() | LocalZonedTimestampType():
            unit = UNIT_NANOS[timestamp_unit(data_type.precision)]
            position = _fit_signed(Fraction(parse_literal(value, data_type), unit), 64)
            return position if isinstance(position.floor, Beyond) else Fit(position.floor * unit, position.exact)
        case _ if isinstance(data_type, INTEGER_TYPES):
            return _fit_signed(_to_fraction(value, data_type), _BITS[type(data_type)])
    return Fit(parse_literal(value, data_type))


def _misfit_error(value: Any, kind: str, hint: str | None) -> InvalidRequest:
    shown = show_value(value)
    return InvalidRequest(
        f"{shown} is not a valid {kind}", subject=value if isinstance(value, str) else shown, hint=hint
    )


def _to_fraction(value: Any, data_type: DataType) -> Fraction:
    """Return the exact number of a literal. An extreme exponent is reduced to one that decides all comparisons."""
    try:
        if isinstance(value, bool | bytes):
            raise ValueError("not a number")
        if isinstance(value, int) and value.bit_length() > 4 * _MOST_DIGITS:  # Python writes not all digits
            return Fraction((1 if value > 0 else -1) * 10**_MOST_DIGITS)
        number = value if isinstance(value, Decimal) else Decimal(str(value).strip())
        if not number.is_finite():
            raise ValueError("not finite")
        if number and abs(number.adjusted()) > _MOST_DIGITS:
            size = _MOST_DIGITS if number.adjusted() > 0 else -_MOST_DIGITS
            number = Decimal((0, (1,), size)).copy_sign(number)
        return Fraction(number)
    except (InvalidOperation, ValueError) as error:
        raise _misfit_error(value, type(data_type).__name__.removesuffix("Type").upper(), "pass a number") from error


def _fit_whole(number: Fraction, smallest: int, largest: int) -> Fit:
    whole = math.floor(number)
    if whole < smallest:
        return Fit(Beyond.BELOW, exact=False)
    if whole > largest:
        return Fit(Beyond.ABOVE, exact=False)
    return Fit(whole, exact=whole == number)


def _fit_signed(number: Fraction, bits: int) -> Fit:
    return _fit_whole(number, -(1 << bits - 1), (1 << bits - 1) - 1)


def _fit_decimal(number: Fraction, data_type: DecimalType) -> Fit:
    largest = 10**data_type.precision - 1
    position = _fit_whole(number * 10**data_type.scale, -largest, largest)
    if isinstance(position.floor, Beyond):
        return position
    return Fit(Decimal(position.floor).scaleb(-data_type.scale, _WIDE_CONTEXT), position.exact)


def _fit_floating(value: Any, data_type: FloatType | DoubleType) -> Fit:
    try:
        if isinstance(value, bool | bytes):
            raise ValueError("not a number")
        wide = float(value)
    except OverflowError:
        wide = math.inf if value > 0 else -math.inf
    except (ValueError, TypeError) as error:
        raise _misfit_error(value, "number", "pass a number, 'NaN', 'Infinity' or '-Infinity'") from error
    number = round_to_single(wide) if isinstance(data_type, FloatType) else wide
    if math.isinf(number) and not _is_infinite(value):
        largest = _LARGEST_FLOAT if isinstance(data_type, FloatType) else _LARGEST_DOUBLE
        return Fit(largest if number > 0 else -math.inf, exact=False)
    return Fit(number)


def _is_infinite(value: Any) -> bool:
    return value in (math.inf, -math.inf) if not isinstance(value, str) else "inf" in value.lower()


def _fit_date(value: Any) -> Fit:
    """Return the position of a day, or of a time of day in it."""
    if not isinstance(value, datetime.datetime):
        try:
            return Fit(parse_literal(value, DateType()))
        except InvalidRequest:
            if not isinstance(value, str) or ":" not in value:
                raise
    return _fit_signed(Fraction(parse_literal(value, TimestampType(precision=9)), _NANOS_PER_DAY), 32)


def _to_millis(value: Any) -> Fraction:
    """Return a time of day in milliseconds, with fractions."""
    text = value.isoformat() if isinstance(value, datetime.time) else value
    if isinstance(text, str) and ":" in text:
        try:
            return Fraction(parse_literal(f"1970-01-01 {text.strip()}", TimestampType(precision=9)), 1_000_000)
        except InvalidRequest as error:
            raise _misfit_error(value, "TIME", error.hint) from None
    return Fraction(parse_literal(value, TimeType()))
