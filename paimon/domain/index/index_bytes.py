"""Read the big-endian fields of a file index from bytes that nobody checked.

Invariant: a position or a length outside of the bytes is a `ValueError`. Nothing is allocated by a length that the
bytes cannot contain.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from paimon.domain.index.index_keys import Keys

_COOKIE = 12_346
"""What a roaring bitmap without runs begins with."""
_CONTAINER_ROWS = 1 << 16
_MOST_ARRAY_ROWS = 4_096


class IndexBytes:
    """The bytes of one index, and the position of the next field in them."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def read_bytes(self, size: int) -> bytes:
        """Return the next bytes."""
        start, end = self.position, self.position + size
        if size < 0 or end > len(self.data):
            raise ValueError(f"{size} bytes at {start} exceed the {len(self.data)} bytes of the index")
        self.position = end
        return self.data[start:end]

    def read_byte(self) -> int:
        """Return the next byte."""
        return self.read_bytes(1)[0]

    def read_flag(self) -> bool:
        """Return the next byte as a truth value."""
        return self.read_byte() != 0

    def read_int(self) -> int:
        """Return the next signed 32-bit integer."""
        return int.from_bytes(self.read_bytes(4), "big", signed=True)

    def read_count(self) -> int:
        """Return the next 32-bit integer, which is a number of things."""
        count = self.read_int()
        if count < 0:
            raise ValueError(f"{count} is no count")
        return count

    def read_long(self) -> int:
        """Return the next signed 64-bit integer."""
        return int.from_bytes(self.read_bytes(8), "big", signed=True)

    def read_version(self, newest: int) -> int:
        """Return the next byte, a version from 1 to `newest`."""
        version = self.read_byte()
        if not 1 <= version <= newest:
            raise ValueError(f"version {version} is unknown")
        return version

    def read_numbers(self, count: int, dtype: str) -> Keys:
        """Return the next big-endian integers as int64."""
        kind = np.dtype(dtype)
        return np.frombuffer(self.read_bytes(count * kind.itemsize), kind).astype(np.int64)

    def read_bitmap(self, row_count: int) -> BitMap:
        """Return the next bitmap, whose length its own bytes imply."""
        rows = _decode_bitmap(self.data[self.position :])
        # Containers keep their form, so the serialized length equals the stored length.
        self.position += len(rows.serialize())
        return check_rows(rows, row_count)

    def read_sized_bitmap(self, size: int, row_count: int) -> BitMap:
        """Return the next bitmap, which has this many bytes."""
        return check_rows(_decode_bitmap(self.read_bytes(size)), row_count)


def _decode_bitmap(data: bytes) -> BitMap:
    try:
        return BitMap.deserialize(data)
    except (IndexError, MemoryError, OverflowError) as error:
        raise ValueError("a bitmap is damaged") from error


def check_rows(rows: BitMap, row_count: int) -> BitMap:
    """Return the rows; refuse those beyond the end of the file."""
    if rows and rows.max() >= row_count:
        raise ValueError(f"row {rows.max()} is beyond the {row_count} rows")
    return rows


def pack_int(value: int) -> bytes:
    """Return a signed 32-bit integer as bytes."""
    return value.to_bytes(4, "big", signed=True)


def pack_long(value: int) -> bytes:
    """Return a signed 64-bit integer as bytes."""
    return value.to_bytes(8, "big", signed=True)


def pack_bitmap(rows: BitMap) -> bytes:
    """Return a bitmap as bytes, with containers stored as runs where runs are shorter."""
    packed = rows.copy()
    packed.run_optimize()
    return bytes(packed.serialize())


def to_bitmap(rows: Keys) -> BitMap:
    """Return row positions in ascending order as a bitmap."""
    positions = array("I")
    positions.frombytes(rows.astype(np.uint32).tobytes())
    return BitMap(positions)


def mask_to_bitmap(mask: npt.NDArray[np.bool_]) -> BitMap:
    """Return marked positions as a bitmap, through its stored form, which is faster for many."""
    heads, bodies = list[tuple[int, int]](), list[bytes]()
    for number in range(-(-len(mask) // _CONTAINER_ROWS)):
        part = mask[number * _CONTAINER_ROWS :][:_CONTAINER_ROWS]
        count = int(np.count_nonzero(part))
        if count > _MOST_ARRAY_ROWS:
            bodies.append(np.packbits(part, bitorder="little").tobytes().ljust(_CONTAINER_ROWS // 8, b"\0"))
        elif count:
            bodies.append(np.flatnonzero(part).astype("<u2").tobytes())
        if count:
            heads.append((number, count - 1))
    sizes = np.array([len(body) for body in bodies], np.int64)
    places = 8 + 8 * len(heads) + np.cumsum(sizes) - sizes
    counts = np.array([_COOKIE, len(heads)], "<u4").tobytes()
    described = np.array(heads, "<u2").tobytes() + places.astype("<u4").tobytes()
    return BitMap.deserialize(counts + described + b"".join(bodies))


def join_fields(*fields: pa.Array | npt.NDArray[np.signedinteger[Any]]) -> tuple[bytes, Keys]:
    """Return the fields row after row, and where each row starts; integers are in stored byte order."""
    parts = [part if isinstance(part, pa.Array) else _to_binary(part) for part in fields]
    wide = [part.cast(pa.large_binary()) for part in parts]
    joined = pc.binary_join_element_wise(*wide, pa.scalar(b"", pa.large_binary()))
    if not len(joined):
        return b"", np.zeros(1, np.int64)
    _, offsets, data = joined.buffers()
    starts = np.frombuffer(offsets, np.int64, len(joined) + 1)
    return data.to_pybytes()[: int(starts[-1])], starts


def _to_binary(numbers: npt.NDArray[np.signedinteger[Any]]) -> pa.Array:
    kind = pa.binary(numbers.dtype.itemsize)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers.tobytes())])
