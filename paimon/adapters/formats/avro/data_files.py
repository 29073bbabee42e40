"""AvroFormat: data files in Avro.

Law: a file holds the records that Java's writer would write, in blocks of about 64 KB; statistics are collected while
writing, for Avro stores none. Source: `AvroFileFormat`, `AvroBulkFormat`, `AvroBulkWriter`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.avro.codecs import avro_codec
from paimon.adapters.formats.avro.container import (
    SYNC_BYTES,
    Block,
    block_bytes,
    header_bytes,
    read_blocks,
    read_header,
)
from paimon.adapters.formats.avro.decode import decode_plan
from paimon.adapters.formats.avro.encode import encode_records
from paimon.adapters.formats.avro.schema import avro_schema
from paimon.domain.errors import InvalidRequest
from paimon.domain.stats.collect import collect, combine
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.ports.files import OutputFile
from paimon.ports.formats import FormatWriter, ReadRequest, WriteRequest, WrittenFile

_BLOCK_BYTES = 64_000
_WRITE_ROWS = 65_536
_MAX_BLOCK_BYTES = 256 * 1024 * 1024


@frozen
class AvroFormat:
    """See `paimon.ports.formats.FormatIO`."""

    @property
    def identifier(self) -> str:
        """The format's name in options and file names."""
        return "avro"

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Batches of at most a block; the predicate skips nothing, for Avro tells nothing about its blocks."""
        header = read_header(source, request.path)
        plan = decode_plan(header.schema, request.fields, request.path)
        start, end = request.row_range or (0, None)
        row = 0
        for block in read_blocks(source, header, request.path, _MAX_BLOCK_BYTES):
            first, row = row, row + block.record_count
            if row <= start:
                continue
            if end is not None and first >= end:
                return
            yield from _cut(plan.batch(block, request.path), max(start - first, 0), end and end - first, request)

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        """A writer of one file."""
        return AvroWriter(sink, request)


class AvroWriter:
    """The state of one file being written: rows and statistics so far."""

    def __init__(self, sink: OutputFile, request: WriteRequest) -> None:
        self._sink = sink
        self._request = request
        self._codec = avro_codec(request.compression)
        header = header_bytes(json.dumps(avro_schema(request.fields), separators=(",", ":")), self._codec)
        self._sync = header[-SYNC_BYTES:]
        self._rows = 0
        self._stats: list[ColumnStats] | None = None
        sink.write(header)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Encodes and writes the rows."""
        batches = [batch] if isinstance(batch, pa.RecordBatch) else batch.to_batches()
        for whole in batches:
            for start in range(0, whole.num_rows, _WRITE_ROWS):
                self._write(whole.slice(start, _WRITE_ROWS))

    def estimated_bytes(self) -> int:
        """Bytes in the sink: nothing is held back."""
        return self._sink.tell()

    def held_bytes(self) -> int:
        """Nothing is held: each call writes its blocks."""
        return 0

    def flush(self) -> None:
        """Nothing is held."""

    def close(self) -> WrittenFile:
        """Finishes the file."""
        unseen = [ColumnStats(null_count=0)] * len(self._request.fields)
        size = self._sink.tell()
        self._sink.close()
        return WrittenFile(size, self._rows, unseen if self._stats is None else self._stats)

    def abort(self) -> None:
        """Leaves nothing."""
        self._sink.abort()

    def _write(self, batch: pa.RecordBatch) -> None:
        fields = self._request.fields
        columns = [batch.column(i) for i in range(batch.num_columns)]
        records = encode_records(columns, fields, batch.num_rows)
        if records.null_count:
            names = [f.name for f, c in zip(fields, columns, strict=True) if c.null_count and not f.type.nullable]
            raise InvalidRequest(f"null in a column that must not be null: {', '.join(names) or 'a nested one'}")
        self._collect(columns)
        self._rows += batch.num_rows
        for block in _blocks(records):
            self._sink.write(block_bytes(block, self._codec, self._sync, self._request.zstd_level))

    def _collect(self, columns: list[pa.Array]) -> None:
        types = [f.type for f in self._request.fields]
        stats = [collect(column, kind) for column, kind in zip(columns, types, strict=True)]
        if self._stats is not None:
            stats = [combine(old, new, kind) for old, new, kind in zip(self._stats, stats, types, strict=True)]
        self._stats = stats


def _blocks(records: pa.BinaryArray) -> Iterator[Block]:
    """The records in blocks of about `_BLOCK_BYTES`."""
    offsets = np.frombuffer(records.buffers()[1], np.int32, len(records) + 1, records.offset * 4)
    data = memoryview(records.buffers()[2] or b"")
    start = 0
    while start < len(records):
        end = max(int(np.searchsorted(offsets, offsets[start] + _BLOCK_BYTES)), start + 1)
        end = min(end, len(records))
        yield Block(end - start, bytes(data[offsets[start] : offsets[end]]))
        start = end


def _cut(batch: pa.RecordBatch, start: int, end: int | None, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    stop = batch.num_rows if end is None else min(end, batch.num_rows)
    for at in range(start, stop, request.batch_rows):
        yield batch.slice(at, min(request.batch_rows, stop - at))


