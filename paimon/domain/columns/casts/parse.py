"""Casts from texts.

Invariant: texts that Java reads are read. A text that is not a value of the type is refused by name, as Java refuses
the read. A text that does not fit into DECIMAL becomes null. A day is ``year-month-day``, a time is
``hour:minute[:second[.fraction]]``. A DATE is a day; text after a blank is ignored. A timestamp is both, separated by a
blank or a `T`; the time may be missing. Days and times that do not exist are refused, but in a timestamp, as in Java,
day 30 of a shorter month means its last day.
Source: `BinaryStringUtils`, `DateTimeUtils`.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.casts.numbers import fit_decimals
from paimon.domain.columns.casts.times import to_timestamp
from paimon.domain.errors import InvalidRequest
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.arrow_arrays import make_array
from paimon.domain.types.data_types import DataType
from paimon.domain.types.time_range import far_time_error
from paimon.domain.types.type_text import format_type
from paimon.domain.whitespace import JAVA_TRIMMED

_WIDE = 76
_TRUE = make_array(["t", "true", "y", "yes", "1"], pa.string())
_FALSE = make_array(["f", "false", "n", "no", "0"], pa.string())
_WHOLE = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FLOATING = r"^[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$"
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_DAY = r"(?P<year>[0-9]{1,4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
_NANOS_PER_SECOND = 1_000_000_000


def _check_texts(array: pa.Array, good: pa.Array, target: DataType) -> None:
    bad = array.filter(pc.invert(pc.fill_null(good, True)))
    if len(bad):
        raise InvalidRequest(
            f"Text {bad[0].as_py()!r} is not a valid {format_type(target.with_nullable(True))}",
            subject=bad[0].as_py(),
            hint="the older texts of the column do not fit its new type: change the type back",
        )


def parse_texts(array: pa.Array, target: DataType) -> pa.Array:
    """Cast texts to a canonical array of a type that contains no other types."""
    match target:
        case dt.BooleanType():
            return _boolean(array, target)
        case dt.FloatType() | dt.DoubleType():
            return _floating(array, target)
        case dt.DecimalType():
            return _decimal(array, target)
        case _ if isinstance(target, dt.INTEGER_TYPES):
            return _integer(array, target)
    return _time(array, target)


def _boolean(array: pa.Array, target: DataType) -> pa.Array:
    words = pc.utf8_lower(array)
    true, false = pc.is_in(words, value_set=_TRUE), pc.is_in(words, value_set=_FALSE)
    _check_texts(array, pc.or_(pc.or_(true, false), pc.is_null(array)), target)
    return pc.if_else(array.is_null(), pa.scalar(None, pa.bool_()), true)


def _integer(array: pa.Array, target: DataType) -> pa.Array:
    kind = arrow_type(target)
    _check_texts(array, pc.match_substring_regex(array, _WHOLE), target)
    short = pc.replace_substring_regex(array, r"^\+?(-?)0*([0-9]*)(\..*)?$", r"\10\2")
    _check_texts(array, pc.less_equal(pc.utf8_length(short), 20), target)
    wide = short.cast(pa.decimal128(38, 0))
    info = np.iinfo(kind.to_pandas_dtype())
    fits = pc.and_(
        pc.greater_equal(wide, pa.scalar(int(info.min), pa.decimal128(38, 0))),
        pc.less_equal(wide, pa.scalar(int(info.max), pa.decimal128(38, 0))),
    )
    _check_texts(array, fits, target)
    return short.cast(pa.int64()).cast(kind)


def _floating(array: pa.Array, target: DataType) -> pa.Array:
    trimmed = pc.utf8_trim(array, JAVA_TRIMMED)
    _check_texts(array, pc.match_substring_regex(trimmed, _FLOATING), target)
    plain = pc.replace_substring_regex(trimmed, r"[fFdD]$", "")
    plain = pc.replace_substring_regex(plain, r"^\+", "")
    kind = arrow_type(target)
    try:
        return plain.cast(kind)
    except pa.ArrowInvalid:  # out of range, which Java makes infinite or zero
        values = np.array([0.0 if v is None else float(v) for v in plain.to_pylist()])
        return pa.array(values, mask=np.asarray(array.is_null())).cast(kind, safe=False)


def _decimal(array: pa.Array, target: dt.DecimalType) -> pa.Array:
    _check_texts(array, pc.match_substring_regex(array, _NUMBER), target)
    kind = arrow_type(target)
    try:
        return fit_decimals(array.cast(pa.decimal256(_WIDE, _WIDE // 2)), kind)
    except pa.ArrowInvalid:  # some have more digits than the widest Arrow type
        values = [None if text is None else _exactly_rounded(Decimal(text), kind) for text in array.to_pylist()]
        return pa.array(values, kind)


def _exactly_rounded(number: Decimal, kind: pa.Decimal128Type) -> Decimal | None:
    if number.adjusted() >= kind.precision:
        return None
    if number.adjusted() < -kind.scale - 1:
        return Decimal(0)
    digits = Context(prec=len(number.as_tuple().digits) + 2 * _WIDE, rounding=ROUND_HALF_UP)
    rounded = number.quantize(Decimal(1).scaleb(-kind.scale), context=digits)
    return rounded if rounded.adjusted() < kind.precision - kind.scale or not rounded else None


def _time(array: pa.Array, target: DataType) -> pa.Array:
    """Cast days and times; bare numbers are days, milliseconds, or units of the timestamp's precision since 1970."""
    bare = pc.fill_null(pc.match_substring_regex(array, r"^-?[0-9]{1,9}$"), False)
    if not pc.any(bare).as_py():
        return _formed_time(array, target)
    missing = pa.scalar(None, pa.string())
    numbers = pc.if_else(bare, array, missing).cast(pa.int64())
    kind = arrow_type(target)
    counted = numbers.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32()).cast(kind)
    return pc.coalesce(counted, _formed_time(pc.if_else(bare, missing, array), target))


def _formed_time(array: pa.Array, target: DataType) -> pa.Array:
    _check_texts(array, pc.match_substring_regex(array, find_pattern(target)), target)
    made, real = parse_time_texts(array, target)
    _check_texts(array, pc.or_(real, array.is_null()), target)
    return made


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
