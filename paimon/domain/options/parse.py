"""Option values: from their text to numbers, and no further.

Law: a text means what Java makes of it, or is refused with one sentence that names the option, the value and the form
it should have. Source: `MemorySize`, `TimeUtils`, `ConfigOption`'s converters.
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


def refused(key: str, text: str, form: str) -> InvalidRequest:
    """The error for a value of the wrong form."""
    return InvalidRequest(f"option {key!r} has the value {text!r}", subject=key, hint=f"give {form}")


def parse_memory(text: str, key: str = "size") -> int:
    """Bytes of ``"128 mb"``, ``"1g"``, ``"500"`` (units are powers of 1024)."""
    return _quantity(text, key, MEMORY_UNITS, "a size such as '128 mb' or '1 gb'")


def parse_duration_millis(text: str, key: str = "duration") -> int:
    """Milliseconds of ``"1 h"``, ``"10 s"``, ``"250"`` (without a unit: milliseconds); parts of one are dropped."""
    return parse_duration_nanos(text, key) // 1_000_000


def parse_duration_nanos(text: str, key: str = "duration") -> int:
    """Nanoseconds of a duration."""
    return _quantity(text, key, DURATION_UNITS_NANOS, "a duration such as '1 h', '30 min' or '500 ms'", largest=None)


def _quantity(text: str, key: str, units: Mapping[str, int], form: str, largest: int | None = LARGEST_LONG) -> int:
    match = _NUMBER_UNIT.match(text)
    factor = units.get(match.group(2).lower()) if match else None
    if match is None or factor is None or len(match.group(1)) > 19:
        raise refused(key, text, form)
    value = int(match.group(1)) * factor
    if largest is not None and value > largest:
        raise refused(key, text, f"{form}, at most {largest} bytes")
    return value


def parse_bool(text: str, key: str = "flag") -> bool:
    """``true`` or ``false``, in any case."""
    known = {"true": True, "false": False}.get(text.strip().lower())
    if known is None:
        raise refused(key, text, "'true' or 'false'")
    return known


def parse_int(text: str, key: str = "number") -> int:
    """A 32-bit integer."""
    return _integer(text, key, LARGEST_INT, "a whole number of 32 bits")


def parse_long(text: str, key: str = "number") -> int:
    """A 64-bit integer."""
    return _integer(text, key, LARGEST_LONG, "a whole number of 64 bits")


def _integer(text: str, key: str, largest: int, form: str) -> int:
    if not _INTEGER.match(text) or len(text.strip()) > 20:
        raise refused(key, text, form)
    value = int(text)
    if not -largest - 1 <= value <= largest:
        raise refused(key, text, form)
    return value


def parse_double(text: str, key: str = "number") -> float:
    """A decimal number such as ``0.05``."""
    try:
        value = float(text)
    except ValueError:
        raise refused(key, text, "a number such as '0.05'") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise refused(key, text, "a finite number such as '0.05'")
    return value


def parse_list(text: str) -> tuple[str, ...]:
    """Comma-separated names without the blanks around them; empty ones are left out."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_stats_mode(text: str, key: str = "statistics mode") -> tuple[str, int]:
    """``none``, ``counts``, ``full`` or ``truncate``, and for the last the length that text is cut to."""
    word = text.strip().lower()
    found = _TRUNCATE.fullmatch(word)
    if found and int(found[1]) > 0:
        return "truncate", int(found[1])
    if word not in ("none", "counts", "full"):
        raise refused(key, text, "one of none, counts, full, or a length such as 'truncate(16)'")
    return word, 0


def parse_stats_mode_levels(text: str, key: str = "per level") -> Mapping[int, tuple[str, int]]:
    """``"0:none,5:full"`` as a map from the level to its statistics mode."""
    return {level: parse_stats_mode(mode, key) for level, mode in parse_levels(text, key).items()}


def parse_levels(text: str, key: str = "per level") -> Mapping[int, str]:
    """``"0:avro,3:parquet"`` as a map from the level to its value."""
    levels: dict[int, str] = {}
    for part in parse_list(text):
        level, colon, value = (p.strip() for p in part.partition(":"))
        if not colon or not value or not level.isdecimal():
            raise refused(key, text, "levels and values such as '0:avro,3:parquet'")
        levels[parse_int(level, key)] = value
    return levels
