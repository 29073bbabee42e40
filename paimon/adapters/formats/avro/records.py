"""Decode the records of Avro blocks as dicts, and encode them: row by row.

Invariant: logical types are ignored (a timestamp is its number, a decimal its bytes). A block holds as many records as
it states, and nothing after the last. Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import fastavro

from paimon.adapters.formats.avro.container import Block
from paimon.adapters.formats.varints import encode_zigzag
from paimon.domain.errors import CorruptTable


def decode_block(block: Block, schema: Any, path: str, reader_schema: Any = None) -> list[dict[str, Any]]:
    """Decode the records of a block; CorruptTable if the bytes do not match the schema or the record count.

    `schema` is an array of the file's records (see `parse_block_schema`), `reader_schema` the same with fewer fields.
    """
    # An Avro array is a count, the items and a zero, so a block with these around it is read as one array.
    data = (
        b"".join((encode_zigzag(block.record_count), block.data, b"\0")) if block.record_count else b"\0" + block.data
    )
    stream = BytesIO(data)
    try:
        records = fastavro.schemaless_reader(stream, schema, reader_schema)
    except (EOFError, ValueError, IndexError, KeyError, OverflowError, TypeError, MemoryError) as error:
        raise CorruptTable(path, f"has an Avro block that cannot be decoded: {error!r}") from error
    if len(records) != block.record_count or stream.tell() != len(data):
        raise CorruptTable(path, "has an Avro block whose record count is wrong")
    return list(records)


def encode_block(records: Iterable[Mapping[str, Any]], schema: Any) -> Block:
    """Encode records as one block; `schema` is the parsed schema of an array of the file's records."""
    rows = list(records)
    stream = BytesIO()
    fastavro.schemaless_writer(stream, schema, rows)
    data = stream.getvalue()
    return Block(len(rows), data[len(encode_zigzag(len(rows))) : -1] if rows else b"")
