"""A change of a type that can lose stored values needs proof by statistics, or the caller's consent."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import paimon
from paimon.cli.main import main
from paimon.domain.errors import CommitConflict, InvalidRequest
from paimon.operations import evolve as evolve_module
from paimon.table import Table

LARGE = 3 * 10**9
TABLES: list[dict[str, Any]] = [
    {"primary_keys": ["k"], "options": {"bucket": "2"}},
    {"primary_keys": ["k"], "options": {"bucket": "1", "file.format": "orc", "deletion-vectors.enabled": "true"}},
    {"primary_keys": ["k"], "options": {"merge-engine": "partial-update", "bucket": "1", "file.format": "avro"}},
    {"options": {"file.format": "orc"}},
    {"options": {"bucket": "2", "bucket-key": "k", "file.format": "avro"}},
    {"options": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}},
]


def create(tmp_path: Path, columns: str = "k INT NOT NULL, v BIGINT", **declaration: Any) -> Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d", exist_ok=True)
    return catalog.create_table("d.t", columns, **declaration)


@pytest.mark.parametrize("declaration", TABLES)
def test_a_type_that_loses_a_value_is_refused_with_file_and_value(tmp_path: Path, declaration: dict[str, Any]) -> None:
    table = create(tmp_path, **declaration)
    table.write([{"k": 1, "v": 1}])
    table.write([{"k": 2, "v": LARGE}])
    for change in (
        lambda: table.alter_column_type("v", "INT"),
        lambda: table.alter("ALTER COLUMN v TYPE INT"),
        lambda: table.alter("MODIFY v INT"),
        lambda: table.alter("RENAME COLUMN v TO w", "ALTER COLUMN w SET DATA TYPE INT"),
        lambda: paimon.connect(tmp_path).sql("ALTER TABLE d.t ALTER COLUMN v TYPE INT"),
    ):
        with pytest.raises(
            InvalidRequest, match=r"Column '[vw]' cannot become INT: file 'data-.*' has the BIGINT 3000"
        ):
            change()
    assert table.table_schema.id == paimon.connect(tmp_path).table("d.t").table_schema.id
    assert table.maintain.check().is_whole


@pytest.mark.parametrize("declaration", TABLES)
def test_a_type_that_holds_all_live_values_is_accepted(tmp_path: Path, declaration: dict[str, Any]) -> None:
    table = create(tmp_path, **declaration)
    table.write([{"k": 1, "v": 2**31 - 1}])
    table.write([{"k": 2, "v": None}])
    narrow = table.alter_column_type("v", "INT")
    assert narrow.scan().to_arrow().sort_by("k")["v"].to_pylist() == [2**31 - 1, None]
    assert narrow.maintain.check(deep=True).is_whole


def test_files_that_are_no_longer_live_need_no_proof(tmp_path: Path) -> None:
    table = create(tmp_path, primary_keys=["k"], options={"bucket": "1"})
    table.write([{"k": 1, "v": LARGE}])
    table.write([{"k": 1, "v": 1}])
    table.compact(full=True)
    assert table.alter_column_type("v", "INT").scan().to_arrow()["v"].to_pylist() == [1]


@pytest.mark.parametrize("mode", ["none", "counts"])
def test_missing_bounds_are_no_proof(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, options={"metadata.stats-mode": mode})
    table.write([{"k": 1, "v": 1}])
    with pytest.raises(InvalidRequest, match=r"statistics of file 'data-.*' do not prove that each BIGINT fits"):
        table.alter_column_type("v", "INT")
    table.alter_column_type("v", "DECIMAL(21, 2)")


def test_texts_need_proof_to_become_numbers(tmp_path: Path) -> None:
    table = create(tmp_path, "k INT, v STRING, r ROW<a BIGINT>")
    table.write([{"k": 1, "v": "abc", "r": {"a": 1}}])
    with pytest.raises(InvalidRequest, match="has the STRING 'abc'"):
        table.alter_column_type("v", "INT")
    with pytest.raises(InvalidRequest, match="Column 'r' cannot become ROW<`a` INT>"):
        table.alter_column_type("r.a", "INT")
    table.overwrite([{"k": 1, "v": None, "r": None}])
    table = table.alter_column_type("v", "INT").alter_column_type("r.a", "INT", allow_lossy=True)
    paimon.connect(tmp_path).sql("TRUNCATE TABLE d.t")
    table.alter_column_type("r.a", "TINYINT")


@pytest.mark.parametrize("way", ["method", "alter", "class", "sql", "modify", "cli", "clause", "verb"])
def test_a_loss_can_be_accepted(tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = create(tmp_path)
    table.write([{"k": 1, "v": LARGE}])
    match way:
        case "method":
            table.alter_column_type("v", "INT", allow_lossy=True)
        case "alter":
            table.alter("ALTER COLUMN v TYPE INT", allow_lossy=True)
        case "class":
            table.alter(paimon.SetColumnType("v", "INT", allow_lossy=True))
        case "sql":
            paimon.connect(tmp_path).sql("ALTER TABLE d.t ALTER COLUMN v TYPE INT ALLOW LOSSY")
        case "modify":
            table.alter("MODIFY v INT ALLOW LOSSY COMMENT 'c' FIRST")
        case "cli":
            assert main(["alter", table.location, "--clause", "ALTER COLUMN v TYPE INT", "--allow-lossy"]) == 0
        case "clause":
            assert main(["alter", table.location, "--clause", "ALTER COLUMN v TYPE INT ALLOW LOSSY"]) == 0
        case "verb":
            arguments = ["table", "alter", table.location, "alter-column", "--name", "v", "--type", "INT"]
            assert main(arguments) != 0
            assert main([*arguments, "--allow-lossy"]) == 0
    capsys.readouterr()
    narrow = paimon.connect(tmp_path).table("d.t")
    assert narrow.scan().to_arrow()["v"].to_pylist() == [LARGE - 2**32]  # as Java casts
    report = narrow.maintain.check()
    assert not report.is_whole
    assert "has the value 3000000000 in column 'v', which INT does not hold" in str(report)
    assert narrow.alter_column_type("v", "BIGINT").scan().to_arrow()["v"].to_pylist() == [LARGE]


@pytest.mark.parametrize("keys", [[], ["k"]])
def test_a_commit_of_files_of_an_older_type_checks_its_bounds(tmp_path: Path, keys: list[str]) -> None:
    table = create(tmp_path, primary_keys=keys, options={"bucket": "1", "bucket-key": "k"})
    table.write([{"k": 1, "v": 1}])
    table.alter_column_type("v", "INT")
    table.write([{"k": 2, "v": 2}])  # the older handle writes BIGINT
    with pytest.raises(CommitConflict, match=r"Column 'v' became INT, but file 'data-.*' has the BIGINT 3000000000"):
        table.write([{"k": 3, "v": LARGE}])
    narrow = paimon.connect(tmp_path).table("d.t")
    assert narrow.scan().to_arrow().sort_by("k")["v"].to_pylist() == [1, 2]
    assert narrow.maintain.check(deep=True).is_whole


def test_a_commit_during_the_change_takes_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path)
    table.write([{"k": 1, "v": 1}])
    put_schema = evolve_module._put_schema

    def write_first(*arguments: Any) -> bool:
        monkeypatch.undo()
        table.write([{"k": 2, "v": LARGE}])
        return put_schema(*arguments)

    monkeypatch.setattr(evolve_module, "_put_schema", write_first)
    monkeypatch.setattr(type(table.engine.snapshots), "lock", lambda *_: nullcontext())  # as on most object stores
    with pytest.raises(InvalidRequest, match=r"cannot become INT.*the type was changed back"):
        table.alter("ALTER COLUMN v TYPE INT", "ADD COLUMN w INT")
    now = paimon.connect(tmp_path).table("d.t")
    assert now.scan().to_arrow().sort_by("k").to_pylist() == [
        {"k": 1, "v": 1, "w": None},
        {"k": 2, "v": LARGE, "w": None},
    ]
    assert now.maintain.check().is_whole


def test_a_rollback_restores_no_value_that_the_type_does_not_hold(tmp_path: Path) -> None:
    table = create(tmp_path, options={"bucket": "1", "bucket-key": "k"})
    table.write([{"k": 1, "v": LARGE}])
    table.overwrite([{"k": 1, "v": 1}])
    narrow = table.alter_column_type("v", "INT")
    catalog = paimon.connect(tmp_path)
    for restore in (lambda: narrow.maintain.rollback_to(1), lambda: catalog.sql("CALL sys.rollback('d.t', 1)")):
        with pytest.raises(InvalidRequest, match=r"Snapshot 1 cannot be restored: 'v' is INT now, but file .* 30000"):
            restore()
    assert narrow.scan().to_arrow()["v"].to_pylist() == [1]
    wide = narrow.alter_column_type("v", "BIGINT")
    wide.maintain.rollback_to(1)
    assert wide.scan().to_arrow()["v"].to_pylist() == [LARGE]


def test_messages_of_an_older_handle_are_checked_by_the_process_that_commits(tmp_path: Path) -> None:
    table = create(tmp_path)
    writer = table.new_batch_write_builder().new_write()
    writer.write([{"k": 1, "v": LARGE}])
    messages = writer.prepare_commit()
    narrow = table.alter_column_type("v", "INT")
    with pytest.raises(CommitConflict, match="Column 'v' became INT"):
        narrow.new_batch_write_builder().new_commit().commit(messages)
    assert narrow.snapshot() is None
