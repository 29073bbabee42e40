"""ParquetFormat: Parquet data files as Java writes and reads them.

Law: it only joins reader and writer; what they do is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from paimon.adapters.formats.parquet.reading.reader import read_batches
from paimon.adapters.formats.parquet.reading.weights import MOST_BYTES
from paimon.adapters.formats.parquet.writer import ParquetWriter
from paimon.ports.files import OutputFile
from paimon.ports.formats import FormatWriter, ReadRequest, WriteRequest


class ParquetFormat:
    """See `paimon.ports.formats.FormatIO`.

    Parameters
    ----------
    most_bytes : int
        What the pages of a file, or a batch of its rows, may take in memory: see `reading.weights`.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = max(most_bytes, MOST_BYTES)

    @property
    def identifier(self) -> str:
        """The name of the format in options and file names."""
        return "parquet"

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        return read_batches(source, request, self._most_bytes)

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        """A writer of one file."""
        return ParquetWriter(sink, request)
