"""Reading the deletion vector of a data file.

Law: a vector is read by its range alone, kept, and checked against what the index manifest says of it. Source:
`DeletionVectorsIndexFile`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.deletion.codec import decode_vector, stored_bytes
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.scan.splits import DeletionFile
from paimon.ports.engine import Engine

_PLACE_BYTES = 1_000
"""What the cache's containers and the vector's objects take besides the bitmaps."""


def read_vector(engine: Engine, deletion: DeletionFile) -> DeletionVector:
    """The vector at a place in an index file.

    Raises
    ------
    CorruptTable, Unsupported
        Naming the index file.
    """
    where = deletion.range
    view = f"vector {where.offset}+{where.length}"
    kept = engine.cache.get(deletion.path, view)
    if isinstance(kept, DeletionVector):
        return kept
    vector = decode_vector(_range(engine, deletion), where.length, deletion.path)
    if where.cardinality is not None and where.cardinality != vector.cardinality:
        reason = f"marks {vector.cardinality} rows of {where.data_file}, but should mark {where.cardinality}"
        raise CorruptTable(deletion.path, reason)
    engine.cache.put(deletion.path, vector, _PLACE_BYTES + 2 * where.length, view)
    return vector


def _range(engine: Engine, deletion: DeletionFile) -> bytes:
    try:
        with engine.files.open(deletion.path) as source:
            left = source.size() - deletion.range.offset
            wanted = min(stored_bytes(deletion.range.length), left)
            return bytes(source.read_at(wanted, deletion.range.offset)) if wanted > 0 else b""
    except NotFound as error:
        raise CorruptTable(deletion.path, "is named by the index manifest but does not exist") from error
    except (pa.ArrowException, OSError) as error:
        raise CorruptTable(deletion.path, f"cannot be read: {error}") from error
