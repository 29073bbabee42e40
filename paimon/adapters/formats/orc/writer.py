"""OrcWriter: Arrow's ORC writer with the parts of the file's tail that it cannot say.

Law: data is written once, by Arrow (but for times and nested rows that it cannot); only the footer is held back and
rewritten. Statistics are those of the values as they will be read again.
Source: `OrcFileFormat`, `OrcBulkWriter`; docs/decisions says why it is done in this way.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyorc

from paimon.adapters.formats.nested import rebuild
from paimon.adapters.formats.orc.far_times import RowWriter, has_early_fractions
from paimon.adapters.formats.orc.physical import character_lengths, from_physical, orc_schema, to_physical
from paimon.adapters.formats.orc.presence import loses_nested_rows
from paimon.adapters.formats.orc.tail import ORC_HEADER, joined, retyped, split_tail, tail_bytes
from paimon.domain.errors import InvalidRequest
from paimon.domain.stats.collect import collect, combine
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import CharType, DataType
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
    """The state of one file being written."""

    def __init__(self, sink: OutputFile, request: WriteRequest) -> None:
        self._fields = request.fields
        self._schema = orc_schema(request.fields)
        self._settings = _settings(request)
        self._sink = _HeldSink(sink)
        self._writer = orc.ORCWriter(self._sink, **self._settings, batch_size=_WRITE_ROWS)
        self._row_writer: RowWriter | None = None
        self._rows = 0
        self._arrow_rows = 0
        self._pending_bytes = 0
        self._flushed_bytes = 0
        self._stats: list[ColumnStats] | None = None

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Writes the rows."""
        batches = [batch] if isinstance(batch, pa.RecordBatch) else batch.to_batches()
        for one in batches:
            self._write(one)

    def estimated_bytes(self) -> int:
        """Bytes in the sink, and a guess at what Arrow still holds of the current stripe."""
        written = self._sink.tell() + (self._row_writer.size_bytes() if self._row_writer else 0)
        ratio = written / self._flushed_bytes if self._flushed_bytes else _GUESSED_RATIO
        return written + int(self._pending_bytes * min(ratio, 1.0))

    def held_bytes(self) -> int:
        """Bytes of the rows in the stripe that Arrow has not written yet."""
        return self._pending_bytes

    def flush(self) -> None:
        """Nothing: Arrow ends a stripe by its size alone."""

    def close(self) -> WrittenFile:
        """Finishes the file."""
        if not self._arrow_rows:
            self._writer.write(self._schema.empty_table())
        self._sink.hold()
        self._writer.close()
        self._sink.release(self._with_tail(self._sink.held()))
        size = self._sink.tell()
        self._sink.sink.close()
        unseen = [ColumnStats(null_count=0)] * len(self._fields)
        return WrittenFile(size, self._rows, unseen if self._stats is None else self._stats)

    def abort(self) -> None:
        """Leaves nothing."""
        self._sink.hold()
        self._sink.sink.abort()

    def _write(self, batch: pa.RecordBatch) -> None:
        columns = [rebuild(c, f.type, to_physical) for c, f in zip(batch.columns, self._fields, strict=True)]
        nulls = [f.name for f, c in zip(self._fields, columns, strict=True) if c.null_count and not f.type.nullable]
        if nulls:
            raise InvalidRequest(f"null in a column that must not be null: {', '.join(nulls)}")
        self._rows += batch.num_rows
        self._collect(batch)
        if self._row_writer or any(_damaged(c, f.type) for c, f in zip(columns, self._fields, strict=True)):
            # Once such values have been seen, the rest of the file goes this way: rows keep their order.
            self._row_writer = self._row_writer or RowWriter(self._fields, _for_pyorc(self._settings))
            self._row_writer.write(batch.columns)
            return
        before = self._sink.tell()
        self._writer.write(pa.Table.from_arrays(columns, schema=self._schema))
        self._arrow_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        if self._sink.tell() > before:
            self._flushed_bytes += self._pending_bytes
            self._pending_bytes = 0

    def _with_tail(self, end: bytes) -> bytes:
        """The held end of Arrow's file, the stripes of the other writer behind its own, and the tail of both."""
        body, tail = split_tail(end)
        if self._row_writer:
            other, other_tail = split_tail(self._row_writer.close())
            shift = self._sink.tell() - len(end) + len(body) - len(ORC_HEADER)
            body += other[len(ORC_HEADER) :]
            tail = joined(tail, other_tail, shift)
        return body + tail_bytes(retyped(tail, character_lengths(self._fields)))

    def _collect(self, batch: pa.RecordBatch) -> None:
        types = [f.type for f in self._fields]
        stats = [collect(_as_read(c, kind), kind) for c, kind in zip(batch.columns, types, strict=True)]
        if self._stats is not None:
            stats = [combine(old, new, kind) for old, new, kind in zip(self._stats, stats, types, strict=True)]
        self._stats = stats


