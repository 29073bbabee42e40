"""Repairs after lost files: what is lost is reported first, and the newest state is whole afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

import paimon
from paimon.domain.errors import CorruptTable, InvalidRequest, PaimonWarning
from paimon.verbs.repair_verbs import REMOVE_UNEXISTING_MANIFESTS


def make_table(path: Path, **options: str) -> paimon.Table:
    catalog = paimon.connect(path / "lake")
    catalog.create_database("db")
    keys = ["id", "day"] if "bucket" in options else []
    table = catalog.create_table(
        "db.t", "id INT NOT NULL, day STRING NOT NULL", primary_keys=keys, partition_keys=["day"], options=options
    )
    table.write([{"id": 1, "day": "a"}, {"id": 2, "day": "b"}])
    table.write([{"id": 3, "day": "a"}])
    return table


def data_files(table: paimon.Table) -> list[Path]:
    return sorted(Path(table.location).glob("day=*/bucket-0/*.parquet"), key=lambda p: p.stat().st_mtime_ns)


def test_missing_files_are_listed_then_removed(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    lost = data_files(table)[-1]
    lost.unlink()
    found = table.maintain.remove_missing_files().to_pylist()
    assert found == [{"path": str(lost), "partition": "{a}", "bucket": 0, "rows": 1}]
    with pytest.raises(CorruptTable):
        table.scan().to_arrow()
    with pytest.warns(PaimonWarning, match="1 row of 1 file is lost"):
        removed = table.maintain.remove_missing_files(dry_run=False)
    assert removed.to_pylist() == found
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert table.maintain.remove_missing_files(dry_run=False).num_rows == 0  # no snapshot without a loss
    assert [s.commit_kind.value for s in table.snapshots()] == ["APPEND", "APPEND", "OVERWRITE"]


def test_deletion_vectors_of_missing_files_go_too(tmp_path: Path) -> None:
    table = make_table(tmp_path, bucket="1", **{"deletion-vectors.enabled": "true"})
    table.write([{"id": 9, "day": "a"}, {"id": 10, "day": "a"}])
    table.compact(full=True)
    table.write([{"id": 9, "day": "a"}])
    live = {f["file_path"] for f in open_system(table, "files")}
    marked = {r["f0"] for row in open_system(table, "table_indexes") for r in row["dv_ranges"] or ()}
    lost = next(Path(path) for path in live if Path(path).name in marked)
    lost.unlink()
    with pytest.warns(PaimonWarning, match="lost"):
        table.maintain.remove_missing_files(dry_run=False)
    assert not {r["f0"] for row in open_system(table, "table_indexes") for r in row["dv_ranges"] or ()} & marked
    assert 9 in table.scan(where="day = 'a'").to_arrow()["id"].to_pylist()


def open_system(table: paimon.Table, name: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = paimon.open_table(f"{table.location}${name}").scan().to_arrow().to_pylist()
    return rows


def test_missing_manifests_are_listed_then_removed(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    names = [row["file_name"] for row in open_system(table, "manifests")]
    (Path(table.location) / "manifest" / str(names[-1])).unlink()
    again = paimon.open_table(table.location)  # without what the other engine has cached
    found = again.maintain.remove_missing_manifests()
    assert (found.names, found.lost_rows, found.snapshot_id) == ((names[-1],), 1, None)
    with pytest.raises(CorruptTable):
        again.scan().to_arrow()
    with pytest.warns(PaimonWarning, match="1 manifest"):
        done = again.maintain.remove_missing_manifests(dry_run=False)
    assert done.snapshot_id == 3
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert again.snapshots()[-1].total_record_count == 2
    again.write([{"id": 4, "day": "a"}])
    assert again.maintain.remove_missing_manifests(dry_run=False).names == ()


def test_a_lost_manifest_of_deleted_files_lets_their_rows_be_read_again(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    table.drop_partitions({"day": "a"})
    (dropped,) = {str(r["file_name"]) for r in open_system(table, "manifests") if r["num_deleted_files"]}
    (Path(table.location) / "manifest" / dropped).unlink()
    again, command = paimon.open_table(table.location), REMOVE_UNEXISTING_MANIFESTS.command
    assert command is not None and command.question is not None
    question = command.question(again, {"dry_run": False})
    assert question == f"Drop 1 manifest of {table.name}, so that 2 deleted rows can be read again?"
    with pytest.warns(PaimonWarning, match="without 1 manifest, 2 deleted rows can be read again"):
        assert again.maintain.remove_missing_manifests(dry_run=False).lost_rows == -2
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_the_earliest_snapshot_is_set_after_a_gap(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    for number in range(3):
        table.write([{"id": number, "day": "c"}])
    snapshots = Path(table.location) / "snapshot"
    (snapshots / "snapshot-3").unlink()
    for bad, message in ((9, "not between"), (2, "Snapshot 3 after"), (5, "does not follow a gap")):
        with pytest.raises(InvalidRequest, match=message):
            table.maintain.repair_earliest_snapshot(bad)
    done = table.maintain.repair_earliest_snapshot(4)
    assert (done.previous, done.current) == (1, 4)
    assert (snapshots / "EARLIEST").read_text() == "4"


def test_empty_tables_have_nothing_to_repair(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id INT")
    assert table.maintain.remove_missing_files(dry_run=False).num_rows == 0
    assert table.maintain.remove_missing_manifests(dry_run=False).names == ()
    with pytest.raises(InvalidRequest, match="no snapshot"):
        table.maintain.repair_earliest_snapshot(1)
