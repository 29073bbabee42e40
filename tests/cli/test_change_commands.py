"""`paimon delete` and `paimon update`: what they do, print and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.command_line import run

import paimon
from paimon.builders import write_builder
from paimon.cli.main import main
from paimon.domain.commit.request import CommitResult
from paimon.domain.errors import CommitConflict


@pytest.fixture
def orders(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    ddl = "id INT NOT NULL, v INT, s STRING"
    table = catalog.create_table("db.t", ddl, primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": n, "v": n, "s": "a=b"} for n in range(5)])
    return table


def test_rows_are_deleted(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "delete", orders.location, "--where", "id IN (1, 2)") == "snapshot 2: 2 rows deleted\n"
    assert run(capsys, "delete", orders.location, "--where", "id = 3") == "snapshot 3: 1 row deleted\n"
    assert "no row was deleted" in run(capsys, "delete", orders.location, "--where", "id = 3")
    assert orders.scan().to_arrow()["id"].to_pylist() == [0, 4]


def test_columns_are_set(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--set", "v = v * 10 + id", "--set", "s='c=d'", "--where", "s = 'a=b' AND id > 2", "--output", "json")
    assert json.loads(run(capsys, "update", orders.location, *words)) == {"snapshots": [2], "updated": 2, "files": 1}
    assert orders.scan(["v", "s"], where="id = 4").to_arrow().to_pylist() == [{"v": 44, "s": "c=d"}]


def test_impossible_changes_are_refused(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (("--set", "v", "--where", "TRUE"), "COLUMN=SQL"),
        (("--set", "id=1", "--where", "TRUE"), "primary key"),
        (("--set", "s=open", "--where", "TRUE"), "\"'open'\""),
    ):
        assert message in run(capsys, "update", orders.location, *words, code=1)
    with pytest.raises(SystemExit):
        main(["delete", orders.location])
    assert "--where" in capsys.readouterr().err


def test_writes_without_compaction_are_reported(
    orders: paimon.Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A table that cannot be compacted: a warning. A compaction with a conflict: a line, or a field in JSON."""
    options = {"bucket": "1", "clustering.columns": "v", "deletion-vectors.enabled": "true", "owner": "x"}
    catalog = paimon.connect(tmp_path)
    created = catalog.create_table("db.c", "k INT NOT NULL, v INT", primary_keys=["k"], options=options)
    schema = Path(created.location, "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"owner" : "x"', '"row-tracking.enabled" : "true"'))
    clustered = catalog.table("db.c")
    with pytest.warns(RuntimeWarning, match=r"not compacted by this writer.*row-tracking") as warned:
        builder = clustered.new_stream_write_builder("u")
        with builder.new_write() as writer:
            for step in (1, 2):
                writer.write([{"k": step, "v": 1}])
                builder.new_commit().commit(step, writer.prepare_commit(step))
    assert len(warned) == 1
    (tmp_path / "rows.csv").write_text("k,v\n3,1\n")
    assert main(["write", clustered.location, str(tmp_path / "rows.csv")]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("paimon: warning: Table 'db.c' is not compacted by this writer")
    assert printed.out.startswith("snapshot 3")

    def commit_with_lost_compaction(*given: Any) -> CommitResult:
        return evolve(commit(*given), lost_compaction=CommitConflict("others compacted", hint="nothing is missing"))

    commit = write_builder.commit_rows
    monkeypatch.setattr(write_builder, "commit_rows", commit_with_lost_compaction)
    (tmp_path / "orders.csv").write_text("id,v,s\n9,1,x\n")
    words = ("write", orders.location, str(tmp_path / "orders.csv"))
    assert "but were not compacted: others compacted" in run(capsys, *words)
    assert json.loads(run(capsys, *words, "--output", "json"))["lost_compaction"] == "others compacted"