class _HeldSink:
    """A file for Arrow that can hold back what is written, and that never closes the sink behind it."""

    def __init__(self, sink: OutputFile) -> None:
        self.sink = sink
        self.closed = False
        self._parts: list[bytes] | None = None
        self._size = 0

    def write(self, data: bytes) -> int:
        """Passes the bytes on, or keeps them."""
        self._size += len(data)
        if self._parts is None:
            self.sink.write(data)
        else:
            self._parts.append(bytes(data))
        return len(data)

    def tell(self) -> int:
        """Bytes so far, held ones included."""
        return self._size

    def flush(self) -> None:
        """Nothing: the sink decides."""

    def close(self) -> None:
        """Arrow is done; the sink is closed by the writer."""
        self.closed = True

    def hold(self) -> None:
        """From now on bytes are kept."""
        if self._parts is None:
            self._parts = []

    def held(self) -> bytes:
        """What was kept."""
        return b"".join(self._parts or ())

    def release(self, data: bytes) -> None:
        """Writes `data` in place of what was kept."""
        self._size += len(data) - sum(map(len, self._parts or ()))
        self._parts = None
        self.sink.write(data)


def _damaged(column: pa.Array, data_type: DataType) -> bool:
    return has_early_fractions(column, data_type) or loses_nested_rows(column)


def _as_read(array: pa.Array, data_type: DataType) -> pa.Array:
    return from_physical(array, data_type) if isinstance(data_type, CharType) else array


def _settings(request: WriteRequest) -> dict[str, Any]:
    codec = _CODECS.get(request.compression.lower(), request.compression.lower())
    if codec not in _KNOWN_CODECS:
        raise InvalidRequest(
            f"ORC files cannot be compressed with {request.compression!r}",
            subject=request.compression,
            hint="use zstd, snappy, lz4, zlib or none",
        )
    options = request.options
    stripe_bytes = request.block_bytes or int(options.get("orc.stripe.size", _STRIPE_BYTES))
    return {
        "compression": codec,
        "compression_strategy": "speed" if request.zstd_level <= 1 else "compression",
        "stripe_size": stripe_bytes,
        "compression_block_size": _block_bytes(int(options.get("orc.compress.size", _COMPRESS_BYTES)), stripe_bytes),
        "row_index_stride": int(options.get("orc.row.index.stride", 10_000)),
        "dictionary_key_size_threshold": float(options.get("orc.dictionary.key.threshold", 0)),
    }


def _block_bytes(asked: int, stripe_bytes: int) -> int:
    """Arrow takes multiples of 64 KB only, and counts a stripe in whole blocks: a larger one would never be filled."""
    return max(min(asked, stripe_bytes) // _BLOCK_UNIT_BYTES, 1) * _BLOCK_UNIT_BYTES


def _for_pyorc(settings: dict[str, Any]) -> dict[str, Any]:
    """The same settings by pyorc's names."""
    codec, strategy = settings["compression"], settings["compression_strategy"]
    return {
        "compression": pyorc.CompressionKind["NONE" if codec == "uncompressed" else codec.upper()],
        "compression_strategy": pyorc.CompressionStrategy["SPEED" if strategy == "speed" else "COMPRESSION"],
        "compression_block_size": settings["compression_block_size"],
        "stripe_size": settings["stripe_size"],
        "row_index_stride": settings["row_index_stride"],
    }
