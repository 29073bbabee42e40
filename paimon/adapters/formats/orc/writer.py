"""OrcWriter: Arrow's ORC writer, with a tail that states what Arrow's writer cannot.

Arrow writes the data once, except for times and nested rows that it would damage. Only the footer is held back and
rewritten.

Invariant: the statistics are those of the values as they are read again.
Source: `OrcFileFormat`, `OrcBulkWriter`; `docs/decisions/orc-through-arrow.md` describes the reasons.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyorc
from pyarrow import orc

from paimon.adapters.formats.guards.orc_tail import split_tail
from paimon.adapters.formats.nested import drop_offset, rebuild_leaves
from paimon.adapters.formats.orc.physical import (
    ORC_HEADER,
    character_lengths,
    encode_tail,
    from_physical,
    join_tails,
    make_orc_schema,
    set_string_types,
    to_physical,
)
from paimon.adapters.formats.orc.wide_timestamps import PyorcRowWriter, has_early_fractions
from paimon.domain.columns.decimal_overflow import drop_excess_digits
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.stats.collect import collect_column_stats, combine_column_stats
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import CharType, DataType, DecimalType
from paimon.ports.files import OutputFile
from paimon.ports.formats import WriteRequest, WrittenFile

_CODECS = {"none": "uncompressed", "null": "uncompressed", "gzip": "zlib", "deflate": "zlib"}
_KNOWN_CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
_STRIPE_BYTES = 64 * 1024 * 1024
_COMPRESS_BYTES = 256 * 1024
_BLOCK_UNIT_BYTES = 64 * 1024
_GUESSED_RATIO = 0.4
_WRITE_ROWS = 8_192


class OrcWriter:
    """`paimon.ports.formats.FormatWriter` for one ORC file. `close` closes the sink, `abort` removes its file."""

    def __init__(self, sink: OutputFile, request: WriteRequest) -> None:
        self._fields = request.fields
        self._schema = make_orc_schema(request.fields)
        self._settings = _writer_options(request)
        self._sink = _TailHoldingSink(sink)
        self._writer = orc.ORCWriter(self._sink, **self._settings, batch_size=_WRITE_ROWS)
        self._row_writer: PyorcRowWriter | None = None
        self._rows = 0
        self._arrow_rows = 0
        self._pending_bytes = 0
        self._flushed_bytes = 0
        self._stats: list[ColumnStats] | None = None

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Write rows in canonical Arrow types."""
        batches = [batch] if isinstance(batch, pa.RecordBatch) else batch.to_batches()
        for part in batches:
            self._write(part)

    def estimated_bytes(self) -> int:
        """Return the bytes in the sink and an estimate of what Arrow holds of the current stripe."""
        written = self._sink.tell() + (self._row_writer.size_bytes() if self._row_writer else 0)
        ratio = written / self._flushed_bytes if self._flushed_bytes else _GUESSED_RATIO
        return written + int(self._pending_bytes * min(ratio, 1.0))

    def held_bytes(self) -> int:
        """Return the bytes of the rows in the stripe that Arrow has not written yet."""
        return self._pending_bytes

    def flush(self) -> None:
        """Do nothing: Arrow ends a stripe by its size only."""

    def close(self) -> WrittenFile:
        """Finish the file and return its size, row count and statistics."""
        if not self._arrow_rows:
            self._write_arrow(self._schema.empty_table())
        self._sink.begin_holding()
        self._writer.close()
        self._sink.release(self._with_tail(self._sink.take_held_bytes()))
        size = self._sink.tell()
        self._sink.sink.close()
        unseen = [ColumnStats(null_count=0)] * len(self._fields)
        return WrittenFile(size, self._rows, unseen if self._stats is None else self._stats)

    def abort(self) -> None:
        """Discard the file."""
        self._sink.begin_holding()
        self._sink.sink.abort()

    def _write(self, batch: pa.RecordBatch) -> None:
        batch = pa.RecordBatch.from_arrays(
            [_drop_excess_digits(c, f.type) for c, f in zip(batch.columns, self._fields, strict=True)],
            schema=batch.schema,
        )
        columns = [rebuild_leaves(c, f.type, _to_stored) for c, f in zip(batch.columns, self._fields, strict=True)]
        nulls = [f.name for f, c in zip(self._fields, columns, strict=True) if c.null_count and not f.type.nullable]
        if nulls:
            raise InvalidRequest(f"Column {', '.join(nulls)} is NOT NULL, but a row has no value for it")
        self._rows += batch.num_rows
        self._collect(batch)
        if self._row_writer or any(_is_damaged_by_arrow(c, f.type) for c, f in zip(columns, self._fields, strict=True)):
            # Once such values have been seen, the rest of the file goes this way: rows keep their order.
            self._row_writer = self._row_writer or PyorcRowWriter(self._fields, _to_pyorc_settings(self._settings))
            self._row_writer.write(batch.columns)
            return
        before = self._sink.tell()
        self._write_arrow(pa.Table.from_arrays(columns, schema=self._schema))
        self._arrow_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        if self._sink.tell() > max(before, len(ORC_HEADER)):  # the first write stores the header at once
            self._flushed_bytes += self._pending_bytes
            self._pending_bytes = 0

    def _write_arrow(self, table: pa.Table) -> None:
        """Write rows by Arrow, which replaces an error of the storage by an OSError."""
        try:
            self._writer.write(table)
        except (OSError, pa.ArrowException):
            if self._sink.failure is not None:
                raise self._sink.failure from None
            raise

    def _with_tail(self, end: bytes) -> bytes:
        """Return the held end of Arrow's file, with the stripes of the row writer and the joined tail."""
        body, tail = split_tail(end)
        if self._row_writer:
            other, other_tail = split_tail(self._row_writer.close())
            shift = self._sink.tell() - len(end) + len(body) - len(ORC_HEADER)
            body += other[len(ORC_HEADER) :]
            tail = join_tails(tail, other_tail, shift)
        return body + encode_tail(set_string_types(tail, character_lengths(self._fields)))

    def _collect(self, batch: pa.RecordBatch) -> None:
        types = [f.type for f in self._fields]
        stats = [collect_column_stats(_as_read(c, kind), kind) for c, kind in zip(batch.columns, types, strict=True)]
        if self._stats is not None:
            stats = [
                combine_column_stats(old, new, kind) for old, new, kind in zip(self._stats, stats, types, strict=True)
            ]
        self._stats = stats


