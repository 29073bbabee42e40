"""Which statistics of a new file go into its manifest entry, and in which form.

Law: the dense form leaves out the columns of mode "none" and names the others; the sparse form has a place for each
column. Key columns always have a place.
Source: `SimpleStatsConverter`, `StatsCollectorFactories`, `DataFileMeta`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from paimon.domain.options.table_options import TableOptions
from paimon.domain.stats.codec import to_simple_stats
from paimon.domain.stats.modes import KEY_MODE, Keep, StatsMode, apply, parse_mode
from paimon.domain.stats.simple_stats import EMPTY_STATS, ColumnStats, SimpleStats
from paimon.domain.types.data_types import NESTED_TYPES, DataField, VariantType
from paimon.domain.types.system import is_system_name

_NONE = StatsMode(Keep.NONE)
_FOOTER_FORMATS = ("parquet", "orc")
"""Formats whose footers have statistics; for the others, Java collects them with the table's mode alone."""


def _plain(modes: Mapping[str, StatsMode]) -> Mapping[str, StatsMode]:
    return dict(modes)


@frozen(hash=False)
class StatsRules:
    """The statistics options of a table, for files of one level and format.

    Parameters
    ----------
    mode : StatsMode
        The table's mode, or that of the level.
    column_modes : mapping
        Modes of single columns.
    first_columns : int
        Only so many columns have statistics; negative: all.
    dense : bool
        `metadata.stats-dense-store`.
    format_name : str
        The file's format: Parquet files tell nothing of nested columns.
    """

    mode: StatsMode
    column_modes: Mapping[str, StatsMode] = field(converter=_plain, factory=dict)
    first_columns: int = -1
    dense: bool = True
    format_name: str = "parquet"

    @classmethod
    def of(cls, options: TableOptions, level: int, format_name: str, changelog: bool = False) -> StatsRules:
        """The rules of a table's data files (or changelog files) of a level."""
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
        """The mode of a column; `is_key` for key columns and for what stands for them in thin mode."""
        if name in self.column_modes:
            return self.column_modes[name]
        if (is_key or is_system_name(name)) and self.format_name in _FOOTER_FORMATS:
            return KEY_MODE
        return _NONE if 0 <= self.first_columns <= position else self.mode


def value_stats(
    fields: Sequence[DataField],
    stats: Sequence[ColumnStats],
    rules: StatsRules,
    thin_keys: frozenset[str] = frozenset(),
) -> tuple[SimpleStats, tuple[str, ...] | None]:
    """The statistics of the value columns and, in the dense form, the names of those that have some.

    Parameters
    ----------
    fields, stats
        The table's columns as written, and what the format tells of each, uncut.
    rules : StatsRules
        The table's options.
    thin_keys : frozenset of str
        In thin mode, the columns of the key.

    Returns
    -------
    (SimpleStats, tuple of str or None)
        None where all columns have a place.
    """
    kept = [
        _kept(column, found, rules, rules.mode_of(column.name, i, column.name in thin_keys))
        for i, (column, found) in enumerate(zip(fields, stats, strict=True))
    ]
    if not rules.dense:
        return _stored(fields, [found or ColumnStats() for found in kept]), None
    pairs = [(column, found) for column, found in zip(fields, kept, strict=True) if found is not None]
    dense = _stored([column for column, _ in pairs], [found for _, found in pairs])
    return dense, None if len(pairs) == len(fields) else tuple(column.name for column, _ in pairs)


def key_stats(key_fields: Sequence[DataField], stats: Sequence[ColumnStats], rules: StatsRules) -> SimpleStats:
    """The statistics of the key, one place a column; nulls where the mode keeps nothing."""
    kept = [
        _kept(column, found, rules, rules.mode_of(column.name, i, is_key=True)) or ColumnStats()
        for i, (column, found) in enumerate(zip(key_fields, stats, strict=True))
    ]
    return _stored(key_fields, kept)


def _kept(column: DataField, stats: ColumnStats, rules: StatsRules, mode: StatsMode) -> ColumnStats | None:
    if rules.format_name == "parquet" and isinstance(column.type, (*NESTED_TYPES, VariantType)):
        return None
    return apply(stats, column.type, mode)


def _stored(fields: Sequence[DataField], stats: Sequence[ColumnStats]) -> SimpleStats:
    return to_simple_stats(stats, [column.type for column in fields]) if fields else EMPTY_STATS
