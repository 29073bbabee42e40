"""Option values: conversions from their text to numbers and lists.

Invariant: a text means what Java makes of it, or is refused with a message that names the option, the value and the
form that it should have.
Source: `MemorySize`, `TimeUtils`, `ConfigOption`'s converters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from paimon.domain.errors import InvalidRequest

MEMORY_UNITS: Mapping[str, int] = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
DURATION_UNITS_NANOS: Mapping[str, int] = {
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1),
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), 1_000),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1_000_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000_000),
}
LARGEST_LONG = (1 << 63) - 1
LARGEST_INT = (1 << 31) - 1

_NUMBER_UNIT = re.compile(r"\s*([0-9]+)\s*([^\s0-9]*)\s*\Z", re.ASCII)
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*\Z", re.ASCII)
_TRUNCATE = re.compile(r"truncate\(([0-9]{1,9})\)")


def bad_value_error(key: str, text: str, form: str) -> InvalidRequest:
    """Build the error for an invalid value; `form` describes a valid one, such as "a whole number of 32 bits"."""
    return InvalidRequest(f"Option {key!r} has the invalid value {text!r}", subject=key, hint=f"give {form}")


def parse_memory(text: str, key: str = "size") -> int:
    """Parse a size; units are powers of 1024, and a number without a unit counts bytes.

    >>> parse_memory("128 mb"), parse_memory("1g"), parse_memory("500")
    (134217728, 1073741824, 500)
    """
    return _quantity(text, key, MEMORY_UNITS, "a size such as '128 mb' or '1 gb'")


def parse_duration_millis(text: str, key: str = "duration") -> int:
    """Parse a duration to milliseconds; a number without a unit counts milliseconds, and fractions of one are dropped.

    >>> parse_duration_millis("1 h"), parse_duration_millis("10 s"), parse_duration_millis("250")
    (3600000, 10000, 250)
    """
    return parse_duration_nanos(text, key) // 1_000_000


def parse_duration_nanos(text: str, key: str = "duration") -> int:
    """Parse a duration to nanoseconds; a number without a unit counts milliseconds."""
    return _quantity(text, key, DURATION_UNITS_NANOS, "a duration such as '1 h', '30 min' or '500 ms'", largest=None)


def _quantity(text: str, key: str, units: Mapping[str, int], form: str, largest: int | None = LARGEST_LONG) -> int:
    match = _NUMBER_UNIT.match(text)
    factor = units.get(match.group(2).lower()) if match else None
    if match is None or factor is None or len(match.group(1)) > 19:
        raise bad_value_error(key, text, form)
    value = int(match.group(1)) * factor
    if largest is not None and value > largest:
        raise bad_value_error(key, text, f"{form}, at most {largest} bytes")
    return value


def parse_bool(text: str, key: str = "flag") -> bool:
    """Parse ``true`` or ``false``, in any case."""
    known = {"true": True, "false": False}.get(text.strip().lower())
    if known is None:
        raise bad_value_error(key, text, "'true' or 'false'")
    return known


def parse_int(text: str, key: str = "number") -> int:
    """Parse a 32-bit integer."""
    return _integer(text, key, LARGEST_INT, "a whole number of 32 bits")


def parse_long(text: str, key: str = "number") -> int:
    """Parse a 64-bit integer."""
    return _integer(text, key, LARGEST_LONG, "a whole number of 64 bits")


def _integer(text: str, key: str, largest: int, form: str) -> int:
    if not _INTEGER.match(text) or len(text.strip()) > 20:
        raise bad_value_error(key, text, form)
    value = int(text)
    if not -largest - 1 <= value <= largest:
        raise bad_value_error(key, text, form)
    return value


def parse_double(text: str, key: str = "number") -> float:
    """Parse a finite decimal number such as ``0.05``."""
    try:
        value = float(text)
    except ValueError:
        raise bad_value_error(key, text, "a number such as '0.05'") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise bad_value_error(key, text, "a finite number such as '0.05'")
    return value


def parse_list(text: str) -> tuple[str, ...]:
    """Parse comma-separated names; blanks around names and empty names are left out.

    >>> parse_list("id, day,,")
    ('id', 'day')
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_stats_mode(text: str, key: str = "statistics mode") -> tuple[str, int]:
    """Parse a statistics mode: ``none``, ``counts``, ``full`` or ``truncate(n)``.

    The number is the length that text is truncated to, 0 for the other modes.

    >>> parse_stats_mode("truncate(16)")
    ('truncate', 16)
    """
    word = text.strip().lower()
    found = _TRUNCATE.fullmatch(word)
    if found and int(found[1]) > 0:
        return "truncate", int(found[1])
    if word not in ("none", "counts", "full"):
        raise bad_value_error(key, text, "one of none, counts, full, or a length such as 'truncate(16)'")
    return word, 0


def parse_stats_mode_levels(text: str, key: str = "per level") -> Mapping[int, tuple[str, int]]:
    """Parse ``"0:none,5:full"`` to a map from the level to its statistics mode."""
    return {level: parse_stats_mode(mode, key) for level, mode in parse_levels(text, key).items()}


def parse_levels(text: str, key: str = "per level") -> Mapping[int, str]:
    """Parse ``"0:avro,3:parquet"`` to a map from the level to its value.

    >>> parse_levels("0:avro,3:parquet")
    {0: 'avro', 3: 'parquet'}
    """
    levels: dict[int, str] = {}
    for part in parse_list(text):
        level, colon, value = (p.strip() for p in part.partition(":"))
        if not colon or not value or not level.isdecimal():
            raise bad_value_error(key, text, "levels and values such as '0:avro,3:parquet'")
        levels[parse_int(level, key)] = value
    return levels
