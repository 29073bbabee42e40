"""Java and this library read each other's data files, changelogs and deletion vectors outside a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.java_paimon import JavaPaimon, canonical

import paimon

pytestmark = pytest.mark.interop


def test_both_write_outside_a_table(java: JavaPaimon, tmp_path: Path) -> None:
    roots = tmp_path / "a", tmp_path / "b"
    catalog = paimon.connect(tmp_path / "lake", allowed_roots=roots)
    catalog.create_database("d")
    options = {
        "bucket": "1", "deletion-vectors.enabled": "true", "index-file-in-data-file-dir": "true",
        "data-file.external-paths": f"file://{roots[0]},file:{roots[1]}", "changelog-producer": "lookup",
        "data-file.external-paths.strategy": "entropy-inject", "file-index.bloom-filter.columns": "v",
        "file-index.in-manifest-threshold": "1 b",
    }  # fmt: skip
    table = catalog.create_table("d.t", "k INT NOT NULL, v STRING", primary_keys=["k"], options=options)
    directory, expected = Path(table.location), {}
    for step in range(4):
        rows = [{"k": k, "v": f"{step}"} for k in range(step, step + 5)]
        expected |= {row["k"]: row for row in rows}
        if step % 2:
            java.write(directory, rows, identifier=step, compact=True)
        else:
            table.write(rows)
        assert java.read(directory) == canonical(table.scan().to_arrow().to_pylist())
    assert table.scan().to_arrow().sort_by("k").to_pylist() == list(expected.values())
    assert table.changes(after=0).to_arrow().num_rows > len(expected)
    assert list(directory.rglob("bucket-*")) == []
    assert table.maintain.check(deep=True).faults == ()
    java.retention(directory, "expire", min=1, max=1)
    assert java.retention(directory, "orphans", dry=True) == ""
    table.compact(full=True)
    table.maintain.expire_snapshots(retain_max=1, retain_min=1)
    assert java.read(directory) == canonical(expected.values())
    suffixes = sorted(p.suffix for root in roots for p in root.rglob("*") if p.is_file())
    assert suffixes.count(".parquet") <= 3, "the files of expired snapshots are gone"
