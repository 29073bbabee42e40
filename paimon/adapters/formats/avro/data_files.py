"""AvroFormat: data files in Avro.

Invariant: a file holds the records that Java's writer would write, in blocks of about 64 KB. Statistics are collected
while writing, because Avro stores none. Source: `AvroFileFormat`, `AvroBulkFormat`, `AvroBulkWriter`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.avro.container import (
    SYNC_BYTES,
    Block,
    avro_codec,
    count_records,
    encode_header,
    pack_block,
    read_blocks,
    read_header,
)
from paimon.adapters.formats.avro.decode import decode_plan, stored_type
from paimon.adapters.formats.avro.encode import avro_schema, encode_records
from paimon.adapters.formats.guards.avro import load_checked_schema
from paimon.adapters.formats.row_ranges import RowRanges
from paimon.domain.columns.decimal_overflow import drop_excess_digits
from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.stats.collect import collect_column_stats, combine_column_stats
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import DataField
from paimon.ports.files import OutputFile
from paimon.ports.formats import FileContent, FormatWriter, ReadRequest, WriteRequest, WrittenFile

_BLOCK_BYTES = 64_000
_WRITE_ROWS = 65_536
_MAX_BLOCK_BYTES = 256 * 1024 * 1024
_GROUP_BYTES = 8 * 1024 * 1024
"""The size of blocks that are decoded together; larger blocks are decoded alone."""


@frozen
class AvroFormat:
    """`paimon.ports.formats.FormatIO` for Avro files."""

    @property
    def identifier(self) -> str:
        """The name of the format in options and file names."""
        return "avro"

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Read the rows in batches of blocks or parts of one; blocks have no statistics for the predicate."""
        header = read_header(source, request.path)
        plan = decode_plan(header.schema, request.fields, request.path)
        ranges = RowRanges.of(request, LARGEST_LONG)
        stored_blocks = read_blocks(source, header, request.path, _MAX_BLOCK_BYTES)
        for row, blocks in _group_blocks(_select_blocks(stored_blocks, ranges), request.batch_rows):
            for batch in plan.decode(blocks, request.path):
                wanted = ranges.cut(batch, row)
                for at in range(0, wanted.num_rows, request.batch_rows):
                    yield wanted.slice(at, request.batch_rows)
                row += batch.num_rows

    def inspect(self, source: pa.NativeFile, path: str) -> FileContent:
        """Return the columns and the number of rows of a file; see `paimon.ports.formats.FileInspection`."""
        return inspect_file(source, path)

    def read_statistics(self, source: pa.NativeFile, path: str, fields: Sequence[DataField]) -> Sequence[ColumnStats]:
        """Return statistics without values: Avro stores none."""
        return [ColumnStats() for _ in fields]

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        """Return a writer of one file."""
        return AvroWriter(sink, request)


