"""AvroRecordIO: manifests, manifest lists and index manifests as plain records, in any file format.

Invariant: the magic bytes decide the format, never an option. Records are dicts by column name with values as stored (a
timestamp is its number). A file does not decode to more than a limit. Source: `AvroFileFormat`, `ObjectsFile`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.avro.column_decoder import decode_manifest_columns
from paimon.adapters.formats.avro.container import (
    MAGIC,
    SYNC_BYTES,
    Block,
    BlockData,
    Header,
    avro_codec,
    encode_header,
    pack_block,
    read_blocks,
    read_header,
)
from paimon.adapters.formats.avro.records import decode_block, encode_block
from paimon.adapters.formats.guards.avro import (
    MAX_RECORDS,
    has_too_many_metadata_records,
    max_metadata_bytes,
    parse_block_schema,
)
from paimon.adapters.formats.varints import encode_zigzag
from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.manifest.record_columns import (
    ArrayColumns,
    Integers,
    JoinedColumns,
    PickedRecords,
    RecordColumns,
    SlicedColumns,
    join_records,
)
from paimon.domain.types.arrow_arrays import from_numpy, make_array

_BLOCK_RECORDS = 256
_SPLIT_BYTES = 1024 * 1024


@frozen
class AvroRecordIO:
    """`paimon.ports.formats.RecordIO` for Avro files, and for Parquet and ORC if `manifest.format` asks for them."""

    # most bytes that one file may decompress to; smaller for small files: 8 MiB and 200 times their size
    max_decoded_bytes: int = 512 * 1024 * 1024
    # files up to this size are decoded record by record, because decoding columns has a fixed cost per file
    few_bytes: int = 8 * 1024

    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        """Read all records of a file, recognized by its content; CorruptTable for damage and other formats."""
        if data[:4] == MAGIC:
            return self._read_avro(data, path)
        if data[:4] == b"PAR1" or data[:3] == b"ORC":
            from paimon.adapters.formats.records_arrow import read_arrow_records  # rare, and Arrow loads slowly

            return read_arrow_records(data, path, self._limit(len(data)))
        raise CorruptTable(path, "is not an Avro, Parquet or ORC file: its magic bytes are unknown")

    def read_columns(
        self, files: Sequence[tuple[str, bytes]], kind: pa.StructType
    ) -> tuple[RecordColumns, Sequence[int]]:
        """Return the records of `files` (path, content) as columns of `kind`, and each file's record count."""
        parts: list[RecordColumns] = []
        counts: list[int] = []
        for schema, group in groupby(self._open_files(files), key=lambda file: file.schema):
            same_schema = list(group)
            found = None if schema is None else self._read_together(same_schema, schema, kind)
            if found is not None:
                parts.append(found[0])
                counts.extend(found[1])
                continue
            for file in same_schema:
                parts.append(ArrayColumns(self._read_row_wise([file], kind)))
                counts.append(len(parts[-1]))
        return join_records(parts, kind), counts

    def select_blocks(self, data: bytes, path: str, values: Collection[bytes]) -> tuple[bytes, int]:
        """Leave out blocks of an Avro file without any of these values, and return the number of their records."""
        if data[:4] != MAGIC:
            return data, 0
        stored = [encode_zigzag(len(value)) + value for value in values]
        source = pa.BufferReader(data)
        header = read_header(source, path)
        pieces, start = [data[: source.tell()]], source.tell()
        left_out = decoded = 0
        for block in self._blocks(source, header, path, len(data)):
            if len(pieces) == 1 or any(value in block.data for value in stored):
                pieces.append(data[start : source.tell()])
                decoded += len(block.data)
            else:
                left_out += block.record_count
            start = source.tell()
        found = b"".join(pieces)
        return (found, left_out) if decoded <= self._limit(len(found)) else (data, 0)

    def _open_files(self, files: Iterable[tuple[str, bytes]]) -> Iterator[_OpenFile]:
        known, header = b"", Header()
        for path, data in files:
            if data[:4] != MAGIC:
                yield _OpenFile(path, data)
                continue
            source = pa.BufferReader(data)
            if known and data.startswith(known) and len(data) >= len(known) + SYNC_BYTES:
                source.seek(len(known))
                header = Header(header.metadata, bytes(source.read(SYNC_BYTES)))
            else:
                header = read_header(source, path)
                parse_block_schema(header.schema, path)
                known = data[: source.tell() - SYNC_BYTES]
            rest = len(data) - source.tell()
            yield _OpenFile(path, data, header.schema, self._blocks(source, header, path, len(data)), rest)

    def _read_together(
        self, files: Sequence[_OpenFile], schema: str, kind: pa.StructType
    ) -> tuple[RecordColumns, list[int]] | None:
        """Decode files of the same schema together, as columns; None if they must be read record by record."""
        if sum(file.packed_bytes for file in files) <= self.few_bytes:
            return self._read_each(files, parse_block_schema(schema, files[0].path), kind)
        # Blocks are copied into one buffer, so that the memory of a decompressed block is free for the next one.
        blocks = BlockData()
        for file in files:
            blocks.extend(file.blocks)
        found = decode_manifest_columns(blocks, json.loads(schema), kind, lambda: self._read_row_wise(files, kind))
        return None if found is None else (found, blocks.records_of_files)

    def _read_each(
        self, files: Sequence[_OpenFile], schema: Any, kind: pa.StructType
    ) -> tuple[RecordColumns, list[int]]:
        found = [
            [record for block in file.blocks for record in decode_block(block, schema, file.path)] for file in files
        ]
        try:
            records = make_array(list(chain.from_iterable(found)), kind)
        except _OTHER_TYPES:
            records = self._read_row_wise(files, kind)  # which names the file at fault
        return ArrayColumns(records), [len(part) for part in found]

    def _read_row_wise(self, files: Sequence[_OpenFile], kind: pa.StructType) -> pa.StructArray:
        return pa.concat_arrays([_to_array(self.read_records(file.data, file.path), kind, file.path) for file in files])

    def write_records(
        self, records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], compression: str, format_name: str
    ) -> bytes:
        """Encode records as a file; see `paimon.ports.formats.RecordIO.write_records`."""
        if format_name == "avro":
            return b"".join(_avro_pieces(records, schema, avro_codec(compression)))
        if format_name in ("parquet", "orc"):
            from paimon.adapters.formats.records_arrow import write_arrow_records

            return write_arrow_records(records, schema, compression, format_name)
        raise InvalidRequest(
            f"Format {format_name!r} cannot store manifests", subject=format_name, hint="use avro, parquet or orc"
        )

    def _read_avro(self, data: bytes, path: str) -> list[dict[str, Any]]:
        source = pa.BufferReader(data)
        header = read_header(source, path)
        schema = parse_block_schema(header.schema, path)
        found: list[dict[str, Any]] = []
        for block in self._blocks(source, header, path, len(data)):
            if len(found) + block.record_count > MAX_RECORDS:
                raise CorruptTable(path, f"has more than {MAX_RECORDS} records")
            found += decode_block(block, schema, path)
        return found

    def _blocks(self, source: pa.NativeFile, header: Header, path: str, size: int) -> Iterator[Block]:
        limit, decoded = self._limit(size), 0
        for block in read_blocks(source, header, path, limit):
            decoded += len(block.data)
            if decoded > limit:
                raise CorruptTable(path, f"decompresses to more than {limit} bytes")
            if has_too_many_metadata_records(block.record_count, len(block.data)):
                raise CorruptTable(path, f"has {block.record_count} records in {len(block.data)} bytes")
            yield block

    def _limit(self, size: int) -> int:
        return min(self.max_decoded_bytes, max_metadata_bytes(size))


