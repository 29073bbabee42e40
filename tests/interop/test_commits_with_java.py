"""Commits of this library and of Java alternate on one table: each builds on the snapshots of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.commit_tables import engine_on
from support.java_paimon import JavaPaimon, canonical

from paimon.adapters.files.local import LocalFiles
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.commit import commit
from paimon.operations.metadata.schemas import latest_schema
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

pytestmark = pytest.mark.interop


@pytest.fixture
def engine() -> Engine:
    return engine_on(LocalFiles())


def open_definition(engine: Engine, directory: Path) -> TableDefinition:
    paths = TablePaths(str(directory))
    schema = latest_schema(engine, paths)
    assert schema is not None
    return TableDefinition("d.t", paths, schema, TableOptions.of(schema.options))


def live(engine: Engine, table: TableDefinition) -> list[ManifestEntry]:
    context = TableContext(engine, table)
    return CommitBase(context, latest_snapshot(context)).read_live_files(lambda _: True)


def row(p: int, i: int, v: str | None) -> dict[str, Any]:
    return {"p": p, "id": i, "v": v}


def create_partitioned_table(java: JavaPaimon, directory: Path, options: dict[str, str]) -> None:
    fields = {"p": "INT NOT NULL", "id": "BIGINT NOT NULL", "v": "STRING"}
    java.create(directory, fields, primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "1", **options})


def test_java_does_not_read_a_dropped_partition(java: JavaPaimon, engine: Engine, tmp_path: Path) -> None:
    create_partitioned_table(java, tmp_path / "t", {})
    java.write(tmp_path / "t", [row(1, 1, "a"), row(2, 1, "b")])
    table = open_definition(engine, tmp_path / "t")
    commit(
        TableContext(engine, table),
        CommitRequest((), "python", overwrite={"p": 1}, watermark=77, properties={"k": "v"}),
    )
    assert java.read(tmp_path / "t") == [row(2, 1, "b")]
    seen = java.snapshot(tmp_path / "t")
    assert (seen["id"], seen["commitKind"], seen["watermark"], seen["properties"]) == (2, "OVERWRITE", 77, {"k": "v"})
    assert (seen["totalRecordCount"], seen["deltaRecordCount"]) == (1, -1)
    java.write(tmp_path / "t", [row(1, 5, "c")], identifier=2)
    assert java.read(tmp_path / "t") == canonical([row(1, 5, "c"), row(2, 1, "b")])
    assert java.snapshot(tmp_path / "t")["watermark"] == 77


def test_java_continues_after_our_upgrade(java: JavaPaimon, engine: Engine, tmp_path: Path) -> None:
    create_partitioned_table(java, tmp_path / "t", {"write-only": "true"})
    java.write(tmp_path / "t", [row(1, 1, "a"), row(1, 2, "b")])
    table = open_definition(engine, tmp_path / "t")
    (entry,) = live(engine, table)
    upgraded = CompactIncrement((entry.file,), (evolve(entry.file, level=5),))
    message = CommitMessage(entry.partition, 0, 1, f"{tmp_path}/t/p=1/bucket-0", compact=upgraded)
    commit(TableContext(engine, table), CommitRequest((message,), "python"))
    java.write(tmp_path / "t", [row(1, 2, "B"), {**row(1, 1, None), "_ROW_KIND": "-D"}], identifier=2)
    assert java.read(tmp_path / "t") == [row(1, 2, "B")]
    java.write(tmp_path / "t", [], identifier=3, compact=True, options={"write-only": "false"})
    assert java.read(tmp_path / "t") == [row(1, 2, "B")]
    with pytest.raises(CommitConflict):
        commit(TableContext(engine, table), CommitRequest((message,), "python"))


def test_manifests_of_both_are_merged_by_both(java: JavaPaimon, engine: Engine, tmp_path: Path) -> None:
    """Small manifests and low thresholds: every commit merges the manifests of the previous one."""
    options = {
        "manifest.target-file-size": "8 kb",
        "manifest.merge-min-count": "2",
        "manifest.full-compaction-threshold-size": "16 kb",
        "num-sorted-run.compaction-trigger": "3",
    }
    create_partitioned_table(java, tmp_path / "t", options)
    expected: dict[tuple[int, int], Any] = {}
    for step in range(1, 9):
        rows = [row(p, step % 3, f"{step}-{p}") for p in (1, 2, 3)]
        java.write(tmp_path / "t", rows, identifier=step)
        expected |= {(r["p"], r["id"]): r for r in rows}
        table = open_definition(engine, tmp_path / "t")
        gone = step % 3 + 1
        commit(TableContext(engine, table), CommitRequest((), "python", overwrite={"p": gone}))
        expected = {k: r for k, r in expected.items() if k[0] != gone}
        assert java.read(tmp_path / "t") == canonical(expected.values())
        total = java.snapshot(tmp_path / "t")["totalRecordCount"]
        assert total == sum(e.file.row_count for e in live(engine, table))


@pytest.mark.parametrize("manifest_format", ["avro", "parquet", "orc"])
def test_java_reads_our_manifests_of_every_format(
    java: JavaPaimon, engine: Engine, tmp_path: Path, manifest_format: str
) -> None:
    create_partitioned_table(java, tmp_path / "t", {"manifest.format": manifest_format})
    java.write(tmp_path / "t", [row(1, 1, "a"), row(2, 1, "b")])
    table = open_definition(engine, tmp_path / "t")
    commit(TableContext(engine, table), CommitRequest((), "python", overwrite={"p": 2}))
    assert java.read(tmp_path / "t") == [row(1, 1, "a")]
