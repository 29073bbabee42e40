"""The contract of RowFiles on the adapter of pyarrow."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

import paimon
from paimon.ports.row_files import RowFiles
from paimon.testing.contracts import RowFilesContract


class TestArrowRowFiles(RowFilesContract):
    def make_row_files(self) -> tuple[RowFiles, Path, Path]:
        files = paimon.connect("memory://row-files").engine.row_files
        assert files is not None
        return files, Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())


def test_the_hint_names_the_way_out_of_inferred_types(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n" + "1\n" * 600_000 + "x\n")
    with pytest.raises(paimon.CorruptTable) as found:
        paimon.read_files(str(tmp_path / "a.csv")).to_reader().read_all()
    assert found.value.hint is not None and "declare types that fit, such as STRING" in found.value.hint
