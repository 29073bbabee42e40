"""Rewritten file indexes: of the files that have none, without another change, and without files left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tables import create_table

import paimon
from paimon.domain.errors import CommitConflict
from paimon.operations.commit.prepared_files import abort
from paimon.operations.compact import rewrite_indexes
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.table import Table

PLACES = {"embedded": "1 mb", "files": "1 b"}


def create(home: Path) -> Table:
    table = create_table(home, "id INT, p STRING, color STRING", partition_keys=["p"], options={"write-only": "true"})
    for first in (0, 100):
        rows = [{"id": i, "p": "a" if i % 2 else "b", "color": f"c{i % 7}"} for i in range(first, first + 20)]
        table.write(rows)
    return table


def declare(table: Table, threshold: str = "1 b", columns: str = "color") -> Table:
    table.alter(f"SET ('file-index.bitmap.columns' = '{columns}', 'file-index.in-manifest-threshold' = '{threshold}')")
    return paimon.open_table(table.location)  # type: ignore[return-value]


def indexes(table: Table) -> set[tuple[str, str]]:
    rows = table.system_table("file_indexes").scan().to_arrow().to_pylist()
    return {(row["column_name"], row["storage_type"]) for row in rows}


def index_files(home: Path) -> list[str]:
    return sorted(path.name for path in home.rglob("*.index"))


@pytest.mark.parametrize("threshold", PLACES.values(), ids=PLACES)
def test_existing_files_get_the_declared_indexes(tmp_path: Path, threshold: str) -> None:
    table = declare(create(tmp_path), threshold)
    before, rows = table.scan().plan(), table.scan().to_arrow()
    done = table.maintain.rewrite_file_index()
    assert (done.partitions, done.files) == (2, 4)
    assert [s.file_paths for s in table.scan().plan().splits] == [s.file_paths for s in before.splits]
    assert indexes(table) == {("color", "EMBEDDED" if threshold == "1 mb" else "FILE")}
    assert table.scan().to_arrow().equals(rows)
    assert table.scan(where="color = 'c3'").count() == rows["color"].to_pylist().count("c3")
    assert "file index bitmap(color)" in table.scan(where="color = 'c3'").explain()
    assert table.maintain.rewrite_file_index().snapshot_id is None
    assert table.scan(snapshot=2).to_arrow().equals(rows)
    assert not table.maintain.check().faults


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_files_of_a_primary_key_are_written_and_compacted_after_a_rewrite(tmp_path: Path, vectors: str) -> None:
    options = {"bucket": "1", "deletion-vectors.enabled": vectors}
    table = create_table(tmp_path, "id INT NOT NULL, color STRING", primary_keys=["id"], options=options)
    table.write([{"id": i, "color": f"c{i % 7}"} for i in range(30)])
    writer = declare(table)
    assert writer.maintain.rewrite_file_index().files > 0
    writer.write([{"id": 3, "color": "new"}])
    assert writer.scan(where="color = 'c3'").to_arrow()["id"].to_pylist() == [10, 17, 24]
    writer.compact(full=True)
    assert writer.scan(where="color = 'new'").to_arrow()["id"].to_pylist() == [3]
    assert writer.scan().count() == 30
    assert not writer.maintain.check().faults


def test_a_condition_selects_partitions_and_removed_indexes_go(tmp_path: Path) -> None:
    table = declare(create(tmp_path))
    assert table.maintain.rewrite_file_index(where="p = 'a'").files == 2
    assert len(index_files(tmp_path)) == 2
    table.alter("RESET ('file-index.bitmap.columns')")
    table = paimon.open_table(table.location)  # type: ignore[assignment]
    assert table.maintain.rewrite_file_index().files == 2
    assert indexes(table) == set()
    table.maintain.expire_snapshots(retain_max=1, retain_min=1)
    assert index_files(tmp_path) == []
    assert table.scan().count() == 40


def test_indexes_that_come_back_do_not_lose_the_file(tmp_path: Path) -> None:
    table = create(tmp_path)
    for _ in range(2):
        table = declare(table, "1 mb")
        assert table.maintain.rewrite_file_index().files == 4
        table.alter("RESET ('file-index.bitmap.columns')")
        table = paimon.open_table(table.location)  # type: ignore[assignment]
        assert table.maintain.rewrite_file_index().files == 4
        assert table.scan().count() == 40


def test_indexes_follow_renamed_columns(tmp_path: Path) -> None:
    table = declare(create(tmp_path))
    table.alter("RENAME COLUMN color TO colour")
    table = paimon.open_table(table.location)  # type: ignore[assignment]
    assert table.maintain.rewrite_file_index().files == 4
    assert indexes(table) == {("color", "FILE")}
    assert table.scan(where="colour = 'c3'").count() == table.scan().to_arrow()["colour"].to_pylist().count("c3")


def test_a_rewrite_that_loses_to_a_compaction_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = declare(create(tmp_path))
    commit = rewrite_indexes.commit

    def compact_first(*request: object) -> object:
        """Compact the table before the rewrite is committed."""
        table.with_options({"write-only": "false"}).compact(full=True)
        return commit(*request)  # type: ignore[arg-type]

    monkeypatch.setattr(rewrite_indexes, "commit", compact_first)
    with pytest.raises(CommitConflict):
        table.maintain.rewrite_file_index()
    names = {f"{f.file_name}.index" for split in table.scan().plan().splits for f in split.files}
    assert {*index_files(tmp_path)} == names
    assert table.scan().count() == 40


def test_an_aborted_rewrite_deletes_only_its_index_files(tmp_path: Path) -> None:
    table = declare(create(tmp_path))
    snapshot = latest_snapshot(table.context)
    assert snapshot is not None
    messages = rewrite_indexes._rewrite_buckets(table.context, snapshot, "user", None)
    assert len(index_files(tmp_path)) == 4
    abort(table.context, messages, "user")
    assert index_files(tmp_path) == []
    assert table.scan().count() == 40
