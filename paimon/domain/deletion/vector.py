"""Deletion vectors: which rows of a data file are gone, by physical position from 0.

Law: a vector is taken as stored or refused: its magic, its length and its checksum must agree with each other and
with the index manifest. Source: `DeletionVector`, `BitmapDeletionVector`, `Bitmap64DeletionVector`.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen
from pyroaring import BitMap, BitMap64

from paimon.domain.errors import CorruptTable, Unsupported

MAGIC_32 = bytes.fromhex("5e43f2d0")
MAGIC_64 = bytes.fromhex("d1d33964")
_INT_BYTES = 4

Mask = npt.NDArray[np.bool_]


def _ascending(positions: Any) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = np.asarray(positions, dtype=np.int64)
    found.setflags(write=False)
    return found


@frozen(eq=False)
class DeletionVector:
    """Positions of deleted rows, ascending."""

    positions: npt.NDArray[np.int64] = field(converter=_ascending)

    @property
    def cardinality(self) -> int:
        """How many rows are deleted."""
        return len(self.positions)

    def mask(self, first_row: int, row_count: int) -> Mask:
        """Marks the deleted ones among `row_count` rows from `first_row` on."""
        marked = np.zeros(row_count, dtype=bool)
        low, high = np.searchsorted(self.positions, [first_row, first_row + row_count])
        marked[self.positions[low:high] - first_row] = True
        return marked


def stored_bytes(length: int) -> int:
    """An upper bound of the bytes that a vector takes whose index manifest range has this length.

    For 32-bit vectors the range leaves out the length and the checksum, for 64-bit ones it does not.
    """
    return length + 2 * _INT_BYTES


def decode_vector(data: bytes, length: int, path: str) -> DeletionVector:
    """The vector that begins with the first byte.

    Parameters
    ----------
    data : bytes
        From the vector's length field on, at least up to its checksum.
    length : int
        The length that the index manifest gives.
    path : str
        The index file, for messages.

    Raises
    ------
    CorruptTable, Unsupported
        Naming `path`.
    """
    size = int.from_bytes(data[:_INT_BYTES], "big", signed=True)
    end = _INT_BYTES + size
    magic = data[_INT_BYTES : 2 * _INT_BYTES]
    if size < _INT_BYTES or len(data) < end + _INT_BYTES:
        raise CorruptTable(path, f"ends inside a deletion vector of {size} bytes")
    if magic not in (MAGIC_32, MAGIC_64):
        raise Unsupported(f"deletion vectors with the magic bytes {magic.hex()} in {path}")
    if length != (size if magic == MAGIC_32 else size + 2 * _INT_BYTES):
        raise CorruptTable(path, f"holds a deletion vector of {size} bytes where the index manifest says {length}")
    if zlib.crc32(data[_INT_BYTES:end]) != int.from_bytes(data[end : end + _INT_BYTES], "big"):
        raise CorruptTable(path, "holds a deletion vector with a wrong checksum")
    bitmap = data[2 * _INT_BYTES : end]
    try:
        return DeletionVector((BitMap if magic == MAGIC_32 else BitMap64).deserialize(bitmap).to_array())
    except (ValueError, MemoryError, OverflowError) as error:
        raise CorruptTable(path, "holds a deletion vector that is no bitmap") from error
