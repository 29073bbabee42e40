"""AvroRecordIO: manifests, manifest lists and index manifests as plain records, whichever format holds them.

Law: the format is told by the magic bytes, never by an option; records come as dicts by column name, with bytes, text
and numbers as stored (a timestamp is its number); a file cannot decode to more than a bound.
Source: `AvroFileFormat`, `ObjectsFile`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any

import fastavro
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.avro.bounded_schema import block_schema
from paimon.adapters.formats.avro.codecs import avro_codec
from paimon.adapters.formats.avro.columns import decode_columns
from paimon.adapters.formats.avro.container import (
    MAGIC,
    SYNC_BYTES,
    Block,
    BlockData,
    Header,
    block_bytes,
    header_bytes,
    read_blocks,
    read_header,
)
from paimon.adapters.formats.avro.records import decode, encode
from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.manifest.records.columns import HeldColumns, RecordColumns, joined
from paimon.domain.types.arrow_arrays import make_array

_BLOCK_RECORDS = 256
_SLACK_BYTES = 8 * 1024 * 1024
_MAX_RATIO = 200
_MAX_RECORDS = 1 << 20
"""Most records of a file that is read record by record; as Python objects they take a kilobyte and more each."""
_SPLIT_BYTES = 1024 * 1024
_LEAST_RECORD_BYTES = 24
"""Each kind of record holds a row, which takes 13 bytes, a file's name, and numbers."""


@frozen
class AvroRecordIO:
    """See `paimon.ports.formats.RecordIO`.

    Parameters
    ----------
    max_decoded_bytes : int
        Most bytes that one file may decompress to. Small files have a smaller bound: 8 MiB and 200 times their size.
    few_bytes : int
        Blocks of no more bytes are decoded record by record: in columns, the steps cost more than so few records.
    """

    max_decoded_bytes: int = 512 * 1024 * 1024
    few_bytes: int = 8 * 1024

    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        """All records of a file."""
        if data[:4] == MAGIC:
            return self._read_avro(data, path)
        if data[:4] == b"PAR1" or data[:3] == b"ORC":
            from paimon.adapters.formats.records_arrow import read_arrow_records  # rare, and Arrow loads slowly

            return read_arrow_records(data, path, self._limit(len(data)))
        raise CorruptTable(path, "is neither Avro nor Parquet nor ORC: its magic bytes are unknown")

    def read_columns(
        self, files: Sequence[tuple[str, bytes]], kind: pa.StructType
    ) -> tuple[RecordColumns, Sequence[int]]:
        """The records of files as columns, and how many each file has."""
        parts: list[RecordColumns] = []
        counts: list[int] = []
        for schema, group in groupby(self._opened(files), key=lambda file: file.schema):
            alike = list(group)
            found = None if schema is None else self._in_step(alike, schema, kind)
            if found is not None:
                parts.append(found[0])
                counts.extend(found[1])
                continue
            for file in alike:
                parts.append(HeldColumns(self._row_wise([file], kind)))
                counts.append(len(parts[-1]))
        return joined(parts, kind), counts

    def _opened(self, files: Iterable[tuple[str, bytes]]) -> Iterator[_Opened]:
        known, header = b"", Header()
        for path, data in files:
            if data[:4] != MAGIC:
                yield _Opened(path, data)
                continue
            source = pa.BufferReader(data)
            if known and data.startswith(known) and len(data) >= len(known) + SYNC_BYTES:
                source.seek(len(known))
                header = Header(header.metadata, bytes(source.read(SYNC_BYTES)))
            else:
                header = read_header(source, path)
                block_schema(header.schema, path)
                known = data[: source.tell() - SYNC_BYTES]
            rest = len(data) - source.tell()
            yield _Opened(path, data, header.schema, self._blocks(source, header, path, len(data)), rest)

    def _in_step(
        self, files: Sequence[_Opened], schema: str, kind: pa.StructType
    ) -> tuple[RecordColumns, list[int]] | None:
        if sum(file.packed_bytes for file in files) <= self.few_bytes:
            return self._one_by_one(files, block_schema(schema, files[0].path), kind)
        # Block by block into one buffer, so that the memory of one decompressed block serves the next.
        blocks = BlockData()
        for file in files:
            blocks.extend(file.blocks)
        found = decode_columns(blocks, json.loads(schema), kind, lambda: self._row_wise(files, kind))
        return None if found is None else (found, blocks.records_of_files)

    def _one_by_one(
        self, files: Sequence[_Opened], schema: Any, kind: pa.StructType
    ) -> tuple[RecordColumns, list[int]]:
        found = [[record for block in file.blocks for record in decode(block, schema, file.path)] for file in files]
        try:
            records = make_array(list(chain.from_iterable(found)), kind)
        except _OTHER_TYPES:
            records = self._row_wise(files, kind)  # which tells the file at fault
        return HeldColumns(records), [len(part) for part in found]

    def _row_wise(self, files: Sequence[_Opened], kind: pa.StructType) -> pa.StructArray:
        return pa.concat_arrays([_array(self.read_records(file.data, file.path), kind, file.path) for file in files])

    def write_records(
        self, records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], compression: str, format_name: str
    ) -> bytes:
        """The bytes of a file of these records."""
        if format_name == "avro":
            return b"".join(_avro_pieces(records, schema, avro_codec(compression)))
        if format_name in ("parquet", "orc"):
            from paimon.adapters.formats.records_arrow import write_arrow_records

            return write_arrow_records(records, schema, compression, format_name)
        raise InvalidRequest(
            f"manifests cannot be written as {format_name!r}", subject=format_name, hint="use avro, parquet or orc"
        )

    def _read_avro(self, data: bytes, path: str) -> list[dict[str, Any]]:
        source = pa.BufferReader(data)
        header = read_header(source, path)
        schema = block_schema(header.schema, path)
        found: list[dict[str, Any]] = []
        for block in self._blocks(source, header, path, len(data)):
            if len(found) + block.record_count > _MAX_RECORDS:
                raise CorruptTable(path, f"has more than {_MAX_RECORDS} records")
            found += decode(block, schema, path)
        return found

    def _blocks(self, source: pa.NativeFile, header: Header, path: str, size: int) -> Iterator[Block]:
        limit, decoded = self._limit(size), 0
        for block in read_blocks(source, header, path, limit):
            decoded += len(block.data)
            if decoded > limit:
                raise CorruptTable(path, f"decompresses to more than {limit} bytes")
            if block.record_count * _LEAST_RECORD_BYTES > len(block.data):
                raise CorruptTable(path, f"has {block.record_count} records in {len(block.data)} bytes")
            yield block

    def _limit(self, size: int) -> int:
        return min(self.max_decoded_bytes, _SLACK_BYTES + _MAX_RATIO * size)


