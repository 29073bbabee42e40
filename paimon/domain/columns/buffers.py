"""Columns as Arrow stores them: numbers, and bits that mark which of them are not null.

Numbers are not copied where Arrow and numpy can share the memory. The number under a null can be anything.

Invariant: `from_stored_numbers(to_stored_numbers(column), column.type, read_validity(column))` equals the column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]


def combine_column(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without a copy if it has one chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def read_validity(column: pa.Array) -> Mask:
    """Return which values are not null."""
    bitmap = column.buffers()[0]
    if bitmap is None:  # without nulls, or of the type null
        return np.full(len(column), column.null_count == 0)
    return _bits(bitmap, column.offset, len(column))


def has_stored_numbers(kind: pa.DataType) -> bool:
    """Return whether values of a type are stored as numbers of 1 to 8 bytes, or as booleans."""
    known = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
    return bool(pa.types.is_boolean(kind) or (known and kind.bit_width <= 64))


def to_stored_numbers(column: pa.Array) -> Numbers:
    """Return the values as integers of their width, floats by their bits; booleans as booleans."""
    data = column.buffers()[1]
    if pa.types.is_boolean(column.type):
        return _bits(data, column.offset, len(column))
    width = column.type.bit_width // 8
    return np.frombuffer(data, dtype=f"<i{width}", count=len(column), offset=column.offset * width)


def from_stored_numbers(numbers: Numbers, kind: pa.DataType, valid: Mask | None = None) -> pa.Array:
    """Build the column that stores numbers of its width, over the same memory; `valid` None: no nulls."""
    bitmap = None if valid is None or valid.all() else _pack_bits(valid)
    data = _pack_bits(numbers) if pa.types.is_boolean(kind) else pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(kind, len(numbers), [bitmap, data])


def _bits(buffer: pa.Buffer, start: int, count: int) -> Mask:
    skipped = start % 8
    own = np.frombuffer(buffer, dtype=np.uint8, offset=start // 8, count=(skipped + count + 7) // 8)
    return np.unpackbits(own, count=skipped + count, bitorder="little")[skipped:].view(np.bool_)


def _pack_bits(bits: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))
