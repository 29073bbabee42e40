"""Partition values as text, in the two renderings that tables may ask for, and directories and specs of partitions.

Invariant: equal values have equal texts, in Java's form (``1.0E10``, ``2024-01-01T00:00``). A path is built from values
and never parsed: data is found through manifests only. Null, empty and blank values share the default directory.
Characters that a file system could misread are escaped as ``%XX``. Specs of users name partition columns only; text is
read as the type of the column, and the default name means null.
Source: `InternalRowPartitionComputer`, `PartitionPathUtils`, `CastExecutors`, `DateTimeUtils`, `toString` of numbers
and date-times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from paimon.domain.columns.java_text import format_java_float
from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.row.literals import parse_literal
from paimon.domain.row.values import to_array
from paimon.domain.text_checks import check_text
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    TIMESTAMP_TYPES,
    BooleanType,
    DataField,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    TimeType,
)
from paimon.domain.whitespace import is_blank

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


_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{}[]^") | {chr(code) for code in range(0x20)}


def format_partition_path(
    values: Sequence[Any], fields: Sequence[DataField], default_name: str, legacy_name: bool = True
) -> str:
    """Build the path of a partition below the table, such as ``"day=19000/region=eu"``; empty without partitions.

    `values` are internal values, parallel to `fields`. `default_name` represents null and blank values. With
    `legacy_name`, dates are day numbers, times are milliseconds, and timestamps have a ``T``.
    """
    parts = []
    for value, column in zip(values, fields, strict=True):
        render = format_legacy_text if legacy_name else format_plain_text
        text = default_name if value is None else render(value, column.type)
        parts.append(f"{escape(column.name)}={escape(default_name if is_blank(text) else text)}")
    return "/".join(parts)


def escape(text: str) -> str:
    """Escape the characters that are special in paths as ``%XX``.

    >>> escape("a/b=c")
    'a%2Fb%3Dc'
    """
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)


def parse_partition_spec(
    spec: Mapping[str, object], fields: Sequence[DataField], default_name: str
) -> Mapping[str, Any]:
    """Parse a partition spec to internal values in column order; `default_name` means null."""
    spec = _mapping(spec)
    names = [f.name for f in fields]
    for name in spec:
        check_text(name, "partition column")
        if name not in names:
            raise InvalidRequest(
                f"Column {name!r} is not a partition column",
                subject=name,
                hint=did_you_mean(name, names) or "the table has no partitions; {} selects all of it",
            )
    return {
        f.name: None if spec[f.name] == default_name else _parse_value(spec[f.name], f.type)
        for f in fields
        if f.name in spec
    }


def _parse_value(given: object, data_type: DataType) -> Any:
    """Parse a value; a FLOAT is the nearest one that can be stored."""
    value = parse_literal(given, data_type)
    return value if not isinstance(data_type, FloatType) else to_array([value], data_type)[0].as_py()


def _mapping(spec: object) -> Mapping[Any, object]:
    if not isinstance(spec, Mapping):
        hint = "pass a mapping of column to value, such as {'day': '2026-01-01'}"
        raise InvalidRequest(f"Partition {spec!r} is not a mapping", subject="partition", hint=hint)
    return spec