@frozen(eq=False)
class _OpenFile:
    """A file whose header was read and whose blocks were not; `schema` is None if it is not an Avro file."""

    path: str
    data: bytes
    schema: str | None = None
    blocks: Iterable[Block] = ()
    packed_bytes: int = 0


_OTHER_TYPES = (pa.ArrowException, ValueError, TypeError, OverflowError)


def _to_array(records: Sequence[Mapping[str, Any]], kind: pa.StructType, path: str) -> pa.StructArray:
    try:
        return make_array(records, kind)
    except _OTHER_TYPES as error:
        raise CorruptTable(path, f"has records of unexpected types: {error}") from error


def _avro_pieces(records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], codec: str) -> Iterable[bytes]:
    header = encode_header(json.dumps(schema, separators=(",", ":")), codec)
    yield header
    parsed = fastavro.parse_schema({"type": "array", "items": schema})
    for block in _copy_blocks(records, schema) if isinstance(records, PickedRecords) else _blocks(records, parsed):
        yield pack_block(block, codec, header[-SYNC_BYTES:])


def _blocks(records: Iterable[Mapping[str, Any]], parsed: Any) -> Iterator[Block]:
    rest = iter(records)
    while chunk := list(islice(rest, _BLOCK_RECORDS)):
        yield from _split(chunk, parsed)


def _copy_blocks(picked: PickedRecords, schema: Mapping[str, Any]) -> Iterator[Block]:
    """Make blocks from the stored bytes of records."""
    ascending = _find_stored_bytes(picked.records, np.sort(picked.rows), schema)
    stored = ascending.take(from_numpy(np.argsort(np.argsort(picked.rows))))
    ends = np.frombuffer(stored.buffers()[1], np.int64)[: len(stored) + 1]
    data, start = memoryview(stored.buffers()[2]), 0
    while start < len(stored):
        full = int(np.searchsorted(ends, ends[start] + _SPLIT_BYTES, "right")) - 1
        stop = min(max(full, start + 1), start + _BLOCK_RECORDS, len(stored))
        yield Block(stop - start, bytes(data[ends[start] : ends[stop]]))
        start = stop


def _find_stored_bytes(records: RecordColumns, rows: Integers, schema: Mapping[str, Any]) -> pa.LargeBinaryArray:
    """Return the bytes of records at ascending positions; those that were stored in another way are encoded."""
    found = records.encoded(schema)
    if found is not None:
        return found.take(from_numpy(rows))
    if isinstance(records, SlicedColumns):
        return _find_stored_bytes(records.whole, rows + records.start, schema)
    if isinstance(records, JoinedColumns):
        return pa.concat_arrays([_find_stored_bytes(part, taken, schema) for part, taken in records.divide(rows)])
    parsed = fastavro.parse_schema({"type": "array", "items": schema})
    return pa.array([encode_block([r], parsed).data for r in PickedRecords(records, rows)], pa.large_binary())


def _split(records: Sequence[Mapping[str, Any]], parsed: Any) -> Iterator[Block]:
    """Encode records as one block, or as several if they are large, as those of wide tables are."""
    block = encode_block(records, parsed)
    if len(block.data) <= _SPLIT_BYTES or len(records) == 1:
        yield block
        return
    half = len(records) // 2
    yield from _split(records[:half], parsed)
    yield from _split(records[half:], parsed)
