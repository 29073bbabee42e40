"""Files of deletion vectors: a version byte, then one vector after the other.

Law: what `encode_index_file` answers is a whole file, and each range finds the vector of its data file in it. A file
is full once it has passed its target. Source: `DeletionVectorsIndexFile`, `DeletionVectorIndexFileWriter`,
`DeletionFileWriter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import field, frozen

from paimon.domain.deletion.codec import encode_vector
from paimon.domain.deletion.vector import DeletionVector

INDEX_FILE_VERSION = b"\x01"

FileVector = tuple[str, DeletionVector]
"""The name of a data file and its vector."""


@frozen
class VectorPlace:
    """Where the vector of a data file lies: offset of its length field, the length that manifests give for it."""

    data_file: str
    offset: int
    length: int
    cardinality: int


def _places(values: Iterable[VectorPlace]) -> tuple[VectorPlace, ...]:
    return tuple(values)


@frozen
class IndexFileContent:
    """The bytes of an index file, and what lies where in it."""

    data: bytes = field(repr=lambda data: f"<{len(data)} bytes>")
    places: tuple[VectorPlace, ...] = field(converter=_places)


def encode_index_file(vectors: Iterable[FileVector], bitmap64: bool) -> IndexFileContent:
    """All vectors as one file; none make a file too, which holds only its version."""
    files = list(_rolled(vectors, bitmap64, None))
    return files[0] if files else IndexFileContent(INDEX_FILE_VERSION, ())


def encode_index_files(
    vectors: Iterable[FileVector], bitmap64: bool, target_bytes: int
) -> tuple[IndexFileContent, ...]:
    """The vectors as files of about the target size; none make no file."""
    return tuple(_rolled(vectors, bitmap64, target_bytes))


def _rolled(vectors: Iterable[FileVector], bitmap64: bool, target_bytes: int | None) -> Iterator[IndexFileContent]:
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