class AvroWriter:
    """`paimon.ports.formats.FormatWriter` for one Avro file. `close` closes the sink, `abort` removes its file."""

    def __init__(self, sink: OutputFile, request: WriteRequest) -> None:
        self._sink = sink
        self._request = request
        self._codec = avro_codec(request.compression)
        header = encode_header(json.dumps(avro_schema(request.fields), separators=(",", ":")), self._codec)
        self._sync = header[-SYNC_BYTES:]
        self._rows = 0
        self._stats: list[ColumnStats] | None = None
        sink.write(header)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Encode and write rows in canonical Arrow types."""
        batches = [batch] if isinstance(batch, pa.RecordBatch) else batch.to_batches()
        for whole in batches:
            for start in range(0, whole.num_rows, _WRITE_ROWS):
                self._write(whole.slice(start, _WRITE_ROWS))

    def estimated_bytes(self) -> int:
        """Return the bytes in the sink: no rows are held back."""
        return self._sink.tell()

    def held_bytes(self) -> int:
        """Return 0: each call of `write` writes its blocks."""
        return 0

    def flush(self) -> None:
        """Do nothing: no rows are held back."""

    def close(self) -> WrittenFile:
        """Finish the file and return its size, row count and statistics."""
        unseen = [ColumnStats(null_count=0)] * len(self._request.fields)
        size = self._sink.tell()
        self._sink.close()
        return WrittenFile(size, self._rows, unseen if self._stats is None else self._stats)

    def abort(self) -> None:
        """Discard the file."""
        self._sink.abort()

    def _write(self, batch: pa.RecordBatch) -> None:
        fields = self._request.fields
        columns = [batch.column(i) for i in range(batch.num_columns)]
        records = encode_records(columns, fields, batch.num_rows)
        if records.null_count:
            names = [f.name for f, c in zip(fields, columns, strict=True) if c.null_count and not f.type.nullable]
            raise InvalidRequest(
                f"Column {', '.join(names) or '(a nested part)'} is NOT NULL, but a row has no value for it"
            )
        self._collect(columns)
        self._rows += batch.num_rows
        for block in _make_blocks(records):
            self._sink.write(pack_block(block, self._codec, self._sync, self._request.zstd_level))

    def _collect(self, columns: list[pa.Array]) -> None:
        types = [f.type for f in self._request.fields]
        as_read = [drop_excess_digits(c) if pa.types.is_decimal(c.type) else c for c in columns]
        stats = [collect_column_stats(column, kind) for column, kind in zip(as_read, types, strict=True)]
        if self._stats is not None:
            stats = [
                combine_column_stats(old, new, kind) for old, new, kind in zip(self._stats, stats, types, strict=True)
            ]
        self._stats = stats


def _make_blocks(records: pa.BinaryArray) -> Iterator[Block]:
    """Yield the records in blocks of about `_BLOCK_BYTES`."""
    offsets = np.frombuffer(records.buffers()[1], np.int32, len(records) + 1, records.offset * 4)
    data = memoryview(records.buffers()[2] or b"")
    start = 0
    while start < len(records):
        end = max(int(np.searchsorted(offsets, offsets[start] + _BLOCK_BYTES)), start + 1)
        end = min(end, len(records))
        yield Block(end - start, bytes(data[offsets[start] : offsets[end]]))
        start = end


def _select_blocks(blocks: Iterable[Block], ranges: RowRanges) -> Iterator[tuple[int, Block]]:
    """Yield the blocks with rows of the ranges, and the position of the first row of each."""
    row = 0
    end = int(ranges.ends[-1]) if len(ranges.ends) else 0
    for block in blocks:
        if row >= end:
            return
        low, high = ranges.find_hull(row, block.record_count)
        if low < high:
            yield row, block
        row += block.record_count
        if row >= end:
            return


def _group_blocks(blocks: Iterator[tuple[int, Block]], batch_rows: int) -> Iterator[tuple[int, list[Block]]]:
    """Yield adjacent blocks of about a batch with their first position; CorruptTable after the sound ones."""
    group: list[Block] = []
    first = rows = size = 0
    try:
        for row, block in blocks:
            is_full = rows + block.record_count > batch_rows or size + len(block.data) > _GROUP_BYTES
            if group and (is_full or row != first + rows):
                yield first, group
                group, rows, size = [], 0, 0
            first = first if group else row
            group.append(block)
            rows, size = rows + block.record_count, size + len(block.data)
    except CorruptTable:
        if group:
            yield first, group
        raise
    if group:
        yield first, group


def inspect_file(source: pa.NativeFile, path: str) -> FileContent:
    """Return the columns of the records, and their number; no block is decompressed."""
    header = read_header(source, path)
    node = load_checked_schema(header.schema, path)
    if not isinstance(node, dict) or node.get("type") != "record":
        raise Unsupported(f"the Avro file {path}, which has no records", hint="write each row as a record")
    columns = [(f["name"], _declared_type(f["type"])) for f in node["fields"]]
    return FileContent(pa.schema(columns), count_records(source, header, path))


def _declared_type(node: Any) -> pa.DataType:
    """Return the Arrow type of a column; maps are maps, unlike in `stored_type`."""
    if isinstance(node, list):
        branches = [branch for branch in node if branch != "null"]
        return _declared_type(branches[0]) if len(branches) == 1 else stored_type(node)
    kind = node if isinstance(node, str) else node["type"]
    match kind:
        case "record":
            return pa.struct([(f["name"], _declared_type(f["type"])) for f in node["fields"]])
        case "array":
            return pa.list_(_declared_type(node["items"]))
        case "map":
            return pa.map_(pa.string(), _declared_type(node["values"]))
        case _:
            return stored_type(node)
