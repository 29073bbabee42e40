"""Encode index files of deletion vectors: a version byte, then one vector after the other.

Invariant: `encode_index_file` returns the content of a whole file, and each place names the range of one vector in it.
A file is full when its size exceeds the target.
Source: `DeletionVectorsIndexFile`, `DeletionVectorIndexFileWriter`, `DeletionFileWriter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import field, frozen

from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.deletion.vector_codec import encode_vector

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
