"""The files that a compaction of one bucket makes: data files and changelog files.

Law: files are rolled by size alone; where the work fails, none of them stays. Source: `KeyValueFileWriterFactory`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import evolve

from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.paths import join
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.undo import undone_on_failure
from paimon.operations.write.files.data_files import RollingFiles
from paimon.operations.write.files.layout import FileLayout
from paimon.ports.engine import Engine


class MadeFiles:
    """What was made so far: a state machine.

    Parameters
    ----------
    directory : str
        The bucket's.
    level : int
        Where the data files go.
    """

    def __init__(self, engine: Engine, table: TableDefinition, directory: str, level: int) -> None:
        self._engine = engine
        self._table = table
        self._directory = directory
        self._level = level
        self.data: list[DataFileMeta] = []
        self.changelog: list[DataFileMeta] = []

    @contextmanager
    def data_files(self, sequence: int = 0) -> Iterator[RollingFiles]:
        """Takes rows, ascending by key; those of append tables are numbered from `sequence` on."""
        layout = FileLayout.of(self._table, self._level, FileSource.COMPACT)
        with self._rolling(layout, sequence, self.data) as rolling:
            yield rolling

    @contextmanager
    def changelog_files(self) -> Iterator[RollingFiles]:
        """Takes changes, ascending by key."""
        with self._rolling(FileLayout.of_changelog(self._table, self._level), 0, self.changelog) as rolling:
            yield rolling

    def remove(self) -> None:
        """Leaves nothing."""
        gone = [join(self._directory, f.file_name) for f in (*self.data, *self.changelog)]
        self.data, self.changelog = [], []
        self._engine.files.delete(gone)

    @contextmanager
    def _rolling(self, layout: FileLayout, sequence: int, into: list[DataFileMeta]) -> Iterator[RollingFiles]:
        rolling = RollingFiles(self._engine, evolve(layout, target_rows=None), self._directory, sequence)
        with undone_on_failure(rolling.abort):
            yield rolling
            into += rolling.close()
