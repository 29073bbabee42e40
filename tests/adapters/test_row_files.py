"""The contract of RowFiles on the adapter of pyarrow."""

from __future__ import annotations

import tempfile
from pathlib import Path

import paimon
from paimon.ports.row_files import RowFiles
from paimon.testing.contracts import RowFilesContract


class TestArrowRowFiles(RowFilesContract):
    def make_row_files(self) -> tuple[RowFiles, Path, Path]:
        files = paimon.connect("memory://row-files").engine.row_files
        assert files is not None
        return files, Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
