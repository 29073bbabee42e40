"""ParquetFormat: Parquet data files as Java writes and reads them, and descriptions of files of other systems.

Invariant: a column that Java's Paimon cannot read as other systems store it is refused by `inspect_file`: nanoseconds
in 64 bits, times of day that are not milliseconds, unsigned numbers, and 16-bit floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from paimon.adapters.formats.guards.parquet_batches import MOST_BYTES
from paimon.adapters.formats.guards.parquet_footer import open_parquet_file
from paimon.adapters.formats.guards.parquet_pages import Stored
from paimon.adapters.formats.parquet.column_stats import combine_stats, read_chunk_stats
from paimon.adapters.formats.parquet.reader import corrupt_files, read_batches
from paimon.adapters.formats.parquet.shared_file import share_file
from paimon.adapters.formats.parquet.writer import ParquetWriter
from paimon.domain.errors import Unsupported
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import DataField, DoubleType, FloatType
from paimon.ports.cache import ObjectCache
from paimon.ports.files import OutputFile
from paimon.ports.formats import FileContent, FormatWriter, ReadRequest, ShareRequest, WriteRequest
from paimon.ports.queries import SharedFile


class ParquetFormat:
    """`paimon.ports.formats.FormatIO` for Parquet files.

    `most_bytes` is the budget for the pages of a file, or a batch of its rows (see `guards.parquet_batches`). `cache`
    keeps footers of local files for later reads.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, cache: ObjectCache | None = None) -> None:
        self._most_bytes = max(most_bytes, MOST_BYTES)
        self._cache = cache

    @property
    def identifier(self) -> str:
        """The name of the format in options and file names."""
        return "parquet"

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Read the rows of a file."""
        return read_batches(source, request, self._most_bytes, self._cache)

    def share(self, source: pa.NativeFile, request: ShareRequest) -> SharedFile | None:
        """Return the bytes of a file for another decoder; see `paimon.ports.formats.FileSharing`."""
        return share_file(source, request, self._most_bytes)

    def inspect(self, source: pa.NativeFile, path: str) -> FileContent:
        """Return the columns and the number of rows of a file; see `paimon.ports.formats.FileInspection`."""
        return inspect_file(source, path)

    def read_statistics(self, source: pa.NativeFile, path: str, fields: Sequence[DataField]) -> Sequence[ColumnStats]:
        """Return the statistics that the footer has of columns."""
        return read_statistics(source, path, fields)

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        """Return a writer of one file."""
        return ParquetWriter(sink, request)


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