@frozen(eq=False)
class _Opened:
    """A file before its blocks are read, which is done once; `schema` is None where it is not Avro."""

    path: str
    data: bytes
    schema: str | None = None
    blocks: Iterable[Block] = ()
    packed_bytes: int = 0


_OTHER_TYPES = (pa.ArrowException, ValueError, TypeError, OverflowError)


def _array(records: Sequence[Mapping[str, Any]], kind: pa.StructType, path: str) -> pa.StructArray:
    try:
        return make_array(records, kind)
    except _OTHER_TYPES as error:
        raise CorruptTable(path, f"holds records of other types: {error}") from error


def _avro_pieces(records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], codec: str) -> Iterable[bytes]:
    header = header_bytes(json.dumps(schema, separators=(",", ":")), codec)
    yield header
    parsed = fastavro.parse_schema({"type": "array", "items": schema})
    rest = iter(records)
    while chunk := list(islice(rest, _BLOCK_RECORDS)):
        for block in _split(chunk, parsed):
            yield block_bytes(block, codec, header[-SYNC_BYTES:])


def _split(records: Sequence[Mapping[str, Any]], parsed: Any) -> Iterator[Block]:
    """Records as one block, as more where they are large: those of wide tables hold values of each column."""
    block = encode(records, parsed)
    if len(block.data) <= _SPLIT_BYTES or len(records) == 1:
        yield block
        return
    half = len(records) // 2
    yield from _split(records[:half], parsed)
    yield from _split(records[half:], parsed)
