"""Deletion vectors, the deleted rows of a data file by physical position from 0, and their index files.

Positions are stored as roaring bitmaps, one for each value of the high 32 bits. An encoded vector therefore has the
bytes that Java writes. An index file is a version byte, then one vector after the other; it is full when its size
exceeds the target.

Invariant: A vector is immutable. Adding positions returns a new vector, and a deleted row is never restored. A vector
is decoded exactly or refused: its magic number, length and checksum must agree with each other and with the index
manifest.
Source: `DeletionVector`, `BitmapDeletionVector`, `Bitmap64DeletionVector`, `OptimizedRoaringBitmap64`,
`DeletionVectorsIndexFile`, `DeletionVectorIndexFileWriter`, `DeletionFileWriter`.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen
from pyroaring import BitMap

from paimon.domain.errors import CorruptTable, Unsupported

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

_WORD_BITS = 32


@frozen(eq=False)
class DeletionVector:
    """The positions of the deleted rows of one file."""

    # low 32 bits of the positions; the tuple index is their high 32 bits; the bitmaps are never modified
    words: tuple[BitMap, ...] = ()

    @classmethod
    def of(cls, positions: Any) -> DeletionVector:
        """Return a vector with these positions, in any order."""
        return cls().with_deleted(positions)

    @property
    def cardinality(self) -> int:
        """The number of deleted rows."""
        return sum(len(word) for word in self.words)

    @property
    def last(self) -> int | None:
        """The largest position; None if nothing is deleted."""
        return max((word.max() + (i << _WORD_BITS) for i, word in enumerate(self.words) if word), default=None)

    @property
    def positions(self) -> Positions:
        """All positions in ascending order; each call creates a new array."""
        parts = [np.asarray(w.to_array()).astype(np.int64) + (i << _WORD_BITS) for i, w in enumerate(self.words)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def mask(self, first_row: int, row_count: int) -> Mask:
        """Mark the deleted rows in a range of rows."""
        marked = np.zeros(row_count, dtype=bool)
        end = first_row + row_count
        for i in range(first_row >> _WORD_BITS, min(len(self.words), (end >> _WORD_BITS) + 1)):
            base = i << _WORD_BITS
            span = range(max(0, first_row - base), min(1 << _WORD_BITS, end - base))
            if span:
                within = np.asarray((self.words[i] & BitMap(span)).to_array()).astype(np.int64)
                marked[within + (base - first_row)] = True
        return marked

    def cut(self, first_row: int, row_count: int) -> DeletionVector:
        """Return the vector of a file that has a range of the rows of this file, with the positions in that file."""
        return DeletionVector.of(np.flatnonzero(self.mask(first_row, row_count)))

    def with_deleted(self, positions: Any) -> DeletionVector:
        """Return a new vector with these positions added, in any order; the same object if there are none."""
        added = np.asarray(positions, dtype=np.int64)
        if not len(added):
            return self
        if added.min() < 0:
            raise ValueError(f"Row position {added.min()} is negative")
        highs = added >> _WORD_BITS
        count = max(len(self.words), int(highs.max()) + 1)
        old = [*self.words, *(BitMap() for _ in range(count - len(self.words)))]
        return DeletionVector(tuple(word | _to_bitmap(added[highs == i]) for i, word in enumerate(old)))


def _to_bitmap(positions: Positions) -> BitMap:
    low = array("I")
    low.frombytes(positions.astype(np.uint32).tobytes())
    return BitMap(low)


def pack_runs(words: Iterable[BitMap]) -> tuple[BitMap, ...]:
    """Return copies of the bitmaps, with containers stored as runs where runs are shorter."""
    packed = tuple(word.copy() for word in words)
    for word in packed:
        word.run_optimize()
    return packed


MAGIC_32 = bytes.fromhex("5e43f2d0")
MAGIC_64 = bytes.fromhex("d1d33964")
INT_BYTES = 4
_LONG_BYTES = 8
_MAX_WORDS = 1 << 16
"""No file has rows at positions beyond 2^48. A larger key is damage, and would allocate too much memory."""
MAX_POSITION_32 = (1 << 31) - 1


def stored_bytes(length: int) -> int:
    """Return an upper bound of a vector's stored size from the length in its index manifest."""
    return length + 2 * INT_BYTES


def encode_vector(vector: DeletionVector, bitmap64: bool) -> tuple[bytes, int]:
    """Encode a vector, and its length for the index manifest; Unsupported for a position beyond 32 bits."""
    last = vector.last
    if not bitmap64 and last is not None and last > MAX_POSITION_32:
        raise Unsupported(
            f"row position {last} in a 32-bit deletion vector", hint="set deletion-vectors.bitmap64 to true"
        )
    words = pack_runs(vector.words)
    body = _encode_words(words) if bitmap64 else MAGIC_32 + (words[0] if words else BitMap()).serialize()
    data = len(body).to_bytes(INT_BYTES, "big") + body + zlib.crc32(body).to_bytes(INT_BYTES, "big")
    return data, len(data) if bitmap64 else len(body)


