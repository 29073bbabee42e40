"""`paimon rescale`: what it does, prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import run

import paimon


@pytest.fixture
def orders(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", "id INT NOT NULL, day STRING NOT NULL", primary_keys=["id", "day"], partition_keys=["day"],
        options={"bucket": "2"},
    )  # fmt: skip
    table.write([{"id": number, "day": day} for number in range(20) for day in ("mon", "tue")])
    return table


def test_it_prints_what_it_did(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    one = ("rescale", orders.location, "--buckets", "3", "--where", "day = 'mon'", "--output", "json")
    due = json.loads(run(capsys, *one, "--dry-run"))
    assert (due["snapshot"], due["partitions"], due["files_after"]) == (None, 1, 0)
    assert json.loads(run(capsys, *one)) == {
        "snapshot": 2, "partitions": 1, "files_before": 2, "files_after": 3, "records": 20,
    }  # fmt: skip
    assert "rescale of db.t to 3 buckets" in run(capsys, "rescale", orders.location, "--buckets", "3")
    nothing = json.loads(run(capsys, "rescale", orders.location, "--buckets", "3", "--output", "json"))
    assert nothing == {"snapshot": None, "partitions": 0, "files_before": 0, "files_after": 0, "records": 0}
    assert orders.scan().count() == 40
    assert {row["bucket"] for row in orders.system_table("files").scan().to_arrow().to_pylist()} == {0, 1, 2}


def test_it_refuses_invalid_numbers_and_conditions(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert "integer from 1 to 32768" in run(capsys, "rescale", orders.location, "--buckets", "0", code=1)
    wrong = run(capsys, "rescale", orders.location, "--buckets", "3", "--where", "id = 1", code=1)
    assert "'id'" in wrong and "hint: partition columns of" in wrong
    assert orders.snapshot().id == 1  # type: ignore[union-attr]


def test_help_explains_what_happens_to_writers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(capsys, "rescale", "--help")
    printed = capsys.readouterr().out
    assert "Writers that started before are refused" in printed and "paimon rescale lake/default.db/orders" in printed
