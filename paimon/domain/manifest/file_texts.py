"""The keys and statistics of data files as texts, in the current columns: one file after the other.

Invariant: a column that the file lacks is null in all of its rows. Statistics whose bounds cannot be cast to the
current type have no bounds. `file_texts_columnar` returns the same texts for many files at once. Source: `FilesTable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from paimon.domain.columns.cast import cast_column
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.partition.row_texts import RowTexts
from paimon.domain.row.values import to_array, to_values
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.simple_stats import ColumnStats, from_simple_stats
from paimon.domain.types.data_types import DataField, VariantType
from paimon.domain.types.system_columns import SYSTEM_FIELDS

TEXTS = pa.schema(
    [(name, pa.string()) for name in ("min_key", "max_key", "null_value_counts", "min_value_stats", "max_value_stats")]
)
"""The columns of the texts."""


def format_files(
    files: Iterable[DataFileMeta], table: TableDefinition, schemas: Mapping[int, TableSchema], texts: RowTexts
) -> pa.Table:
    """Return the texts of each file; `schemas` are those that the files were written with, by id."""
    return pa.Table.from_pylist([_format_file(f, table, schemas[f.schema_id], texts) for f in files], schema=TEXTS)


def _format_file(
    file: DataFileMeta, table: TableDefinition, written: TableSchema, texts: RowTexts
) -> dict[str, str | None]:
    bounds = table.get_bound_fields(file.level, written)
    fields = {f.name: f for f in find_shown_fields(table.schema, file.value_stats_cols, file.write_cols)}
    stats = _evolve_stats(file, tuple(fields.values()), written)
    return {
        "min_key": texts.format_key(file.min_key, bounds),
        "max_key": texts.format_key(file.max_key, bounds),
        "null_value_counts": texts.format_counts({name: s.null_count for name, s in stats.items()}),
        "min_value_stats": texts.format_stats({name: (s.minimum, fields[name].type) for name, s in stats.items()}),
        "max_value_stats": texts.format_stats({name: (s.maximum, fields[name].type) for name, s in stats.items()}),
    }


def find_shown_fields(
    today: TableSchema, stats_columns: Iterable[str] | None, write_columns: Iterable[str] | None
) -> list[DataField]:
    """Return the current columns that the texts of a file show: without statistics of its own, those it was given."""
    if stats_columns is not None or write_columns is None:
        return list(today.fields)
    written = set(write_columns)
    return [f for f in today.fields if f.name in written]


def find_stored_fields(
    written: TableSchema, stats_columns: Iterable[str] | None, write_columns: Iterable[str] | None
) -> list[DataField]:
    """Return the columns of the stored statistics of a file, in their order."""
    names = stats_columns if stats_columns is not None else write_columns
    if names is None:
        return list(written.fields)
    by_name = {f.name: f for f in (*written.fields, *SYSTEM_FIELDS)}
    return [by_name.get(n) or DataField(-1, n, VariantType()) for n in names]


def has_type_of(stored: DataField, wanted: DataField) -> bool:
    """Return whether stored bounds are those of the wanted column without a cast."""
    return stored.type.with_nullable(True) == wanted.type.with_nullable(True)


def _evolve_stats(file: DataFileMeta, fields: tuple[DataField, ...], written: TableSchema) -> Mapping[str, ColumnStats]:
    """Convert the statistics of a file to the current columns."""
    stored = find_stored_fields(written, file.value_stats_cols, file.write_cols)
    known = {
        f.id: (f, s)
        for f, s in zip(stored, from_simple_stats(file.value_stats, [f.type for f in stored]), strict=False)
    }
    ids = {f.id for f in written.fields}
    found: dict[str, ColumnStats] = {}
    for column in fields:
        if column.id in known:
            found[column.name] = _cast_stats(*known[column.id], column)
        else:
            found[column.name] = ColumnStats(null_count=None if column.id in ids else file.row_count)
    return found


def _cast_stats(stored: DataField, stats: ColumnStats, wanted: DataField) -> ColumnStats:
    if has_type_of(stored, wanted):
        return stats
    try:
        bounds = cast_column(to_array([stats.minimum, stats.maximum], stored.type), stored.type, wanted.type)
    except (InvalidRequest, Unsupported):  # a read of the file fails there, too
        return ColumnStats(null_count=stats.null_count)
    low, high = to_values(bounds, wanted.type)
    return ColumnStats(low, high, stats.null_count)
