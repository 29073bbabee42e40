"""The Java side of the tests: it reads what it wrote, for every type."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.java_paimon import JavaPaimon, canonical

pytestmark = pytest.mark.interop


def test_java_reads_the_rows_that_it_wrote(java: JavaPaimon, tmp_path: Path) -> None:
    table = tmp_path / "t"
    java.create(table, {"id": "BIGINT NOT NULL", "v": "STRING"}, primary_keys=["id"], options={"bucket": "1"})
    java.write(table, [{"id": 1, "v": "a"}, {"id": 2, "v": "é"}])
    java.write(table, [{"id": 1, "_ROW_KIND": "-D"}, {"id": 3, "v": None}], identifier=2, compact=True)
    assert java.read(table) == canonical([{"id": 2, "v": "é"}, {"id": 3, "v": None}])
    assert java.snapshot(table)["commitKind"] == "COMPACT"
