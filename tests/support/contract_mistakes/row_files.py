"""Wrong openers of files of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from paimon.adapters.row_files import ArrowRowFiles
from paimon.ports.files import OutputFile
from paimon.ports.row_files import FileRows
from paimon.testing import contracts
from support.contract_mistakes.planting import plant

ROW_FILES = contracts.RowFilesContract


class _Opened(ArrowRowFiles):
    """An adapter that changes the found files."""

    def open(
        self,
        sources: Sequence[Any],
        format_name: str | None = None,
        storage: Mapping[str, object] | None = None,
        roots: Sequence[str] | None = None,
    ) -> FileRows:
        return self.change(super().open(sources, format_name, storage, roots))

    def change(self, rows: FileRows) -> FileRows:
        raise NotImplementedError


@plant(
    ROW_FILES,
    "test_no_file_outside_the_roots_is_opened",
    "Directories and URLs that contain all files, also behind symbolic links.",
)
class RootsByName(ArrowRowFiles):
    def __init__(self, open_storage: Any, locate: Any, formats: Any) -> None:
        super().__init__(lambda location, storage, _: open_storage("/", storage, ()), locate, formats)


@plant(ROW_FILES, "test_patterns_match_files", "whose files are in the order of their names")
class LastNameFirst(_Opened):
    def change(self, rows: FileRows) -> FileRows:
        return FileRows(rows.files[::-1], rows.is_repeatable)


@plant(ROW_FILES, "test_the_caller_names_the_types", "the types of columns in formats of text")
class TypesOfItsOwn(_Opened):
    def change(self, rows: FileRows) -> FileRows:
        files = [attrs.evolve(file, read=lambda _, file=file: file.read(None)) for file in rows.files]
        return FileRows(files, rows.is_repeatable)


@plant(ROW_FILES, "test_files_can_be_read_again", "Whether the rows can be read again; False for a stream.")
class RepeatedStream(_Opened):
    def change(self, rows: FileRows) -> FileRows:
        return FileRows(rows.files)


@plant(ROW_FILES, "test_tables_and_protected", "The directory of a table never gets one.")
class FilesInTables(ArrowRowFiles):
    def create(self, path: str, roots: Sequence[str], protected: Sequence[str] = ()) -> OutputFile:
        return self.open_storage(roots[0], {}, roots).create(self.locate(path))


@plant(ROW_FILES, "test_a_created_file_appears", "Begin a file, which replaces one of this name when it is closed.")
class VisibleAtOnce(ArrowRowFiles):
    def create(self, path: str, roots: Sequence[str], protected: Sequence[str] = ()) -> OutputFile:
        self.open_storage(roots[0], {}, roots).replace(self.locate(path), b"")
        return super().create(path, roots, protected)
