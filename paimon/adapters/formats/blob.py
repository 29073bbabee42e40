"""BlobFormat: files of the values of one BLOB column.

Invariant: a file has the bytes that Java's writer would write. A value is in memory alone or in a batch of limited
size. Source: `BlobFileFormat`, `BlobFormatReader`, `BlobFormatWriter`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.row_ranges import RowRanges
from paimon.domain.columns import blob_file
from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.arrow import arrow_schema
from paimon.ports.files import OutputFile
from paimon.ports.formats import FormatWriter, ReadRequest, WriteRequest, WrittenFile

_BATCH_BYTES = 64 * 1024 * 1024
"""The size of a batch if the request has no limit; a larger value is a batch of its own."""
_PIECE_BYTES = 1024 * 1024
"""Small records are joined to pieces of this size before they are written."""


@frozen
class BlobFormat:
    """`paimon.ports.formats.FormatIO` for blob files."""

    @property
    def identifier(self) -> str:
        """The name of the format in file names."""
        return "blob"

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Read the values of a file in batches of limited size; the predicate skips nothing."""
        lengths = _read_index(source, request.path)
        starts = np.cumsum(np.maximum(lengths, 0)) - np.maximum(lengths, 0)
        limit = min(request.batch_bytes or _BATCH_BYTES, blob_file.MAX_BATCH_BYTES)
        ranges = RowRanges.of(request, len(lengths))
        for row, last in zip(ranges.starts.tolist(), np.minimum(ranges.ends, len(lengths)).tolist(), strict=True):
            while row < last:
                part = lengths[row : min(last, row + request.batch_rows)]
                part = part[: blob_file.count_rows_within(part, limit)]
                yield _read_batch(source, request, int(starts[row]), part)
                row += len(part)

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        """Return a writer of one file."""
        return BlobWriter(sink, request)


def _read_batch(source: pa.NativeFile, request: ReadRequest, start: int, lengths: blob_file.Lengths) -> pa.RecordBatch:
    size = int(np.maximum(lengths, 0).sum())
    if size > blob_file.MAX_BATCH_BYTES:
        raise Unsupported(f"a BLOB value of {size} bytes", hint="read the other columns or rows")
    values = blob_file.decode_records(_read_bytes(source, start, size, request.path), lengths, request.path)
    if request.fields:
        return pa.RecordBatch.from_arrays([values], schema=arrow_schema(request.fields))
    return pa.RecordBatch.from_arrays([values], ["values"]).select([])  # keeps the number of rows


def _read_index(source: pa.NativeFile, path: str) -> blob_file.Lengths:
    file_bytes = source.size()
    tail_at = max(0, file_bytes - blob_file.TAIL_BYTES)
    tail = _read_bytes(source, tail_at, file_bytes - tail_at, path).to_pybytes()
    size = blob_file.decode_tail(tail, file_bytes, path)
    index = _read_bytes(source, tail_at - size, size, path).to_pybytes()
    return blob_file.decode_index(index, tail_at - size, path)


def _read_bytes(source: pa.NativeFile, start: int, size: int, path: str) -> pa.Buffer:
    source.seek(start)
    found = source.read_buffer(size)
    if found.size != size:
        raise CorruptTable(path, f"ends after {start + found.size} bytes")
    return found


class BlobWriter:
    """`paimon.ports.formats.FormatWriter` for one blob file. `close` closes the sink, `abort` removes its file."""

    def __init__(self, sink: OutputFile, request: WriteRequest) -> None:
        self._sink = sink
        (self._field,) = request.fields
        self._lengths: list[blob_file.Lengths] = []

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Write the records of the values of the only column."""
        column = batch.column(0)
        if column.null_count and not self._field.type.nullable:
            raise InvalidRequest(f"Column {self._field.name} is NOT NULL, but a row has no value for it")
        for values in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            self._lengths.append(blob_file.measure_records(values))
            self._write_records(values)

    def _write_records(self, values: pa.BinaryArray) -> None:
        held: list[bytes | memoryview] = []
        held_bytes = 0
        for piece in blob_file.encode_records(values):
            held.append(piece)
            held_bytes += len(piece)
            if held_bytes >= _PIECE_BYTES:
                self._write_pieces(held)
                held, held_bytes = [], 0
        self._write_pieces(held)

    def _write_pieces(self, pieces: list[bytes | memoryview]) -> None:
        """Write pieces; large ones are not copied."""
        if len(pieces) <= 3:  # the parts of one record
            for piece in pieces:
                self._sink.write(piece)  # type: ignore[arg-type]  # any object with the buffer protocol
        else:
            self._sink.write(b"".join(pieces))

    def estimated_bytes(self) -> int:
        """Return the bytes in the sink: no rows are held back."""
        return self._sink.tell()

    def held_bytes(self) -> int:
        """Return 0: each call of `write` writes its records."""
        return 0

    def flush(self) -> None:
        """Do nothing: no rows are held back."""

    def close(self) -> WrittenFile:
        """Write the index, and return the size, the row count and empty statistics."""
        lengths = np.concatenate([np.zeros(0, np.int64), *self._lengths])
        self._sink.write(blob_file.encode_index(lengths))
        size = self._sink.tell()
        self._sink.close()
        return WrittenFile(size, len(lengths), [ColumnStats()])

    def abort(self) -> None:
        """Discard the file."""
        self._sink.abort()
