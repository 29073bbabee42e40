"""Values that events contain as text: bytes (base64, Latin-1, two's complement), days, times of day and timestamps.

Invariant: a time is ISO 8601 with a blank or a `T`, with up to 9 digits of a second's fraction, and with or without an
offset from UTC. A timestamp without an offset is UTC. Digits that the type cannot hold are refused.
"""

# A column is decoded as a whole: its texts are joined to one buffer, numpy computes all bytes, and the lengths of the
# texts give the offsets of the result. A text that is not valid is replaced by an empty one before, and by null after.
#
#     texts               "AQI="                "/w=="
#     6 bits for each     00 16 08 00           63 48 00 00
#     3 bytes for four    01 02 00              ff 00 00
#     without padding     01 02                 ff              lengths 2 and 1, offsets 0, 2, 3
#
# Latin-1: JSON is UTF-8, in which U+0080 to U+00FF are two bytes. C2 xx means the byte xx, and C3 xx means xx + 40.
#
# Decimals are whole numbers in two's complement, the highest byte first, of any length. They are extended by their sign
# to 16 bytes and reversed, which is the memory of a decimal128.

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
Flags = npt.NDArray[np.bool_]
_BAD = 255
_SIXES = np.full(256, _BAD, np.uint8)
_SIXES[[ord(c) for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"]] = range(64)
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_DECIMAL_BYTES = 16


def decode_base64(texts: pa.StringArray) -> pa.BinaryArray:
    """Return the bytes of base64 texts; null for null, and for texts that are not base64."""
    good = pc.fill_null(pc.match_substring_regex(texts, _BASE64), False)
    filled = pc.if_else(good, texts, "")
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(filled)], filled), "")[0].as_buffer()
    data = np.frombuffer(whole, np.uint8)
    sixes = np.where(data == ord("="), 0, _SIXES[data]).astype(np.uint32).reshape(-1, 4)
    joined = (sixes[:, 0] << 18) | (sixes[:, 1] << 12) | (sixes[:, 2] << 6) | sixes[:, 3]
    made = np.stack([joined >> 16, joined >> 8, joined], axis=1).astype(np.uint8).ravel()
    lengths = np.asarray(pc.binary_length(filled)).astype(np.int64)
    padding = np.asarray(pc.count_substring(filled, "=")).astype(np.int64)
    return _build_binary(_drop_padding(made, lengths // 4 * 3, padding), lengths // 4 * 3 - padding, np.asarray(good))


def _drop_padding(data: npt.NDArray[np.uint8], lengths: Integers, padding: Integers) -> npt.NDArray[np.uint8]:
    """Return bytes without the last ones of each value."""
    ends = np.cumsum(lengths)
    kept = np.ones(len(data), bool)
    for count in (1, 2):
        kept[ends[padding >= count] - count] = False
    return data[kept]


def decode_latin1(texts: pa.StringArray) -> pa.BinaryArray:
    """Return the bytes that texts contain as characters up to U+00FF; null for null and for other characters."""
    good = pc.fill_null(pc.match_substring_regex(texts, r"(?s)^[\x{00}-\x{FF}]*$"), False)
    filled = pc.if_else(good, texts, "")
    offsets = np.asarray(pc.binary_length(filled)).astype(np.int64)
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(filled)], filled), "")[0].as_buffer()
    data = np.frombuffer(whole, np.uint8)
    leads = data >= 0xC2
    after_lead = np.append(False, leads[:-1]) if len(data) else leads
    high = np.append(0, data[:-1]) == 0xC3 if len(data) else leads
    made = np.where(after_lead & high, data + 0x40, data).astype(np.uint8)[~leads]
    ends = np.cumsum(offsets)
    counted = np.append(0, np.cumsum(leads))
    dropped = counted[ends] - counted[ends - offsets]
    return _build_binary(made, offsets - dropped, np.asarray(good))


def _build_binary(data: npt.NDArray[np.uint8], lengths: Integers, good: Flags) -> pa.BinaryArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    made = pa.BinaryArray.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pc.if_else(pa.array(good), made, pa.scalar(None, pa.binary()))


def to_decimals(values: pa.BinaryArray, scale: int) -> pa.Array:
    """Return decimals from big-endian two's complement without the point; null for over 38 digits."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(values), 0)).astype(np.int64)
    good = (lengths > 0) & (lengths <= _DECIMAL_BYTES)
    filled = pc.if_else(pa.array(good), values, b"\0")
    lengths = np.where(good, lengths, 1)
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(filled)], filled), b"")[0].as_buffer()
    data = np.frombuffer(whole, np.uint8)
    starts = np.cumsum(lengths) - lengths
    wide = np.repeat(np.where(data[starts] >= 0x80, 0xFF, 0).astype(np.uint8)[:, None], _DECIMAL_BYTES, axis=1)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(data)) - np.repeat(starts, lengths)
    wide[rows, _DECIMAL_BYTES - np.repeat(lengths, lengths) + places] = data
    buffer = pa.py_buffer(np.ascontiguousarray(wide[:, ::-1]))
    made = pa.Array.from_buffers(pa.decimal128(38, scale), len(lengths), [None, buffer])
    limit = pa.scalar(10**38 - 1, pa.decimal256(76, 0))
    digits = pa.Array.from_buffers(pa.decimal128(38, 0), len(lengths), [None, buffer]).cast(pa.decimal256(76, 0))
    fits = pc.and_(pc.less_equal(pc.abs(digits), limit), pa.array(good))
    return pc.if_else(fits, made, pa.scalar(None, made.type))


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


def _to_timestamps(seconds: Integers, nanos: Integers, good: Flags, kind: pa.TimestampType) -> pa.Array:
    units = _UNITS_PER_SECOND[kind.unit]
    limit = (2**63 - 1) // units
    good = good & (nanos % (_NANOS // units) == 0) & (np.abs(seconds) < limit)
    values = np.where(good, seconds, 0) * units + nanos // (_NANOS // units)
    return pa.array(values, mask=~good).cast(kind)


def count_units(numbers: pa.Int64Array, unit: str, target: DataType) -> pa.Array:
    """Convert numbers of a `unit` since 1970 or midnight to a type; null where the type cannot hold them."""
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
    """Convert values, with null for what fails: a failing slice is halved, because `convert` fails as a whole."""
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


def _read_clock(parts: pa.StructArray) -> tuple[Integers, Integers, Flags]:
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
