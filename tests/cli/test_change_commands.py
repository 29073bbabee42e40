"""`paimon delete` and `paimon update`: what they do, print and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run

import paimon
from paimon.cli.main import main


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


def test_what_cannot_be_done_is_said(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (("--set", "v", "--where", "TRUE"), "COLUMN=SQL"),
        (("--set", "id=1", "--where", "TRUE"), "primary key"),
        (("--set", "s=open", "--where", "TRUE"), "\"'open'\""),
    ):
        assert said in run(capsys, "update", orders.location, *words, code=1)
    with pytest.raises(SystemExit):
        main(["delete", orders.location])
    assert "--where" in capsys.readouterr().err
