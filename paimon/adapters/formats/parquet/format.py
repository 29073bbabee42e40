"""ParquetFormat: Parquet data files as Java writes and reads them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from paimon.adapters.formats.guards.parquet_batches import MOST_BYTES
from paimon.adapters.formats.parquet.reader import read_batches
from paimon.adapters.formats.parquet.shared_file import share_file
from paimon.adapters.formats.parquet.writer import ParquetWriter
from paimon.ports.cache import ObjectCache
from paimon.ports.files import OutputFile
from paimon.ports.formats import FormatWriter, ReadRequest, ShareRequest, WriteRequest
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

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        """Return a writer of one file."""
        return ParquetWriter(sink, request)
