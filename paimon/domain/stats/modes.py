"""Statistics modes: none, counts, truncate(n), full.

Invariant: every value of a column lies between its minimum and maximum, also where text is cut. Where no upper bound of
the cut length exists, the column has no bounds.
Source: `SimpleColStatsCollector`, `TruncateSimpleColStatsCollector`.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from paimon.domain.options.parse import parse_stats_mode
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import BYTES_TYPES, CHARACTER_TYPES, NESTED_TYPES, BlobType, DataType, VariantType

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


class Keep(Enum):
    """How much a mode keeps of a column's statistics."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATED = "truncate"
    FULL = "full"


@frozen
class StatsMode:
    """A statistics mode."""

    keep: Keep
    # for TRUNCATED, the number of characters that text is cut to
    length: int = 0


KEY_MODE = StatsMode(Keep.TRUNCATED, 128)
"""The mode of key and system columns."""


def parse_mode(text: str) -> StatsMode:
    """Parse the text of an option to a statistics mode.

    >>> parse_mode("truncate(16)").length
    16
    """
    word, length = parse_stats_mode(text)
    return StatsMode(Keep(word), length)


def has_bounds(data_type: DataType) -> bool:
    """Return whether columns of this type have a minimum and a maximum; bytes and nested values have none."""
    return not isinstance(data_type, (*BYTES_TYPES, *NESTED_TYPES, BlobType, VariantType))


def apply_stats_mode(stats: ColumnStats, data_type: DataType, mode: StatsMode) -> ColumnStats | None:
    """Reduce the full statistics of a column to a mode; None if the mode keeps nothing."""
    if mode.keep is Keep.NONE:
        return None
    if mode.keep is Keep.COUNTS or not has_bounds(data_type):
        return ColumnStats(null_count=stats.null_count)
    if mode.keep is Keep.TRUNCATED and isinstance(data_type, CHARACTER_TYPES):
        return _truncate_bounds(stats, mode.length)
    return stats


def _truncate_bounds(stats: ColumnStats, length: int) -> ColumnStats:
    if stats.minimum is None or stats.maximum is None:
        return stats
    maximum = upper_bound(stats.maximum, length)
    if maximum is None:
        return ColumnStats(null_count=stats.null_count)
    return ColumnStats(stats.minimum[:length], maximum, stats.null_count)


def upper_bound(text: str, length: int) -> str | None:
    """Return a text of at most `length` characters that is not smaller than this one; None where there is none.

    >>> upper_bound("abcdef", 3)
    'abd'
    """
    if len(text) <= length:
        return text
    for end in range(length, 0, -1):
        code = ord(text[end - 1]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= _LAST_CODE_POINT:
            return text[: end - 1] + chr(code)
    return None
