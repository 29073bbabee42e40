"""Write one Parquet file, and choose a dictionary, an encoding and a codec for each of its columns.

A row group is closed when its rows reach the requested bytes in memory, or the requested number of rows. `close`
returns the statistics of the footer, and those that footers leave out: NaN, and bounds of long texts.

Invariant: rows are stored in the order in which they are written.
Source: `ParquetRowDataBuilder`, `ParquetSimpleStatsExtractor`.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paimon.adapters.formats.parquet.column_stats import NAN, combine_stats, read_chunk_stats
from paimon.adapters.formats.parquet.footer import rewrite_tail
from paimon.adapters.formats.parquet.row_groups import ConcurrentRowGroups, RowGroupWriter, SerialRowGroups
from paimon.adapters.formats.parquet.schema import int96_leaves, list_leaf_types, make_write_schema, to_stored
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.options.parse import parse_bool, parse_memory
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.ports.files import OutputFile
from paimon.ports.formats import WriteRequest, WrittenFile

# Choose how each leaf column of a Parquet file is stored, from the first rows of the file.
#
#     column        first rows         dictionary   encoding              codec
#     id            1, 2, 3, 4, ...    no           DELTA_BINARY_PACKED   none: zstd saves 3 %
#     status        'paid', 'open'     yes          codes of 1 bit        none
#     note          long texts         no           PLAIN                 zstd: saves 60 %
#
# Dictionary: if the first rows show that a dictionary and its codes take fewer bytes than the values. To build a
# dictionary of values that never repeat is the most expensive part of writing a file. Nested columns always get one.
# DECIMAL of more than 18 digits never does: Java compares the bytes of a literal, as few as it needs, with the entries,
# and skips row groups that have the value. Its own files have no dictionary of FIXED_LEN_BYTE_ARRAY.
#
# Differences (DELTA_BINARY_PACKED): for stored types INT32 and INT64 without a dictionary. Blocks of 128 values store
# the differences to their neighbours with as few bits as the largest needs. Sorted keys, sequence numbers, dates and
# times become small, and decode faster than zstd.
#
# If the first row group has fewer than 8,000 rows, the file has no differences and one codec: the trial would cost as
# much as the row group.
#
# Codec: if the caller allows it (`WriteRequest.least_saving`), a column is stored without the codec that saves too
# little: each reader decompresses the whole column for it.
#
# Invariant: only size and speed depend on the choice. Source of the dictionaries:
# `DictionaryValuesWriter.isCompressionSatisfying`, which decides after the first page. The rest is our own choice; Java
# reads it. The measurements are in docs/decisions/parquet-layout.md.


_MOST_ROWS = 20_000
_SHARE = 8
"""One row in eight is looked at, but no more rows than a page of Java has."""
_LEAST_ROWS = 1_000
_SAMPLE_ROWS = 2_000
_PLAIN, _SAVING = 0.99, 0.1
"""If the share of distinct values in the sample is above the first or below the second, the sample decides."""
_DELTA = "DELTA_BINARY_PACKED"
_DELTA_SHARE = 0.8
"""The most bytes that differences may take of those of the values: plain values decode faster."""
_DELTA_OPTION = "parquet.delta-integers"
_NO_CODEC = "none"


def choose_column_options(first: pa.Table, request: WriteRequest) -> dict[str, Any]:
    """Return the options of `pyarrow.parquet.ParquetWriter` for a file that begins with these stored rows."""
    options = _writer_options(request)
    if options.get("use_dictionary", True):
        options["use_dictionary"] = choose_dictionary_leaves(first, is_required="use_dictionary" in options)
    if first.num_rows >= _LEAST_ROWS * _SHARE:
        sample = first.slice(0, _sample_rows(first))
        if parse_bool(request.options.get(_DELTA_OPTION, "true")):
            options["column_encoding"] = dict.fromkeys(_choose_delta_columns(sample, options), _DELTA) or None
        if request.least_saving > 0 and options["compression"] != _NO_CODEC:
            options |= _choose_codecs(sample, options, request.least_saving)
    return options


def _choose_delta_columns(sample: pa.Table, options: Mapping[str, Any]) -> list[str]:
    """Return the columns of integers without a dictionary that are smaller as differences."""
    coded = options["use_dictionary"]
    plain = [f.name for f in sample.schema if _is_stored_as_integer(f.type) and coded is not True]
    integers = sample.select([name for name in plain if name not in (coded or ())])
    names = integers.column_names
    encodings = dict.fromkeys(names, _DELTA)
    trial = {"use_dictionary": False, "column_encoding": encodings, "compression": _NO_CODEC}
    chunks = _encode_sample(integers, trial)
    widths = {"INT32": 4, "INT64": 8}
    rows = [sample.num_rows - integers.column(name).null_count for name in names]
    return [
        name
        for name, chunk, count in zip(names, chunks, rows, strict=True)
        if chunk.total_uncompressed_size <= _DELTA_SHARE * count * widths[chunk.physical_type]
    ]


def _is_stored_as_integer(kind: pa.DataType) -> bool:
    """Return whether the values of a stored type are INT32 or INT64 in the file."""
    is_small_decimal = pa.types.is_decimal(kind) and kind.precision <= _INT64_DIGITS
    return bool(is_small_decimal or pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _choose_codecs(sample: pa.Table, options: Mapping[str, Any], least_saving: float) -> dict[str, Any]:
    """Return the options with a codec for each leaf column: that of the file, or none if it saves too little."""
    codec, level = options["compression"], options["compression_level"]
    codecs = {
        chunk.path_in_schema: codec
        if chunk.total_compressed_size <= (1 - least_saving) * chunk.total_uncompressed_size
        else _NO_CODEC
        for chunk in _encode_sample(sample, options)
    }
    levels = {leaf: level for leaf, chosen in codecs.items() if chosen == codec and level is not None}
    return {"compression": codecs, "compression_level": levels or None}


def _encode_sample(sample: pa.Table, options: Mapping[str, Any]) -> list[pq.ColumnChunkMetaData]:
    """Return the descriptions of the leaf columns of a file of these rows; none for a table without columns."""
    if not sample.num_columns:
        return []
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, sample.schema, **{"store_decimal_as_integer": True} | dict(options)) as writer:
        writer.write_table(sample)
    group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    return [group.column(leaf) for leaf in range(group.num_columns)]


def _sample_rows(first: pa.Table) -> int:
    return int(min(_MOST_ROWS, max(_LEAST_ROWS, first.num_rows // _SHARE)))


def choose_dictionary_leaves(table: pa.Table, is_required: bool = False) -> list[str]:
    """Return the paths of the leaf columns that get a dictionary, from the first stored rows; if required, of all."""
    rows = _sample_rows(table)
    leaves: list[str] = []
    for field in table.schema:
        paths = _leaf_paths(field.name, field.type)
        is_chosen = is_required or pa.types.is_nested(field.type)
        if is_chosen or (paths and _is_smaller_with_dictionary(table.column(field.name).slice(0, rows))):
            leaves += paths
    return leaves


def _is_smaller_with_dictionary(values: pa.ChunkedArray) -> bool:
    """Return whether a dictionary and its codes are smaller than the values."""
    rows = len(values) - values.null_count
    if rows == 0:
        return True
    if rows == len(values) > _SAMPLE_ROWS:
        share = pc.count_distinct(values.slice(0, _SAMPLE_ROWS)).as_py() / _SAMPLE_ROWS
        if not _SAVING <= share <= _PLAIN:
            return bool(share < _SAVING)
    distinct = pc.count_distinct(values, mode="only_valid").as_py()
    plain_bits = 8 * values.nbytes
    return bool(plain_bits * distinct / rows + rows * max(1, (distinct - 1).bit_length()) < plain_bits)


def _leaf_paths(path: str, kind: pa.DataType) -> list[str]:
    """Return the paths of the leaf columns that may get a dictionary."""
    if pa.types.is_struct(kind):
        return [leaf for part in kind for leaf in _leaf_paths(f"{path}.{part.name}", part.type)]
    if pa.types.is_map(kind):
        parts = (("key", kind.key_type), ("value", kind.item_type))
        return [leaf for name, part in parts for leaf in _leaf_paths(f"{path}.key_value.{name}", part)]
    if pa.types.is_nested(kind):
        return _leaf_paths(f"{path}.list.element", kind.value_type)
    return [] if pa.types.is_decimal(kind) and kind.precision > _INT64_DIGITS else [path]


_INT64_DIGITS = 18
DEFAULT_BLOCK_BYTES = 128 * 1024 * 1024
_NO_LIMIT = 2**63 - 1
_CODECS = {
    "zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "gz": "gzip", "lz4": "lz4", "lz4_raw": "lz4",
    "brotli": "brotli", "none": "none", "uncompressed": "none", "null": "none", "": "none",
}  # fmt: skip
"""The codec names of pyarrow's Parquet writer, by the names of table options."""
_FOOTER_TEXT_LIMIT = 4096
"""pyarrow leaves longer bounds out of footers."""
_SINK_BUFFER_BYTES = 256 * 1024
"""Pages and their headers are passed to the sink together, because each call goes from Arrow to Python."""
_CONCURRENT_BYTES = 16 * 1024 * 1024
"""The least size in memory of the first row group if its columns are encoded in several tasks."""


