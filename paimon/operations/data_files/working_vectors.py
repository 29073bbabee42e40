"""Collect the deleted rows of a bucket during its compaction, and write its deletion vectors.

Invariant: a marked row was live until then, lies in a file that stays, and is not read again. The vectors of replaced
files are removed.

Source: `BucketedDvMaintainer`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from paimon.domain.deletion.vector import DeletionVector, Positions
from paimon.domain.manifest.entries import DataFileMeta
from paimon.operations.data_files.deletion_vector_files import BucketVectors, IndexChange, write_vectors
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.table_context import TableContext


class WorkingVectors:
    """The vectors before a compaction and the rows marked since; a state machine."""

    def __init__(self, context: TableContext, vectors: BucketVectors) -> None:
        self._context = context
        self._vectors = vectors
        self._deletion_files = vectors.files(context.table)
        self._marked: dict[str, list[Positions]] = {}

    def find_vector(self, file: DataFileMeta) -> DeletionVector | None:
        """Return the vector of a file before the compaction; None if it had none."""
        return self._find_by_name(file.file_name)

    def mark(self, file: DataFileMeta, positions: Positions) -> None:
        """Mark rows of a file, given by their positions, as deleted."""
        self._marked.setdefault(file.file_name, []).append(positions)

    def write(self, removed: Collection[str]) -> IndexChange:
        """Write the new index files, without the vectors of the replaced data files `removed`."""
        changed = {
            name: (self._find_by_name(name) or DeletionVector()).with_deleted(np.concatenate(positions))
            for name, positions in self._marked.items()
        }
        return write_vectors(self._context, self._vectors, changed, removed)

    def _find_by_name(self, name: str) -> DeletionVector | None:
        deletion = self._deletion_files.get(name)
        return None if deletion is None else read_vector(self._context.engine, deletion)
