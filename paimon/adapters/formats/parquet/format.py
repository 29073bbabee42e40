"""ParquetFormat: Parquet data files as Java writes and reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon.adapters.formats.guards.parquet_batches import MOST_BYTES
from paimon.adapters.formats.parquet.inspect_file import inspect_file, read_statistics
from paimon.adapters.formats.parquet.reader import read_batches
from paimon.adapters.formats.parquet.shared_file import share_file
from paimon.adapters.formats.parquet.writer import ParquetWriter
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import DataField
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
