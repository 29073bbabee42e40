"""Loads the deletion vectors that a split names.

Law: a vector is read from the range that the index manifest gives, and refused where the two disagree.
Source: `DeletionVector.Factory`.
"""

from __future__ import annotations

from paimon.domain.deletion.vector import DeletionVector, decode_vector, stored_bytes
from paimon.domain.errors import CorruptTable
from paimon.domain.scan.splits import DeletionFile
from paimon.ports.engine import Engine


def read_vector(engine: Engine, file: DeletionFile) -> DeletionVector:
    """The deletion vector of one data file."""
    with engine.files.open(file.path) as source:
        if not 0 <= file.range.offset < source.size():
            raise CorruptTable(file.path, f"ends before the deletion vector at {file.range.offset}")
        source.seek(file.range.offset)
        data = source.read(stored_bytes(file.range.length))
    vector = decode_vector(data, file.range.length, file.path)
    if file.range.cardinality is not None and vector.cardinality != file.range.cardinality:
        told = file.range.cardinality
        raise CorruptTable(file.path, f"holds a vector of {vector.cardinality} rows, the index manifest says {told}")
    return vector
