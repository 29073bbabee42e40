"""Records of Avro blocks as dicts, and back: the row-wise way through Avro.

Law: logical types are ignored (a timestamp is its number, a decimal its bytes); a block holds as many records as it
says, and ends with the last. Source: Avro specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import fastavro

from paimon.adapters.formats.avro.container import Block, long_bytes
from paimon.domain.errors import CorruptTable


def decode(block: Block, schema: Any, path: str, reader_schema: Any = None) -> list[dict[str, Any]]:
    """The records of a block; `schema` is an array of records, `reader_schema` the like with fewer fields."""
    data = b"".join((long_bytes(block.record_count), block.data, b"\0")) if block.record_count else b"\0" + block.data
    stream = BytesIO(data)
    try:
        records = fastavro.schemaless_reader(stream, schema, reader_schema)
    except (EOFError, ValueError, IndexError, KeyError, OverflowError, TypeError, MemoryError) as error:
        raise CorruptTable(path, f"has an Avro block that does not decode: {error!r}") from error
    if len(records) != block.record_count or stream.tell() != len(data):
        raise CorruptTable(path, "has an Avro block with more or fewer records than it says")
    return list(records)


def encode(records: Iterable[Mapping[str, Any]], schema: Any) -> Block:
    """One block of these records; `schema` is of `fastavro.parse_schema`, an array of the file's records."""
    rows = list(records)
    stream = BytesIO()
    fastavro.schemaless_writer(stream, schema, rows)
    data = stream.getvalue()
    return Block(len(rows), data[len(long_bytes(len(rows))) : -1] if rows else b"")
