"""The statistics of a new file that go into its manifest entry, and their form.

Invariant: the dense form leaves out the columns of mode "none" and names the others. The sparse form has a place for
each column. Key columns always have a place.
Source: `SimpleStatsConverter`, `StatsCollectorFactories`, `DataFileMeta`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from paimon.domain.options.table_options import TableOptions
from paimon.domain.stats.modes import KEY_MODE, Keep, StatsMode, apply_stats_mode, parse_mode
from paimon.domain.stats.simple_stats import EMPTY_STATS, ColumnStats, SimpleStats, to_simple_stats
from paimon.domain.types.data_types import NESTED_TYPES, DataField, VariantType
from paimon.domain.types.system_columns import is_system_name

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
