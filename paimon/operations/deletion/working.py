"""The deletion vectors of a bucket while it is compacted.

Law: what is marked was live until then, in files that stay, and is not asked for again; the vectors of files that are
replaced go with them.
Source: `BucketedDvMaintainer`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from paimon.domain.deletion.vector import DeletionVector, Positions
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.deletion.index_files import BucketVectors, IndexChange, write_vectors
from paimon.operations.read.deletion.vectors import read_vector
from paimon.ports.engine import Engine


class WorkingVectors:
    """The vectors that stood and what was marked since: a state machine."""

    def __init__(self, engine: Engine, table: TableDefinition, held: BucketVectors) -> None:
        self._engine = engine
        self._table = table
        self._held = held
        self._places = held.files(table)
        self._marked: dict[str, list[Positions]] = {}

    def of(self, file: DataFileMeta) -> DeletionVector | None:
        """The vector of a file as it stood, if it had one."""
        return self._of(file.file_name)

    def mark(self, file: DataFileMeta, positions: Positions) -> None:
        """Delete rows of a file."""
        self._marked.setdefault(file.file_name, []).append(positions)

    def write(self, removed: Collection[str]) -> IndexChange:
        """Write the index files that hold from now on; `removed` are the files that are replaced."""
        changed = {
            name: (self._of(name) or DeletionVector()).with_deleted(np.concatenate(positions))
            for name, positions in self._marked.items()
        }
        return write_vectors(self._engine, self._table, self._held, changed, removed)

    def _of(self, name: str) -> DeletionVector | None:
        place = self._places.get(name)
        return None if place is None else read_vector(self._engine, place)
