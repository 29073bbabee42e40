"""Write batches as one batch whose columns are mapped: each value is copied once, from the batches to the file.

Columns without null of fixed-width values, text or binary values can be written so. Arrow's own file format needs each
column as one array, which would be a second copy in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_ALIGNMENT = 64
_MOST_TEXT_BYTES = 2**31 - 1
"""The size of the values of one array of text, whose offsets have 32 bits."""


class JoinedColumns(NamedTuple):
    """The layout of a file of `write_joined_columns`."""

    schema: pa.Schema
    rows: int
    # where each buffer ends in the file, padding included; it starts where the one before it ends
    ends: list[int]


def can_join_columns(batches: Sequence[pa.RecordBatch]) -> bool:
    """Return whether all columns of the batches can be written by `write_joined_columns`."""
    return all(
        _can_join([batch.column(place) for batch in batches], kind)
        for place, kind in enumerate(batches[0].schema.types)
    )


def write_joined_columns(sink: pa.NativeFile, batches: Sequence[pa.RecordBatch]) -> JoinedColumns:
    """Write the rows of batches for `map_joined_columns`, which needs the result.

    There is at least one batch, and `can_join_columns` is true for the batches.
    """
    ends: list[int] = []
    for place, kind in enumerate(batches[0].schema.types):
        columns = [batch.column(place) for batch in batches]
        if _is_text(kind):
            ends.append(_write_buffers(sink, [_join_offsets(columns)]))
            ends.append(_write_buffers(sink, map(_text_bytes, columns)))
        else:
            width = kind.bit_width // 8
            ends.append(_write_buffers(sink, (c.buffers()[1].slice(c.offset * width, len(c) * width) for c in columns)))
    return JoinedColumns(batches[0].schema, sum(batch.num_rows for batch in batches), ends)


def map_joined_columns(path: str, joined: JoinedColumns) -> pa.RecordBatch:
    """Return the rows of a file of `write_joined_columns` as memory-mapped arrays."""
    with pa.memory_map(path) as source:
        whole = source.read_buffer(joined.ends[-1])
    buffers = iter([whole.slice(start, end - start) for start, end in pairwise([0, *joined.ends])])
    arrays = [
        pa.Array.from_buffers(
            kind, joined.rows, [None, *(next(buffers) for _ in range(1 + _is_text(kind)))], null_count=0
        )
        for kind in joined.schema.types
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=joined.schema)


def _can_join(columns: Sequence[pa.Array], kind: pa.DataType) -> bool:
    if any(column.null_count or not len(column) for column in columns):
        return False
    if _is_text(kind):
        return sum(len(_text_bytes(column)) for column in columns) <= _MOST_TEXT_BYTES
    is_fixed = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    return bool(is_fixed and kind.bit_width % 8 == 0)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _offsets(column: pa.Array) -> npt.NDArray[np.int32]:
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]


def _text_bytes(column: pa.Array) -> pa.Buffer:
    """Return the values of a column, one after the other."""
    offsets = _offsets(column)
    return (column.buffers()[2] or pa.py_buffer(b"")).slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _join_offsets(columns: Sequence[pa.Array]) -> npt.NDArray[np.int32]:
    """Return the offsets of the values of all columns."""
    joined = np.zeros(sum(map(len, columns)) + 1, np.int32)
    start = 1
    for column in columns:
        offsets = _offsets(column)
        np.add(offsets[1:], joined[start - 1] - offsets[0], out=joined[start : start + len(column)])
        start += len(column)
    return joined


def _write_buffers(sink: pa.NativeFile, buffers: Iterable[pa.Buffer | npt.NDArray[np.int32]]) -> int:
    """Write buffers and the padding after them, and return the size of the file."""
    for buffer in buffers:
        sink.write(buffer)
    sink.write(bytes(-sink.tell() % _ALIGNMENT))
    return int(sink.tell())