def _drop_excess_digits(column: pa.Array, data_type: DataType) -> pa.Array:
    """Return what Java stores of decimals with too many digits: null, or 0 in a NOT NULL column."""
    if not isinstance(data_type, DecimalType):
        return column
    stored = drop_excess_digits(column)
    if data_type.nullable or stored is column:
        return stored
    return stored if column.null_count else stored.fill_null(0)


class _TailHoldingSink:
    """The sink as Arrow sees it: it can hold back what is written, and never closes the file."""

    def __init__(self, sink: OutputFile) -> None:
        self.sink = sink
        self.closed = False
        self.failure: PaimonError | None = None
        self._parts: list[bytes] | None = None
        self._size = 0

    def write(self, data: bytes) -> int:
        """Write the bytes to the sink, or hold them."""
        self._size += len(data)
        if self._parts is not None:
            self._parts.append(bytes(data))
            return len(data)
        try:
            self.sink.write(data)
        except PaimonError as error:
            self.failure = error
            raise
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes so far, including held ones."""
        return self._size

    def flush(self) -> None:
        """Do nothing: the sink decides when to flush."""

    def close(self) -> None:
        """Mark the file as closed; the writer closes the sink."""
        self.closed = True

    def begin_holding(self) -> None:
        """Hold all bytes from now on in memory."""
        if self._parts is None:
            self._parts = []

    def take_held_bytes(self) -> bytes:
        """Return the held bytes."""
        return b"".join(self._parts or ())

    def release(self, data: bytes) -> None:
        """Write `data` in place of the held bytes."""
        self._size += len(data) - sum(map(len, self._parts or ()))
        self._parts = None
        self.sink.write(data)


def _to_stored(array: pa.Array, data_type: DataType) -> pa.Array:
    """Convert leaves; at offset 0, because Arrow's writer takes other values for the slices in a struct."""
    return to_physical(drop_offset(array), data_type)


def _is_damaged_by_arrow(column: pa.Array, data_type: DataType) -> bool:
    return has_early_fractions(column, data_type) or _loses_nested_rows(column)


def _loses_nested_rows(array: pa.Array) -> bool:
    """Return whether Arrow's writer would lose values: a struct without nulls has a child struct with nulls."""
    kind = array.type
    if pa.types.is_struct(kind):
        children = [array.field(i) for i in range(kind.num_fields)]
        if not array.null_count and any(pa.types.is_struct(c.type) and c.null_count for c in children):
            return True
        return any(_loses_nested_rows(child) for child in children)
    return pa.types.is_nested(kind) and _loses_nested_rows(array.values)


def _as_read(array: pa.Array, data_type: DataType) -> pa.Array:
    return from_physical(array, data_type) if isinstance(data_type, CharType) else array


def find_orc_codec(name: str) -> str:
    """Return the codec name of pyarrow's ORC writer. An unknown name is refused, never replaced."""
    codec = _CODECS.get(name.lower(), name.lower())
    if codec not in _KNOWN_CODECS:
        hint = "use zstd, snappy, lz4, zlib or none"
        raise InvalidRequest(f"ORC files cannot be compressed with {name!r}", subject=name, hint=hint)
    return codec


def _writer_options(request: WriteRequest) -> dict[str, Any]:
    codec = find_orc_codec(request.compression)
    options = request.options
    stripe_bytes = request.block_bytes or int(options.get("orc.stripe.size", _STRIPE_BYTES))
    stripe_bytes = min(stripe_bytes, request.held_bytes or stripe_bytes)
    return {
        "compression": codec,
        "compression_strategy": "speed" if request.zstd_level <= 1 else "compression",
        "stripe_size": stripe_bytes,
        "compression_block_size": _block_bytes(int(options.get("orc.compress.size", _COMPRESS_BYTES)), stripe_bytes),
        "row_index_stride": int(options.get("orc.row.index.stride", 10_000)),
        "dictionary_key_size_threshold": float(options.get("orc.dictionary.key.threshold", 0)),
    }


def _block_bytes(asked: int, stripe_bytes: int) -> int:
    """Return a multiple of 64 KB, which Arrow requires, of at most a stripe: Arrow would never fill a larger block."""
    return max(min(asked, stripe_bytes) // _BLOCK_UNIT_BYTES, 1) * _BLOCK_UNIT_BYTES


def _to_pyorc_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the same settings by pyorc's names."""
    codec, strategy = settings["compression"], settings["compression_strategy"]
    return {
        "compression": pyorc.CompressionKind["NONE" if codec == "uncompressed" else codec.upper()],
        "compression_strategy": pyorc.CompressionStrategy["SPEED" if strategy == "speed" else "COMPRESSION"],
        "compression_block_size": settings["compression_block_size"],
        "stripe_size": settings["stripe_size"],
        "row_index_stride": settings["row_index_stride"],
    }
