"""Which partitions have had their time.

Law: a partition expires by the time that its values say, or by its newest file; values that say no time never expire.
Times are local wall clocks in milliseconds. Patterns are Java's: digits and literals, `[` `]` around what may be
missing. Source: `PartitionValuesTimeExpireStrategy`, `PartitionUpdateTimeExpireStrategy`, `PartitionTimeExtractor`.
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
class PartitionLife:
    """How partitions expire: after how long, by what, at most so many at once."""

    millis: int
    strategy: str = VALUES
    pattern: str | None = None
    formatter: str | None = None
    at_most: int = 100

    @classmethod
    def of(cls, options: TableOptions) -> PartitionLife | None:
        """That of the options `partition.*`; None where partitions do not expire."""
        millis = options.partition_expiration_millis
        if millis is None:
            return None
        strategy = options.partition_expiration_strategy
        if strategy not in (VALUES, UPDATES):
            raise Unsupported(f"partition.expiration-strategy {strategy!r}", hint=f"known are {VALUES}, {UPDATES}")
        pattern, formatter = options.partition_timestamp_pattern, options.partition_timestamp_formatter
        return cls(millis, strategy, pattern, formatter, options.partition_expiration_max_num)


@frozen
class PartitionAge:
    """One partition: its values as texts (None: null), in the order of the columns, and when its newest file was made.
    """

    row: bytes
    values: tuple[str | None, ...]
    updated: int | None


def expired_partitions(
    partitions: Sequence[PartitionAge], names: Sequence[str], life: PartitionLife, now: int
) -> list[PartitionAge]:
    """Those that expire at the local time `now`, in the order of their values."""
    before = now - life.millis
    if life.strategy == UPDATES:
        times = [p.updated for p in partitions]
    else:
        times = [partition_time(dict(zip(names, p.values, strict=True)), life) for p in partitions]
    old = [p for p, time in zip(partitions, times, strict=True) if time is not None and time < before]
    return sorted(old, key=lambda p: ",".join(v or "" for v in p.values))[: life.at_most]


def partition_time(values: Mapping[str, str | None], life: PartitionLife) -> int | None:
    """The time that a partition's values say; None where they say none."""
    used = values.values() if life.pattern is not None else list(values.values())[:1]
    if not values or any(value is None for value in used):
        return None
    text = next(iter(values.values())) if life.pattern is None else life.pattern
    for name, value in values.items() if life.pattern is not None else ():
        text = (text or "").replace(f"${name}", value or "")
    form = _DEFAULT if life.formatter is None else form_of(life.formatter)
    match = form.fullmatch(text or "")
    return None if match is None else _time(match.groupdict(), lenient=life.formatter is None)


def form_of(pattern: str) -> re.Pattern[str]:
    """A pattern of Java's `DateTimeFormatter`, as far as it has digits and literals.

    Raises
    ------
    Unsupported
        It has letters that stand for anything else.
    InvalidRequest
        It is no pattern.
    """
    parts: list[str] = []
    for piece in _PIECES.finditer(pattern):
        text = piece[0]
        if piece[2]:
            parts.append(_digits(piece[2], len(text), pattern))
        elif text in ("[", "]"):
            parts.append("(?:" if text == "[" else ")?")
        else:
            parts.append(re.escape("'" if text == "''" else (piece[1] or "").replace("''", "'") or text))
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise InvalidRequest(
            f"partition.timestamp-formatter {pattern!r} is no pattern: {error}", subject="partition.timestamp-formatter"
        ) from error


def _digits(letter: str, length: int, pattern: str) -> str:
    letter = "y" if letter == "u" else letter
    if letter not in "yMdHmsS" or (letter == "M" and length > 2):
        what = f"{letter * length!r} in partition.timestamp-formatter {pattern!r}"
        raise Unsupported(what, hint="known are y M d H m s S")
    if letter == "y":
        return f"(?P<y>{_YEARS.get(length, r'[0-9]{' + str(length) + '}')})"
    if letter == "S":
        return rf"(?P<S>\d{{{length}}})"
    return rf"(?P<{letter}>\d{{{'1,' if length == 1 else ''}2}})"


def _time(found: Mapping[str, str | None], lenient: bool) -> int | None:
    """The local time of these numbers; out of range they carry over where that is lenient, else they are no time."""
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
