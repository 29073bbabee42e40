"""ParquetFormat: Parquet data files as Java writes and reads them.

Law: it only joins reader and writer; what they do is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from paimon.adapters.formats.parquet.reading.reader import read_batches
from paimon.adapters.formats.parquet.writer import ParquetWriter
from paimon.ports.files import OutputFile
from paimon.ports.formats import FormatWriter, ReadRequest, WriteRequest


class ParquetFormat:
    """See `paimon.ports.formats.FormatIO`."""

    @property
    def identifier(self) -> str:
        """The name of the format in options and file names."""
        return "parquet"

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        return read_batches(source, request)

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        """A writer of one file."""
        return ParquetWriter(sink, request)
