"""How much is kept of a column's statistics: none, counts, truncate(n), full.

Law: what is kept are bounds: every value of the column lies between minimum and maximum, also where text was cut;
where no upper bound of the cut length exists, none is given at all.
Source: `SimpleColStatsCollector`, `TruncateSimpleColStatsCollector`.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from paimon.domain.options.parse import parse_stats_mode
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    CHARACTER_TYPES,
    NESTED_TYPES,
    BlobType,
    DataType,
    VariantType,
)

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


class Keep(Enum):
    """What is kept."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATED = "truncate"
    FULL = "full"


@frozen
class StatsMode:
    """A statistics mode; `length` is the number of characters that text is cut to."""

    keep: Keep
    length: int = 0


KEY_MODE = StatsMode(Keep.TRUNCATED, 128)
"""The mode of key and system columns."""


def parse_mode(text: str) -> StatsMode:
    """The mode of an option's text."""
    word, length = parse_stats_mode(text)
    return StatsMode(Keep(word), length)


def has_bounds(data_type: DataType) -> bool:
    """Whether columns of this type have a minimum and a maximum at all: bytes and nested values have not."""
    return not isinstance(data_type, (*BYTES_TYPES, *NESTED_TYPES, BlobType, VariantType))


def apply(stats: ColumnStats, data_type: DataType, mode: StatsMode) -> ColumnStats | None:
    """What the mode keeps of a column's full statistics; None where it keeps nothing."""
    if mode.keep is Keep.NONE:
        return None
    if mode.keep is Keep.COUNTS or not has_bounds(data_type):
        return ColumnStats(null_count=stats.null_count)
    if mode.keep is Keep.TRUNCATED and isinstance(data_type, CHARACTER_TYPES):
        return _truncated(stats, mode.length)
    return stats


def _truncated(stats: ColumnStats, length: int) -> ColumnStats:
    if stats.minimum is None or stats.maximum is None:
        return stats
    maximum = upper_bound(stats.maximum, length)
    if maximum is None:
        return ColumnStats(null_count=stats.null_count)
    return ColumnStats(stats.minimum[:length], maximum, stats.null_count)


def upper_bound(text: str, length: int) -> str | None:
    """A text of at most `length` characters that is not smaller than this one; None where there is none."""
    if len(text) <= length:
        return text
    for end in range(length, 0, -1):
        code = ord(text[end - 1]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= _LAST_CODE_POINT:
            return text[: end - 1] + chr(code)
    return None