class ParquetWriter:
    """`paimon.ports.formats.FormatWriter` for one Parquet file. `close` closes the sink, `abort` removes its file."""

    def __init__(self, sink: OutputFile, request: WriteRequest) -> None:
        self._sink = sink
        self._path = request.path
        self._fields = request.fields
        self._schema = make_write_schema(request.fields)
        self._block_bytes, self._block_rows = _block_limits(request)
        self._request = request
        _writer_options(request)  # refuses bad options before the first row
        self._tail = _TailHoldingSink(sink)
        self._buffered = pa.BufferedOutputStream(pa.PythonFile(self._tail, "w"), _SINK_BUFFER_BYTES)
        self._group_stats: list[list[ColumnStats | None]] = []
        self._executor = request.executor
        self._most_held_bytes = request.held_bytes or _NO_LIMIT
        self._opened: RowGroupWriter | None = None
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._pending_rows = 0
        self._row_count = 0
        self._stored_share = 1.0

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows in canonical Arrow types."""
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        if not table.num_rows:
            return
        self._pending.append(table)
        self._pending_bytes += table.nbytes
        self._pending_rows += table.num_rows
        self._row_count += table.num_rows
        if self._pending_bytes >= self._block_bytes or self._pending_rows >= self._block_rows:
            self._write_full_groups()
        if self._pending_bytes > self._most_held_bytes:
            self.flush()

    def estimated_bytes(self) -> int:
        """Return the estimated size of the file so far; rows in memory count with the ratio of earlier rows."""
        return int(self._buffered.tell() + self._pending_bytes * self._stored_share)

    def held_bytes(self) -> int:
        """Return the bytes of the rows in memory that wait for a full row group."""
        return self._pending_bytes

    def flush(self) -> None:
        """Close the row group, full or not."""
        if self._pending:
            self._write_group(pa.concat_tables(self._pending))
            self._set_pending([])

    def close(self) -> WrittenFile:
        """Finish the file and return its size, row count and statistics."""
        self.flush()
        writer = self._writer_for(self._schema.empty_table()) if self._opened is None else self._opened
        self._buffered.flush()
        self._tail.begin_holding()
        writer.close()
        self._buffered.flush()
        tail = self._tail.take_held_bytes()
        self._sink.write(rewrite_tail(tail, int96_leaves(self._fields)))
        size = self._sink.tell()
        self._sink.close()
        return WrittenFile(size, self._row_count, self._column_stats(pq.read_metadata(pa.BufferReader(tail))))

    def abort(self) -> None:
        """Discard the file."""
        self._pending = []
        self._tail.begin_holding()
        with contextlib.suppress(pa.ArrowException):  # a writer that failed once cannot finish
            if self._opened is not None:
                self._opened.close()
        self._sink.abort()

    def _writer_for(self, first: pa.Table) -> RowGroupWriter:
        """Return the open writer, whose encodings depend on the first rows."""
        if self._opened is None:
            choice = choose_column_options(first, self._request)
            if self._executor is None or first.num_columns < 2 or first.nbytes < _CONCURRENT_BYTES:
                self._opened = SerialRowGroups(self._buffered, self._schema, choice)
            else:
                self._opened = ConcurrentRowGroups(self._buffered, self._schema, choice, self._executor)
        return self._opened

    def _write_full_groups(self) -> None:
        table = pa.concat_tables(self._pending)
        rows = max(1, min(self._block_rows, self._block_bytes * table.num_rows // max(1, self._pending_bytes)))
        start = 0
        while table.num_rows - start >= rows:
            self._write_group(table.slice(start, rows))
            start += rows
        self._set_pending([table.slice(start)] if start < table.num_rows else [])

    def _set_pending(self, pending: list[pa.Table]) -> None:
        self._pending = pending
        self._pending_bytes = sum(table.nbytes for table in pending)
        self._pending_rows = sum(table.num_rows for table in pending)

    def _write_group(self, table: pa.Table) -> None:
        before = self._buffered.tell()
        columns = [
            pa.chunked_array([to_stored(chunk, f.type) for chunk in table.column(i).chunks], kind.type)
            for i, (f, kind) in enumerate(zip(self._fields, self._schema, strict=True))
        ]
        self._group_stats.append([_stats_beyond_footer(table.column(i), f.type) for i, f in enumerate(self._fields)])
        stored = pa.Table.from_arrays(columns, schema=self._schema)
        try:
            self._writer_for(stored).write(stored)
        except pa.ArrowInvalid as error:
            raise InvalidRequest(f"{self._path}: the rows cannot be written as Parquet: {error}") from error
        self._stored_share = (self._buffered.tell() - before) / max(1, table.nbytes)

    def _column_stats(self, footer: pq.FileMetaData) -> tuple[ColumnStats, ...]:
        rows = [footer.row_group(g).num_rows for g in range(footer.num_row_groups)]
        stats = []
        leaf = 0
        for index, column in enumerate(self._fields):
            parts = [
                self._group_stats[g][index] or read_chunk_stats(footer.row_group(g).column(leaf), column.type)
                for g in range(footer.num_row_groups)
            ]
            stats.append(combine_stats(parts, rows))
            leaf += len(list_leaf_types(column.type))
        return tuple(stats)


class _TailHoldingSink:
    """The sink as pyarrow sees it. Bytes can be held in memory, so that the footer can be rewritten."""

    closed = False

    def __init__(self, sink: OutputFile) -> None:
        self._sink = sink
        self._size = 0
        self._held: io.BytesIO | None = None

    def begin_holding(self) -> None:
        """Keep all bytes from now on in memory."""
        self._held = io.BytesIO()

    def take_held_bytes(self) -> bytes:
        """Return the bytes that are held in memory."""
        return b"" if self._held is None else self._held.getvalue()

    def write(self, data: bytes) -> int:
        """Append bytes."""
        self._size += len(data)
        (self._sink if self._held is None else self._held).write(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._size

    def flush(self) -> None:
        """Do nothing: the sink is flushed at its close."""

    def close(self) -> None:
        """Do nothing: the writer closes the sink."""


def _stats_beyond_footer(column: pa.ChunkedArray, data_type: dt.DataType) -> ColumnStats | None:
    """Return the statistics of a column if Java computes them in another way than the footer states."""
    match data_type:
        case dt.FloatType() | dt.DoubleType():
            nan = pc.is_nan(column)
            if not pc.any(nan).as_py():
                return None
            numbers = pc.min(column.filter(pc.invert(nan))).as_py()
            return ColumnStats(NAN if numbers is None else numbers, NAN, column.null_count)
        case dt.CharType() | dt.VarCharType():
            if (pc.max(pc.binary_length(column)).as_py() or 0) < _FOOTER_TEXT_LIMIT:
                return None
            bounds = pc.min_max(column).as_py()
            return ColumnStats(bounds["min"], bounds["max"], column.null_count)
    return None


def _block_limits(request: WriteRequest) -> tuple[int, int]:
    """Return the bytes and rows at which a row group is full. A requested number of bytes has precedence over rows."""
    size = request.options.get("parquet.block.size")
    block_bytes = request.block_bytes or (parse_memory(size) if size else None)
    return block_bytes or DEFAULT_BLOCK_BYTES, (None if block_bytes else request.block_rows) or _NO_LIMIT


def _writer_options(request: WriteRequest) -> dict[str, Any]:
    options = request.options
    name = find_parquet_codec(request.compression)
    page = options.get("parquet.page.size")
    dictionary = options.get("parquet.enable.dictionary")
    dictionary_page = options.get("parquet.dictionary.page.size")
    return {
        "compression": name,
        "compression_level": request.zstd_level if name == "zstd" else None,
        "store_schema": False,
        "store_decimal_as_integer": True,
        "write_page_index": True,
        "write_page_checksum": True,
        **({"use_dictionary": parse_bool(dictionary)} if dictionary else {}),
        "data_page_size": parse_memory(page) if page else None,
        "dictionary_pagesize_limit": parse_memory(dictionary_page) if dictionary_page else None,
    }


def find_parquet_codec(name: str) -> str:
    """Return the codec name of pyarrow's Parquet writer. An unknown name is refused, never replaced."""
    found = _CODECS.get(name.strip().lower())
    if found is None:
        raise Unsupported(f"compression {name!r} in Parquet", hint=f"use one of {', '.join(filter(None, _CODECS))}")
    return found
