"""The kit that tests other implementations, with Java's Paimon as the implementation."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.java_paimon import JavaPaimon

from paimon.testing.conformance import BUCKET_MODES, FEATURES, Capabilities, TableUnderTest
from paimon.testing.conformance.__main__ import main

pytestmark = [pytest.mark.interop, pytest.mark.nightly]

running: list[JavaPaimon] = []


class Java:
    """Types whose values are the same in JSON; postponed rows are moved by this library."""

    capabilities = Capabilities(
        types=("INT", "BIGINT", "BOOLEAN", "VARCHAR"),
        file_formats=("parquet", "avro"),
        bucket_modes=tuple(mode for mode in BUCKET_MODES if mode != "dynamic"),
        features=tuple(name for name in FEATURES if name not in ("create", "compact", "delete")),
    )

    def write(self, table: TableUnderTest, rows: pa.Table) -> None:
        java = running[0]
        compacts = bool(table.primary_keys) and table.options.get("write-only") != "true"
        is_postponed = table.options.get("bucket") == "-2"
        java.write(Path(table.location), rows.to_pylist(), compact=compacts and not is_postponed)

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        options = None if snapshot is None else {"scan.snapshot-id": str(snapshot)}
        return pa.Table.from_pylist(running[0].read(Path(table.location), options=options), table.schema)


def test_java_is_right(java: JavaPaimon, capsys: pytest.CaptureFixture[str]) -> None:
    running[:] = [java]
    arguments = ["--adapter", f"{__name__}:Java", "--examples", "40", "--seconds", "1200", "--quiet"]
    status = main(arguments)
    shown = capsys.readouterr().out
    assert status == 0, shown
