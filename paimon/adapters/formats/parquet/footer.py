"""Rewrite the footer of a Parquet file as Java writes it, because pyarrow's writer cannot state some column types.

Reads do the reverse for INT96, because pyarrow's reader wraps times that do not fit into 64-bit nanoseconds.

Invariant: only the *description* of columns changes, no byte of a page. The message is called `paimon_schema`. TIME is
adjusted to UTC, the groups of maps are annotated MAP_KEY_VALUE, and twelve fixed bytes become INT96 (TIMESTAMP of
precision 7 to 9; both have the same plain and dictionary encodings). Source: `ParquetSchemaConverter`.
"""

from __future__ import annotations

import struct
from collections.abc import Set

import pyarrow as pa
import pyarrow.parquet as pq

from paimon.adapters.formats.guards.parquet_pages import MAGIC
from paimon.adapters.formats.thrift import BINARY, I32, STRUCT, TRUE, ThriftStruct, decode_head, encode_head

MESSAGE = b"paimon_schema"

_TYPE, _TYPE_LENGTH, _NAME, _CHILDREN, _CONVERTED, _LOGICAL = 1, 2, 4, 5, 6, 10
_TIME_LOGICAL = 7
_CONVERTED_MAP, _CONVERTED_MAP_KEY_VALUE, _CONVERTED_TIME_MILLIS = 1, 2, 7
_INT96, _FIXED_BYTES, _INT96_BYTES = 3, 7, 12
_SCHEMA, _ROW_GROUPS = 2, 4
_COLUMNS = 1
_CHUNK_META, _COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH = 3, 6, 7
_STATISTICS = 12


def rewrite_tail(tail: bytes, int96_leaves: Set[int]) -> bytes:
    """Return the end of a file with a rewritten footer, which replaces `tail`.

    `tail` may begin at any offset before the footer, and ends with the magic bytes. `int96_leaves` are the positions of
    the leaf columns that become INT96.
    """
    length = struct.unpack("<I", tail[-8:-4])[0]
    start = len(tail) - 8 - length
    footer, rest = decode_head(tail[start:-8], _ROW_GROUPS if int96_leaves else _SCHEMA)
    _describe_columns(footer.get(_SCHEMA).values, int96_leaves)
    for leaf in int96_leaves:
        for group in footer.get(_ROW_GROUPS).values:
            _set_int96(group.get(_COLUMNS).values[leaf])
    data = encode_head(footer, rest)
    return tail[:start] + data + struct.pack("<I", len(data)) + MAGIC


def read_int96_as_bytes(footer: bytes) -> pq.FileMetaData:
    """Decode a footer whose INT96 columns are described as twelve fixed bytes.

    Only the schema says so, which is what decides how values are decoded. The column chunks keep their type, so their
    statistics must be read from the footer as stored.
    """
    head, rest = decode_head(footer, _SCHEMA)
    for element in head.get(_SCHEMA).values:
        if element.get(_TYPE) == _INT96:
            element.put(_TYPE, I32, _FIXED_BYTES)
            element.put(_TYPE_LENGTH, I32, _INT96_BYTES)
            element.drop(_CONVERTED, _LOGICAL)
    data = encode_head(head, rest)
    return pq.read_metadata(pa.BufferReader(MAGIC + data + struct.pack("<I", len(data)) + MAGIC))


def _describe_columns(elements: list[ThriftStruct], int96_leaves: Set[int]) -> None:
    elements[0].put(_NAME, BINARY, MESSAGE)
    leaf = 0
    for element, parent in zip(elements[1:], elements, strict=False):
        if parent.get(_CONVERTED) == _CONVERTED_MAP:
            element.put(_CONVERTED, I32, _CONVERTED_MAP_KEY_VALUE)
        if element.get(_CHILDREN):
            continue
        logical = element.get(_LOGICAL)
        if leaf in int96_leaves:
            element.put(_TYPE, I32, _INT96)
            element.drop(_TYPE_LENGTH)
        elif logical is not None and logical.get(_TIME_LOGICAL) is not None:
            logical.get(_TIME_LOGICAL).put(1, TRUE, True)
            element.put(_CONVERTED, I32, _CONVERTED_TIME_MILLIS)
        leaf += 1


def _set_int96(chunk: ThriftStruct) -> None:
    """Describe a column chunk as INT96, without bounds: INT96 has no order."""
    chunk.drop(_COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH)
    meta = chunk.get(_CHUNK_META)
    meta.put(_TYPE, I32, _INT96)
    statistics = meta.get(_STATISTICS)
    if statistics is not None:
        nulls = statistics.members.get(3)
        meta.put(_STATISTICS, STRUCT, ThriftStruct({} if nulls is None else {3: nulls}))
