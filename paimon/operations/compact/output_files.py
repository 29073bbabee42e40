"""The files that a compaction of one bucket writes: data files and changelog files.

Invariant: a new file is started by size alone; a failed compaction leaves no file.

Source: `KeyValueFileWriterFactory`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import evolve

from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.paths import join_path
from paimon.operations.data_files.file_layout import FileLayout
from paimon.operations.data_files.write_data_files import RollingFiles
from paimon.operations.metadata.delete_files import undo_on_failure
from paimon.operations.table_context import TableContext


class OutputFiles:
    """The files written so far; a state machine."""

    def __init__(self, context: TableContext, directory: str, level: int) -> None:
        self._context = context
        self._directory = directory
        self._level = level
        self.data: list[DataFileMeta] = []
        self.changelog: list[DataFileMeta] = []

    @contextmanager
    def data_files(self, sequence: int = 0) -> Iterator[RollingFiles]:
        """Open a writer of data files for rows in key order; rows of append tables are numbered from `sequence`."""
        layout = FileLayout.of(self._context.table, self._level, FileSource.COMPACT)
        with self._rolling(layout, sequence, self.data) as rolling:
            yield rolling

    @contextmanager
    def changelog_files(self) -> Iterator[RollingFiles]:
        """Open a writer of changelog files for changes in ascending order of keys."""
        with self._rolling(FileLayout.of_changelog(self._context.table, self._level), 0, self.changelog) as rolling:
            yield rolling

    def remove(self) -> None:
        """Delete all files written so far."""
        paths = [join_path(self._directory, f.file_name) for f in (*self.data, *self.changelog)]
        self.data, self.changelog = [], []
        self._context.files.delete(paths)

    @contextmanager
    def _rolling(self, layout: FileLayout, sequence: int, into: list[DataFileMeta]) -> Iterator[RollingFiles]:
        rolling = RollingFiles(self._context.engine, evolve(layout, target_rows=None), self._directory, sequence)
        with undo_on_failure(rolling.abort):
            yield rolling
            into += rolling.close()
