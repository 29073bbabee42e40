"""`paimon merge`: what it does, prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import run

import paimon


@pytest.fixture
def stock(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id INT NOT NULL, pieces INT", primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": number, "pieces": 10 * number} for number in range(4)])
    return table


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "new.csv"
    path.write_text("id,pieces\n1,5\n2,0\n9,7\n")
    return str(path)


def rows(table: paimon.Table) -> dict[int, int]:
    return {row["id"]: row["pieces"] for row in table.scan().to_arrow().to_pylist()}


def test_it_merges_and_prints_the_counts(stock: paimon.Table, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = run(capsys, "merge", stock.location, file, "--on", "id", "--update-all", "--insert-all")
    assert "snapshot 2: 1 row inserted, 2 rows updated, 0 rows deleted" in printed
    assert rows(stock) == {0: 0, 1: 5, 2: 0, 3: 30, 9: 7}
    nothing = run(capsys, "merge", stock.location, file, "--on", "source.id = target.pieces + 1000", "--delete")
    assert "no row changed" in nothing


def test_clauses_have_conditions_and_an_order(
    stock: paimon.Table, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    clauses = ("--delete", "--if", "source.pieces = 0", "--update", "pieces=target.pieces + source.pieces")
    others = ("--insert", "id=id * 10", "pieces=1", "--if", "id > 5", "--delete-unmatched", "--if", "id = 3")
    done = run(capsys, "merge", stock.location, file, "--on", "target.id = source.id", *clauses, *others, "-o", "json")
    assert json.loads(done) == {"snapshots": [2], "inserted": 1, "updated": 1, "deleted": 2, "files": 1}
    assert rows(stock) == {0: 0, 1: 15, 90: 1}
    run(capsys, "merge", stock.location, file, "--on", "id", "--update-unmatched", "pieces=-1", "--if", "pieces = 1")
    assert rows(stock) == {0: 0, 1: 15, 90: -1}


def test_it_refuses_what_is_wrong(stock: paimon.Table, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--update-all" in run(capsys, "merge", stock.location, file, "--on", "id", code=1)
    misspelled = run(capsys, "merge", stock.location, file, "--on", "id,piecs", "--update-all", code=1)
    assert "Column 'piecs' does not exist" in misspelled and "did you mean 'pieces'" in misspelled
    assert "COLUMN=SQL" in run(capsys, "merge", stock.location, file, "--on", "id", "--update", "pieces", code=1)
    with pytest.raises(SystemExit) as refused:
        run(capsys, "merge", stock.location, file, "--on", "id", "--if", "id = 1")
    assert refused.value.code == 2
    assert "--if must follow a clause" in capsys.readouterr().err
    assert len(stock.snapshots()) == 1
