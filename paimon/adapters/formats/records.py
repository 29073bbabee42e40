"""AvroRecordIO: manifests, manifest lists and index manifests as plain records, whichever format holds them.

Law: the format is told by the magic bytes, never by an option; records come as dicts by column name, with bytes, text
and numbers as stored (a timestamp is its number); a file cannot decode to more than a bound.
Source: `AvroFileFormat`, `ObjectsFile`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import fastavro
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.avro.codecs import avro_codec
from paimon.adapters.formats.avro.container import (
    MAGIC,
    SYNC_BYTES,
    block_bytes,
    header_bytes,
    read_blocks,
    read_header,
)
from paimon.adapters.formats.avro.records import decode, encode, parsed_schema
from paimon.adapters.formats.records_arrow import read_arrow_records, write_arrow_records
from paimon.domain.errors import CorruptTable, InvalidRequest

_BLOCK_RECORDS = 256
_SLACK_BYTES = 16 * 1024 * 1024
_MAX_RATIO = 200


@frozen
class AvroRecordIO:
    """See `paimon.ports.formats.RecordIO`.

    Parameters
    ----------
    max_decoded_bytes : int
        Most bytes that one file may decompress to. Small files have a smaller bound: 16 MiB and 200 times their size.
    """

    max_decoded_bytes: int = 512 * 1024 * 1024

    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        """All records of a file."""
        limit = min(self.max_decoded_bytes, _SLACK_BYTES + _MAX_RATIO * len(data))
        if data[:4] == MAGIC:
            return self._read_avro(data, path, limit)
        if data[:4] == b"PAR1" or data[:3] == b"ORC":
            return read_arrow_records(data, path, limit)
        raise CorruptTable(path, "is neither Avro nor Parquet nor ORC: its magic bytes are unknown")

    def write_records(
        self, records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], compression: str, format_name: str
    ) -> bytes:
        """The bytes of a file of these records."""
        if format_name == "avro":
            return b"".join(_avro_pieces(records, schema, avro_codec(compression)))
        if format_name in ("parquet", "orc"):
            return write_arrow_records(records, schema, compression, format_name)
        raise InvalidRequest(
            f"manifests cannot be written as {format_name!r}", subject=format_name, hint="use avro, parquet or orc"
        )

    def _read_avro(self, data: bytes, path: str, limit: int) -> list[dict[str, Any]]:
        source = pa.BufferReader(data)
        header = read_header(source, path)
        schema = parsed_schema(header.schema, path)
        records: list[dict[str, Any]] = []
        decoded = 0
        for block in read_blocks(source, header, path, limit):
            decoded += len(block.data)
            if decoded > limit:
                raise CorruptTable(path, f"decompresses to more than {limit} bytes")
            records.extend(decode(block, schema, path))
        return records


def _avro_pieces(records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], codec: str) -> Iterable[bytes]:
    header = header_bytes(json.dumps(schema, separators=(",", ":")), codec)
    yield header
    parsed = fastavro.parse_schema({"type": "array", "items": schema})
    rest = iter(records)
    while chunk := list(islice(rest, _BLOCK_RECORDS)):
        yield block_bytes(encode(chunk, parsed), codec, header[-SYNC_BYTES:])