def _encode_words(words: Sequence[BitMap]) -> bytes:
    """Encode the bitmaps of a 64-bit vector, after its magic number and their count."""
    body = MAGIC_64 + len(words).to_bytes(_LONG_BYTES, "little")
    return body + b"".join(i.to_bytes(INT_BYTES, "little") + word.serialize() for i, word in enumerate(words))


def decode_vector(data: bytes, length: int, path: str) -> DeletionVector:
    """Decode the vector at the start of `data`: CorruptTable for damage, Unsupported for its magic."""
    size = int.from_bytes(data[:INT_BYTES], "big", signed=True)
    end = INT_BYTES + size
    magic = data[INT_BYTES : 2 * INT_BYTES]
    if size < INT_BYTES or len(data) < end + INT_BYTES:
        raise CorruptTable(path, f"is truncated inside a deletion vector of {size} bytes")
    if magic not in (MAGIC_32, MAGIC_64):
        raise Unsupported(
            f"deletion vectors with the magic bytes {magic.hex()} in {path}",
            hint="use a newer release, or read the table with the client that wrote it",
        )
    if length != (size if magic == MAGIC_32 else size + 2 * INT_BYTES):
        raise CorruptTable(path, f"contains a deletion vector of {size} bytes, but the index manifest records {length}")
    if zlib.crc32(data[INT_BYTES:end]) != int.from_bytes(data[end : end + INT_BYTES], "big"):
        raise CorruptTable(path, "contains a deletion vector with a wrong checksum")
    body = data[2 * INT_BYTES : end]
    try:
        return DeletionVector((BitMap.deserialize(body),) if magic == MAGIC_32 else _decode_words(body))
    except (ValueError, IndexError, MemoryError, OverflowError) as error:
        raise CorruptTable(path, "contains a deletion vector that is not a valid bitmap") from error


def _decode_words(body: bytes) -> tuple[BitMap, ...]:
    """Decode the bitmaps of a 64-bit vector. Bitmaps for keys that are left out are empty."""
    words: list[BitMap] = []
    at = _LONG_BYTES
    for _ in range(int.from_bytes(body[:_LONG_BYTES], "little")):
        key = int.from_bytes(body[at : at + INT_BYTES], "little")
        if not len(words) <= key < _MAX_WORDS:
            raise ValueError(f"key {key} is out of order")
        word = BitMap.deserialize(body[at + INT_BYTES :])
        words += [BitMap() for _ in range(key - len(words))]
        words.append(word)
        # Containers keep their form, so the serialized length equals the stored length.
        at += INT_BYTES + len(word.serialize())
    if at != len(body):
        raise ValueError(f"{at} of {len(body)} bytes are bitmaps")
    return tuple(words)


INDEX_FILE_VERSION = b"\x01"

FileVector = tuple[str, DeletionVector]
"""The name of a data file, and its deletion vector."""


@frozen
class VectorPlace:
    """The range of the deletion vector of one data file in an index file."""

    data_file: str
    # position of the length field of the vector, in bytes from the start of the file
    offset: int
    # the length in bytes that the index manifest records
    length: int
    # the number of deleted rows
    cardinality: int


def _to_places(values: Iterable[VectorPlace]) -> tuple[VectorPlace, ...]:
    return tuple(values)


@frozen
class IndexFileContent:
    """The bytes of an index file, and the range of each vector in it."""

    data: bytes = field(repr=lambda data: f"<{len(data)} bytes>")
    places: tuple[VectorPlace, ...] = field(converter=_to_places)


def encode_index_file(vectors: Iterable[FileVector], bitmap64: bool) -> IndexFileContent:
    """Encode all vectors as one index file; Unsupported if a position does not fit into a 32-bit vector."""
    files = list(_roll_vectors(vectors, bitmap64, None))
    return files[0] if files else IndexFileContent(INDEX_FILE_VERSION, ())


def encode_index_files(
    vectors: Iterable[FileVector], bitmap64: bool, target_bytes: int
) -> tuple[IndexFileContent, ...]:
    """Encode vectors in order as files of about `target_bytes`; Unsupported for positions beyond 32 bits."""
    return tuple(_roll_vectors(vectors, bitmap64, target_bytes))


def _roll_vectors(
    vectors: Iterable[FileVector], bitmap64: bool, target_bytes: int | None
) -> Iterator[IndexFileContent]:
    data = bytearray(INDEX_FILE_VERSION)
    places: list[VectorPlace] = []
    for name, vector in vectors:
        encoded, length = encode_vector(vector, bitmap64)
        places.append(VectorPlace(name, len(data), length, vector.cardinality))
        data += encoded
        if target_bytes is not None and len(data) > target_bytes:
            yield IndexFileContent(bytes(data), places)
            data, places = bytearray(INDEX_FILE_VERSION), []
    if places:
        yield IndexFileContent(bytes(data), places)
