"""Select the partitions that expire.

A partition expires by the time in its values, or by the time of its newest file. Times are local wall-clock times in
milliseconds. Patterns are those of Java: digits and literals, with `[` and `]` around optional parts.

Invariant: Partitions whose values contain no time never expire by their values.
Source: `PartitionValuesTimeExpireStrategy`, `PartitionUpdateTimeExpireStrategy`, `PartitionTimeExtractor`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from attrs import frozen

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.options.table_options import TableOptions

VALUES, UPDATES = "values-time", "update-time"
_EPOCH = datetime(1970, 1, 1)
_DEFAULT = re.compile(
    r"(?P<y>[+-]?\d{1,10})-(?P<M>\d{1,2})-(?P<d>\d{1,2})"
    r"(?: (?P<H>\d{1,2}):(?P<m>\d{1,2}):(?P<s>\d{1,2})(?:\.(?P<S>\d{1,9}))?)?"
)
_PIECES = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[\[\]]|[^A-Za-z'\[\]]+")
_YEARS = {1: r"\d{1,9}", 2: r"\d{2}"}


@frozen
class PartitionRetention:
    """Rules for the expiry of partitions."""

    # the age at which a partition expires
    millis: int
    # `values-time` or `update-time`
    strategy: str = VALUES
    # the text with the time, in which `$name` is a partition value; None for the first partition value
    pattern: str | None = None
    # the pattern of the time; None for the default forms of a day or a timestamp
    formatter: str | None = None
    # the largest number of partitions that expire at once
    at_most: int = 100

    @classmethod
    def of(cls, options: TableOptions) -> PartitionRetention | None:
        """Return the rules of `partition.*`; None without expiry, Unsupported for an unknown strategy."""
        millis = options.partition_expiration_millis
        if millis is None:
            return None
        strategy = options.partition_expiration_strategy
        if strategy not in (VALUES, UPDATES):
            raise Unsupported(f"partition.expiration-strategy {strategy!r}", hint=f"use {VALUES} or {UPDATES}")
        pattern, formatter = options.partition_timestamp_pattern, options.partition_timestamp_formatter
        return cls(millis, strategy, pattern, formatter, options.partition_expiration_max_num)


@frozen
class PartitionAge:
    """A partition, and the time of its newest file."""

    # serialized BinaryRow of the partition columns
    row: bytes
    # the values as texts in column order; None is null
    values: tuple[str | None, ...]
    # the creation time of the newest file; None if unknown
    updated_millis: int | None


def expired_partitions(
    partitions: Sequence[PartitionAge], names: Sequence[str], retention: PartitionRetention, now: int
) -> list[PartitionAge]:
    """Return the expired partitions in the order of their values, at most `retention.at_most`.

    `now` is the local time in milliseconds. Raises `Unsupported` if the formatter has an unknown letter.
    """
    before = now - retention.millis
    if retention.strategy == UPDATES:
        times = [p.updated_millis for p in partitions]
    else:
        times = [partition_time(dict(zip(names, p.values, strict=True)), retention) for p in partitions]
    old = [p for p, time in zip(partitions, times, strict=True) if time is not None and time < before]
    return sorted(old, key=lambda p: ",".join(v or "" for v in p.values))[: retention.at_most]


def partition_time(values: Mapping[str, str | None], retention: PartitionRetention) -> int | None:
    """Return the local time in milliseconds that the values of a partition contain; None if they contain none."""
    used = values.values() if retention.pattern is not None else list(values.values())[:1]
    if not values or any(value is None for value in used):
        return None
    text = next(iter(values.values())) if retention.pattern is None else retention.pattern
    for name, value in values.items() if retention.pattern is not None else ():
        text = (text or "").replace(f"${name}", value or "")
    form = _DEFAULT if retention.formatter is None else compile_formatter(retention.formatter)
    match = form.fullmatch(text or "")
    return None if match is None else _to_millis(match.groupdict(), lenient=retention.formatter is None)


def compile_formatter(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for a `DateTimeFormatter` pattern; Unsupported for an unknown letter."""
    parts: list[str] = []
    for piece in _PIECES.finditer(pattern):
        text = piece[0]
        if piece[2]:
            parts.append(_to_digits_pattern(piece[2], len(text), pattern))
        elif text in ("[", "]"):
            parts.append("(?:" if text == "[" else ")?")
        else:
            parts.append(re.escape("'" if text == "''" else (piece[1] or "").replace("''", "'") or text))
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise InvalidRequest(
            f"Option 'partition.timestamp-formatter' is not a valid pattern: {pattern!r} ({error})",
            subject="partition.timestamp-formatter",
        ) from error


def _to_digits_pattern(letter: str, length: int, pattern: str) -> str:
    letter = "y" if letter == "u" else letter
    if letter not in "yMdHmsS" or (letter == "M" and length > 2):
        raise Unsupported(
            f"{letter * length!r} in partition.timestamp-formatter {pattern!r}", hint="use the letters y M d H m s S"
        )
    if letter == "y":
        return f"(?P<y>{_YEARS.get(length, r'[0-9]{' + str(length) + '}')})"
    if letter == "S":
        return rf"(?P<S>\d{{{length}}})"
    return rf"(?P<{letter}>\d{{{'1,' if length == 1 else ''}2}})"


def _to_millis(found: Mapping[str, str | None], lenient: bool) -> int | None:
    """Return the local time of these numbers. Numbers out of range carry over if lenient, and give None otherwise."""
    year, month, day, hour, minute, second = (
        int(found.get(part) or default) for part, default in zip("yMdHms", (1970, 1, 1, 0, 0, 0), strict=True)
    )
    if len(found.get("y") or "") == 2:
        year += 2000
    if lenient:
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    elif not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60):
        return None
    if not 1 <= year <= 9999:
        return None
    first = datetime(year, month, 1)
    day = day if lenient else min(day, monthrange(year, month)[1])
    try:
        moment = first + timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)
    except OverflowError:
        return None
    return (moment - _EPOCH) // timedelta(milliseconds=1) + int(((found.get("S") or "") + "000")[:3])
