"""Statistics of columns by mode (none, counts, truncate(n), full), and those of a new file in its manifest entry.

Invariant: every value of a column lies between its minimum and maximum, also where text is cut. Where no upper bound of
the cut length exists, the column has no bounds. Order is Java's: text by its bytes, floats with -0.0 below 0.0 and NaN
above all. The dense form leaves out the columns of mode "none" and names the others. The sparse form has a place for
each column. Key columns always have a place.
Source: `SimpleColStatsCollector`, `FullSimpleColStatsCollector`, `TruncateSimpleColStatsCollector`,
`SimpleStatsConverter`, `StatsCollectorFactories`, `DataFileMeta`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.java_float_order import find_float_bounds, to_float_sort_key
from paimon.domain.options.parse import parse_stats_mode
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.values import to_values
from paimon.domain.stats.simple_stats import EMPTY_STATS, ColumnStats, SimpleStats, to_simple_stats
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    CHARACTER_TYPES,
    NESTED_TYPES,
    BlobType,
    DataField,
    DataType,
    DoubleType,
    FloatType,
    VariantType,
)
from paimon.domain.types.system_columns import is_system_name

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


def collect_column_stats(array: pa.Array | pa.ChunkedArray, data_type: DataType) -> ColumnStats:
    """Collect the bounds and the null count of a canonical Arrow column; a column without values has no bounds.

    >>> collect_column_stats(pa.array([2.5, None, 0.5]), DoubleType())
    ColumnStats(minimum=0.5, maximum=2.5, null_count=1)
    """
    nulls = array.null_count
    if nulls == len(array) or not has_bounds(data_type):
        return ColumnStats(null_count=nulls)
    if isinstance(data_type, FloatType | DoubleType):
        return _floating(array, nulls)
    bounds = pc.min_max(array)
    low, high = (to_values(pa.repeat(bounds[end], 1), data_type)[0] for end in ("min", "max"))
    return ColumnStats(low, high, nulls)


def _floating(array: pa.Array | pa.ChunkedArray, nulls: int) -> ColumnStats:
    values = array.drop_null()
    whole = combine_column(values) if isinstance(values, pa.ChunkedArray) else values
    return ColumnStats(*find_float_bounds(to_numpy(whole)), nulls)


def combine_column_stats(first: ColumnStats, second: ColumnStats, data_type: DataType) -> ColumnStats:
    """Combine the full statistics of two parts of a column; null counts are None if one is unknown."""
    counts = (first.null_count, second.null_count)
    return ColumnStats(
        _choose_bound(first.minimum, second.minimum, data_type, min),
        _choose_bound(first.maximum, second.maximum, data_type, max),
        None if counts[0] is None or counts[1] is None else counts[0] + counts[1],
    )


def _choose_bound(first: Any, second: Any, data_type: DataType, better: Callable[..., Any]) -> Any:
    if first is None or second is None:
        return second if first is None else first
    if isinstance(data_type, FloatType | DoubleType):
        return better(first, second, key=to_float_sort_key)
    # Python orders text by code point, which is the order of its bytes in UTF-8.
    return better(first, second)


_NONE = StatsMode(Keep.NONE)
_FOOTER_FORMATS = ("parquet", "orc")
"""Formats whose footers have statistics; for the others, Java collects them with the table's mode only."""


def _plain(modes: Mapping[str, StatsMode]) -> Mapping[str, StatsMode]:
    return dict(modes)


@frozen(hash=False)
class StatsRules:
    """The statistics options of a table, for files of one level and format."""

    mode: StatsMode
    column_modes: Mapping[str, StatsMode] = field(converter=_plain, factory=dict)
    # only this number of columns have statistics; negative: all
    first_columns: int = -1
    # `metadata.stats-dense-store`
    dense: bool = True
    # Parquet files have no statistics of nested columns
    format_name: str = "parquet"

    @classmethod
    def of(cls, options: TableOptions, level: int, format_name: str, changelog: bool = False) -> StatsRules:
        """Build the rules for data files of a level, or for its changelog files, which can have a mode of their own."""
        own = options.values.get("changelog-file.stats-mode") if changelog else None
        prefix, suffix = "fields.", ".stats-mode"
        columns = {
            key[len(prefix) : -len(suffix)]: parse_mode(text)
            for key, text in options.values.items()
            if key.startswith(prefix) and key.endswith(suffix)
        }
        mode = parse_mode(own or options.stats_mode_of("", level))
        return cls(mode, columns, options.stats_keep_first_columns, options.stats_dense_store, format_name)

    def mode_of(self, name: str, position: int, is_key: bool = False) -> StatsMode:
        """Return the mode of a column; `position` counts from 0.

        `is_key` is True for key columns, and for the value columns that replace them in thin mode.
        """
        if name in self.column_modes:
            return self.column_modes[name]
        if (is_key or is_system_name(name)) and self.format_name in _FOOTER_FORMATS:
            return KEY_MODE
        return _NONE if 0 <= self.first_columns <= position else self.mode


def to_value_stats(
    fields: Sequence[DataField],
    stats: Sequence[ColumnStats],
    rules: StatsRules,
    thin_keys: frozenset[str] = frozenset(),
) -> tuple[SimpleStats, tuple[str, ...] | None]:
    """Return the statistics of the value columns, in the form that the rules ask for, and the names of its columns.

    `stats` are full, as the format reports them. The names are None if all columns have an entry.
    """
    kept = [
        _reduce_to_mode(column, found, rules, rules.mode_of(column.name, i, column.name in thin_keys))
        for i, (column, found) in enumerate(zip(fields, stats, strict=True))
    ]
    if not rules.dense:
        return _to_stored(fields, [found or ColumnStats() for found in kept]), None
    pairs = [(column, found) for column, found in zip(fields, kept, strict=True) if found is not None]
    dense = _to_stored([column for column, _ in pairs], [found for _, found in pairs])
    return dense, None if len(pairs) == len(fields) else tuple(column.name for column, _ in pairs)


def to_key_stats(key_fields: Sequence[DataField], stats: Sequence[ColumnStats], rules: StatsRules) -> SimpleStats:
    """Return the statistics of the key columns, one entry for each; null where the mode keeps nothing."""
    kept = [
        _reduce_to_mode(column, found, rules, rules.mode_of(column.name, i, is_key=True)) or ColumnStats()
        for i, (column, found) in enumerate(zip(key_fields, stats, strict=True))
    ]
    return _to_stored(key_fields, kept)


def _reduce_to_mode(column: DataField, stats: ColumnStats, rules: StatsRules, mode: StatsMode) -> ColumnStats | None:
    if rules.format_name == "parquet" and isinstance(column.type, (*NESTED_TYPES, VariantType)):
        return None
    return apply_stats_mode(stats, column.type, mode)


def _to_stored(fields: Sequence[DataField], stats: Sequence[ColumnStats]) -> SimpleStats:
    return to_simple_stats(stats, [column.type for column in fields]) if fields else EMPTY_STATS
