"""Write the row groups of a Parquet file: with pyarrow's writer, or column by column in the tasks of an executor.

A task encodes one column of a row group as a small file in memory. Its pages are copied to the file as they are, and
its column chunks go to the footer with their new offsets.

Invariant: both ways write the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from paimon.adapters.formats.guards.parquet_pages import MAGIC
from paimon.adapters.formats.thrift import I16, I32, I64, LIST, STRUCT, ThriftList, ThriftStruct, decode, encode
from paimon.ports.executor import Executor

_NUM_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _TOTAL_BYTES, _FILE_OFFSET, _COMPRESSED_BYTES, _ORDINAL = 1, 2, 5, 6, 7
_CHUNK_META, _OFFSET_INDEX, _OFFSET_LENGTH, _COLUMN_INDEX, _COLUMN_LENGTH = 3, 4, 5, 6, 7
_PAGES = (9, 11)
"""The offset of the first data page and that of the dictionary page, in the metadata of a column chunk."""
_LOCATIONS, _LOCATION_OFFSET = 1, 1
_TAIL_BYTES = 8
"""The length of the footer, and the magic bytes."""


class RowGroupWriter(Protocol):
    """Writes the row groups of one file."""

    def write(self, table: pa.Table) -> None:
        """Write all rows as one row group."""

    def close(self) -> None:
        """Write the end of the file."""


class SerialRowGroups:
    """`RowGroupWriter` that encodes in the caller's thread, with options of `pyarrow.parquet.ParquetWriter`."""

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema, options: Mapping[str, Any]) -> None:
        self._writer = pq.ParquetWriter(sink, schema, **options)

    def write(self, table: pa.Table) -> None:
        """Write all rows as one row group."""
        self._writer.write_table(table, row_group_size=table.num_rows)

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()


class ConcurrentRowGroups:
    """`RowGroupWriter` that encodes the columns of a row group in the tasks of an executor.

    Memory holds at most the encoded columns of one row group. `options` are those of `pyarrow.parquet.ParquetWriter`,
    with a page index.
    """

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema, options: Mapping[str, Any], executor: Executor) -> None:
        self._sink = sink
        self._schema = schema
        self._options = options
        self._executor = executor
        self._rows = 0
        self._groups: list[ThriftStruct] = []
        self._indexes: list[_PageIndex] = []
        sink.write(MAGIC)

    def write(self, table: pa.Table) -> None:
        """Write all rows as one row group."""
        columns = [table.select([name]) for name in table.column_names]
        groups: list[ThriftStruct] = []
        for encoded in self._executor.map(partial(_encode_column, self._options), columns):
            shift = self._sink.tell() - len(MAGIC)
            self._sink.write(encoded.pages)
            _shift_offsets(encoded.group, shift)
            groups.append(encoded.group)
            self._indexes += [index.shift(shift) for index in encoded.indexes]
        self._rows += table.num_rows
        self._groups.append(_join_columns(groups, len(self._groups)))

    def close(self) -> None:
        """Write the page indexes of all column chunks, and the footer."""
        for index in self._indexes:
            if index.column_index is not None:
                index.chunk.put(_COLUMN_INDEX, I64, self._sink.tell())
                self._sink.write(index.column_index)
        for index in self._indexes:
            index.chunk.put(_OFFSET_INDEX, I64, self._sink.tell())
            self._sink.write(index.offset_index)
        footer = _read_footer(_encode(self._schema.empty_table(), self._options))
        footer.put(_NUM_ROWS, I64, self._rows)
        footer.put(_ROW_GROUPS, LIST, ThriftList(STRUCT, self._groups))
        data = encode(footer)
        self._sink.write(data + struct.pack("<I", len(data)) + MAGIC)


@frozen(eq=False)
class _PageIndex:
    """What the end of a file says of the pages of a column chunk; pages without bounds have no column index."""

    chunk: ThriftStruct
    column_index: bytes | None
    offset_index: bytes

    @classmethod
    def read(cls, chunk: ThriftStruct, file: pa.Buffer) -> _PageIndex:
        """Read the indexes of a column chunk from its file."""
        bounds = chunk.get(_COLUMN_INDEX)
        column = None if bounds is None else file.slice(bounds, chunk.get(_COLUMN_LENGTH)).to_pybytes()
        offsets = file.slice(chunk.get(_OFFSET_INDEX), chunk.get(_OFFSET_LENGTH))
        return cls(chunk, column, offsets.to_pybytes())

    def shift(self, distance: int) -> _PageIndex:
        """Return the index of pages that are further from the beginning of the file."""
        index = decode(self.offset_index)
        for location in index.get(_LOCATIONS).values:
            location.put(_LOCATION_OFFSET, I64, location.get(_LOCATION_OFFSET) + distance)
        data = encode(index)
        self.chunk.put(_OFFSET_LENGTH, I32, len(data))
        return _PageIndex(self.chunk, self.column_index, data)


@frozen(eq=False)
class _EncodedColumn:
    """One column of a row group: its pages, the description of a row group of this column, and its page indexes."""

    pages: pa.Buffer
    group: ThriftStruct
    indexes: Sequence[_PageIndex]


def _encode_column(options: Mapping[str, Any], column: pa.Table) -> _EncodedColumn:
    """Encode one column of a row group, which has several column chunks if it is nested."""
    encoded = _encode(column, options)
    group = _read_footer(encoded).get(_ROW_GROUPS).values[0]
    indexes = [_PageIndex.read(chunk, encoded) for chunk in group.get(_COLUMNS).values]
    size = group.get(_COMPRESSED_BYTES)
    return _EncodedColumn(encoded.slice(len(MAGIC), size), group, indexes)


def _encode(table: pa.Table, options: Mapping[str, Any]) -> pa.Buffer:
    """Return a file of at most one row group."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        if table.num_rows:
            writer.write_table(table, row_group_size=table.num_rows)
    return sink.getvalue()


def _read_footer(file: pa.Buffer) -> ThriftStruct:
    end = file.size - _TAIL_BYTES
    length = struct.unpack("<I", file.slice(end, 4).to_pybytes())[0]
    return decode(file.slice(end - length, length).to_pybytes())


def _shift_offsets(group: ThriftStruct, distance: int) -> None:
    """Move the pages of a row group further from the beginning of the file."""
    for described, members in [
        (group, (_FILE_OFFSET,)),
        *((chunk.get(_CHUNK_META), _PAGES) for chunk in group.get(_COLUMNS).values),
    ]:
        for member in members:
            offset = described.get(member)
            if offset is not None:
                described.put(member, I64, offset + distance)


def _join_columns(groups: Sequence[ThriftStruct], number: int) -> ThriftStruct:
    """Return the description of a row group from those of its columns."""
    joined = ThriftStruct(dict(groups[0].members))
    joined.put(_COLUMNS, LIST, ThriftList(STRUCT, [chunk for g in groups for chunk in g.get(_COLUMNS).values]))
    for total in (_TOTAL_BYTES, _COMPRESSED_BYTES):
        joined.put(total, I64, sum(g.get(total) for g in groups))
    if joined.get(_ORDINAL) is not None:
        joined.put(_ORDINAL, I16, number)
    return joined
