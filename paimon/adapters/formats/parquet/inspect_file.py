"""Describe Parquet files that other systems wrote, from their footers.

Invariant: a column that Java's Paimon cannot read as it is stored is refused: nanoseconds in 64 bits, times of day that
are not milliseconds, unsigned numbers, and 16-bit floats.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from paimon.adapters.formats.guards.parquet_footer import open_parquet_file
from paimon.adapters.formats.guards.parquet_pages import Stored
from paimon.adapters.formats.parquet.column_stats import combine_stats, read_chunk_stats
from paimon.adapters.formats.parquet.reader import corrupt_files
from paimon.domain.errors import Unsupported
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import DataField, DoubleType, FloatType
from paimon.ports.formats import FileContent


def inspect_file(source: pa.NativeFile, path: str) -> FileContent:
    """Return the columns and the number of rows that the footer states."""
    with corrupt_files(path):
        file = open_parquet_file(Stored(source))
        schema, rows = file.schema_arrow, file.metadata.num_rows
        leaves = [file.schema.column(leaf) for leaf in range(file.metadata.num_columns)]
    for leaf in leaves:
        _check_stored_type(leaf, path)
    return FileContent(schema, rows)


def _check_stored_type(leaf: pq.ColumnSchema, path: str) -> None:
    logical = str(leaf.logical_type)
    is_nanos = logical.startswith("Timestamp(") and "nanoseconds" in logical
    is_fine_time = logical.startswith("Time(") and "milliseconds" not in logical
    if is_nanos or is_fine_time or "isSigned=false" in logical or logical == "Float16":
        raise Unsupported(
            f"column {leaf.path!r} of {path}, stored as {logical}",
            hint="write timestamps with microseconds, times with milliseconds, and signed numbers; "
            "or create the table, and insert the rows of the files",
        )


def read_statistics(source: pa.NativeFile, path: str, fields: Sequence[DataField]) -> list[ColumnStats]:
    """Return the statistics of the row groups of a file, combined; floating columns have no bounds."""
    with corrupt_files(path):
        footer = open_parquet_file(Stored(source)).metadata
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        places = {footer.schema.column(leaf).path: leaf for leaf in range(footer.num_columns)}
        return [_combine_groups(groups, places.get(f.name), f) for f in fields]


def _combine_groups(groups: Sequence[pq.RowGroupMetaData], leaf: int | None, column: DataField) -> ColumnStats:
    """Return the statistics of a column; a nested column has none."""
    if leaf is None:
        return ColumnStats()
    parts = [read_chunk_stats(group.column(leaf), column.type) for group in groups]
    found = combine_stats(parts, [group.num_rows for group in groups])
    return ColumnStats(null_count=found.null_count) if isinstance(column.type, FloatType | DoubleType) else found
