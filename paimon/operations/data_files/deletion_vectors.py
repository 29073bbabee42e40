"""Read the deletion vector of a data file.

Invariant: only the byte range of the vector is read. The vector is cached, and its number of rows must equal the one
in the index manifest.

Source: `DeletionVectorsIndexFile`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.deletion.vector_codec import decode_vector, stored_bytes
from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.scan.splits import DeletionFile
from paimon.ports.engine import Engine

_CACHE_ENTRY_BYTES = 1_000
"""Size of the cache's containers and of the vector's objects without the bitmaps."""


def read_vector(engine: Engine, deletion: DeletionFile) -> DeletionVector:
    """Read the deletion vector in a byte range of an index file.

    Raises `CorruptTable` also if the number of rows differs from the index manifest.
    """
    length, view = deletion.range.length, f"vector {deletion.range.offset}+{deletion.range.length}"
    cached = engine.cache.get(deletion.path, view)
    if isinstance(cached, DeletionVector):
        return cached
    vector = decode_vector(_read_range(engine, deletion), length, deletion.path)
    _check_cardinality(deletion, vector)
    engine.cache.put(deletion.path, vector, _CACHE_ENTRY_BYTES + 2 * length, view)
    return vector


def _check_cardinality(deletion: DeletionFile, vector: DeletionVector) -> None:
    recorded = deletion.range.cardinality
    if recorded is not None and recorded != vector.cardinality:
        deleted = f"deletes {vector.cardinality} rows of data file {deletion.range.data_file!r}"
        raise CorruptTable(deletion.path, f"{deleted}, but the index manifest records {recorded}")


def _read_range(engine: Engine, deletion: DeletionFile) -> bytes:
    """Read the stored bytes of a vector; fewer if the file ends before."""
    try:
        with engine.files.open(deletion.path) as source:
            available = source.size() - deletion.range.offset
            length = min(stored_bytes(deletion.range.length), available)
            return bytes(source.read_at(length, deletion.range.offset)) if length > 0 else b""
    except NotFound as error:
        raise CorruptTable(deletion.path, "does not exist, but the index manifest references it") from error
    except (pa.ArrowException, OSError) as error:
        raise CorruptTable(deletion.path, f"cannot be read: {error}") from error
