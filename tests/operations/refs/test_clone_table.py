"""Clones: the same rows, ids, deletion vectors and statistics at another place, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import paimon
from paimon.cli.main import main
from paimon.domain.errors import AlreadyExists, CorruptTable, InvalidRequest, NotFound, SnapshotExpired
from paimon.operations.metadata.metadata_files import copy_stream
from paimon.operations.refs import clone_table


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> paimon.Catalog:
    """A table with two schemas, two partitions, deletion vectors and statistics, and an append table with row ids."""
    catalog = paimon.connect(tmp_path_factory.mktemp("clone") / "lake")
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", "id INT NOT NULL, day STRING NOT NULL, v INT", primary_keys=["id", "day"], partition_keys=["day"],
        options={"bucket": "1", "deletion-vectors.enabled": "true"},
    )  # fmt: skip
    table.write([{"id": i, "day": day, "v": i} for i in range(20) for day in "ab"])
    table.tags.create("first")
    table.write([{"id": 3, "day": "a", "v": 33}])
    table = table.alter("ADD COLUMN w BIGINT")
    table.write([{"id": 50, "day": "b", "v": 1, "w": 9}])
    table.analyze()
    ids = catalog.create_table("db.ids", "id INT", options={"row-tracking.enabled": "true"})
    ids.write([{"id": 1}, {"id": 2}])
    catalog.create_table("db.empty", "id INT")
    return catalog


def test_a_clone_has_the_rows_of_the_source_and_no_fault(catalog: paimon.Catalog, tmp_path: Path) -> None:
    source = catalog.table("db.t")
    done = catalog.clone_table("db.t", "db2.u", warehouse=str(tmp_path / "other"))
    clone = paimon.connect(tmp_path / "other").table("db2.u")
    by_id = ["id", "day"]
    expected = source.scan().to_arrow().sort_by([(k, "ascending") for k in by_id])
    assert clone.scan().to_arrow().sort_by([(k, "ascending") for k in by_id]).equals(expected)
    assert clone.maintain.check(deep=True).is_whole
    assert [s.id for s in clone.snapshots()] == [1] and done.rows == clone.snapshots()[0].total_record_count
    statistics = paimon.connect(tmp_path / "other").table("db2.u$statistics").scan().to_arrow()
    assert statistics.num_rows == 1
    clone.write([{"id": 3, "day": "a", "v": 34, "w": 1}])
    assert clone.scan(where="id = 3 AND day = 'a'").to_arrow()["v"].to_pylist() == [34]
    assert not list((tmp_path / "other" / "db2.db" / "u").glob("branch*"))


def test_a_tag_and_a_partition_can_be_cloned(catalog: paimon.Catalog) -> None:
    catalog.clone_table("db.t", "db.part", where="day = 'a'", tag="first")
    clone = catalog.table("db.part")
    assert clone.columns == ["id", "day", "v"]
    assert clone.scan().to_arrow()["v"].to_pylist() == list(range(20))
    assert clone.maintain.check(deep=True).is_whole


def test_row_ids_continue_in_a_clone(catalog: paimon.Catalog) -> None:
    catalog.clone_table("db.ids", "db.ids2")
    clone = catalog.table("db.ids2")
    clone.write([{"id": 3}])
    files = catalog.table("db.ids2$files").scan().to_arrow().sort_by("first_row_id")
    assert files["first_row_id"].to_pylist() == [0, 2]


def test_rows_of_several_files_count_once(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True, "vector.file.format": "avro"}
    table = catalog.create_table("db.t", "id INT, v VECTOR<FLOAT, 2>", options=options)
    for _ in range(2):
        table.write([{"id": 1, "v": [1, 1]}, {"id": 2, "v": [2, 2]}])
    builder = table.new_batch_write_builder()
    builder.new_commit().commit(builder.new_update().update_by_row_id({"_ROW_ID": [0], "id": [3]}))
    done = catalog.clone_table("db.t", "db.u")
    assert (done.files, done.rows) == (5, 4) and catalog.table("db.u").scan().count() == 4
    assert catalog.table("sys.tables").scan(columns=["record_count"]).to_arrow()["record_count"].to_pylist() == [4, 4]


def test_a_dry_run_creates_nothing(catalog: paimon.Catalog) -> None:
    done = catalog.clone_table("db.t", "nowhere.t", dry_run=True)
    assert (done.source, done.target) == ("db.t", "nowhere.t") and done.files > 1
    assert "nowhere" not in catalog.databases()


def test_a_database_is_cloned_table_by_table(catalog: paimon.Catalog, tmp_path: Path) -> None:
    called = f"CALL sys.clone(database => 'db', target_catalog_conf => 'warehouse={tmp_path}/w')"
    rows = catalog.sql(called).to_arrow().to_pylist()
    assert {row["error"] for row in rows} == {None}
    assert paimon.connect(tmp_path / "w").tables("db") == catalog.tables("db")
    again = catalog.sql(called).to_arrow().to_pylist()
    assert all("already exists" in row["error"] for row in again)


def test_the_command_fails_after_a_failed_copy_and_for_a_missing_database(
    catalog: paimon.Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = f"{tmp_path}/env=test"
    words = ["clone", str(Path(catalog.table("db.t").location).parents[1]), "--to", target, "--database"]
    assert main([*words, "db"]) == 0
    assert "t" in paimon.connect(target).tables("db")
    capsys.readouterr()
    assert main([*words, "db", "--output", "json"]) == 1
    printed = capsys.readouterr()
    assert "already exists" in printed.out and "tables failed" in printed.err and "'error'" in printed.err
    assert main([*words, "typo"]) == 1
    assert "typo" in capsys.readouterr().err


def test_a_failed_copy_leaves_nothing(catalog: paimon.Catalog) -> None:
    with pytest.raises(NotFound):
        catalog.clone_table("db.t", "db.x", snapshot=99)
    with pytest.raises(InvalidRequest, match="not a partition column"):
        catalog.clone_table("db.t", "db.x", where="v = 1")
    with pytest.raises(InvalidRequest, match="Both"):
        catalog.clone_table("db.t", "db.x", tag="first", snapshot=1)
    with pytest.raises(AlreadyExists):
        catalog.clone_table("db.t", "db.empty")
    for system_table in ("sys.tables", "db.t$files"):
        with pytest.raises(InvalidRequest, match="is a system table"):
            catalog.clone_table(system_table, "db.x")
    assert "db.x" not in catalog and catalog.table("db.empty").scan().count() == 0


def test_a_missing_file_of_the_source_creates_no_table(catalog: paimon.Catalog) -> None:
    source = catalog.create_table("db.broken", "id INT", options={"bucket": "-1"})
    source.write([{"id": 1}])
    source.write([{"id": 2}])
    root = Path(source.location)
    lost = max(root.glob("bucket-0/*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    lost.rename(root / "aside")
    with pytest.raises(CorruptTable, match="does not exist"):
        catalog.clone_table("db.broken", "db.y")
    assert "db.y" not in catalog and not list(root.parent.glob("y/manifest/*"))
    (copy,) = root.parent.glob("y/**/*.parquet")  # a concurrent call may use it, and the next call does
    before = copy.stat()
    (root / "aside").rename(lost)
    catalog.clone_table("db.broken", "db.y")
    assert copy.stat() == before and catalog.table("db.y").scan().count() == 2


def test_a_source_that_expires_is_reported(catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    source = catalog.create_table("db.old", "id INT")
    source.write([{"id": 1}])
    source.overwrite([{"id": 2}])

    def expire_and_copy(*given: Any) -> int:
        source.maintain.expire_snapshots(retain_max=1, retain_min=1)
        return copy_stream(*given)

    monkeypatch.setattr(clone_table, "copy_stream", expire_and_copy)
    with pytest.raises(SnapshotExpired):
        catalog.clone_table("db.old", "db.late", snapshot=1)
    assert "db.late" not in catalog
