"""`paimon compact`: what it does, prints and refuses."""

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
        options={"bucket": "1"},
    )  # fmt: skip
    for day in ("mon", "mon", "tue", "tue"):
        table.write([{"id": 1, "day": day}])
    return table


def test_it_prints_what_it_did(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = json.loads(run(capsys, "compact", orders.location, "--output", "json"))
    assert nothing == {"snapshot": None, "buckets": 0, "files_before": 0, "files_after": 0, "records": 0}
    monday = ("compact", orders.location, "--full", "--where", "day = 'mon'", "--output", "json")
    due = json.loads(run(capsys, *monday, "--dry-run"))
    assert due == {"snapshot": None, "buckets": 1, "files_before": 2, "files_after": 0, "records": 2}
    some = json.loads(run(capsys, *monday))
    assert some == {"snapshot": 5, "buckets": 1, "files_before": 2, "files_after": 1, "records": 1}
    rest = run(capsys, "compact", orders.location, "--option", "num-sorted-run.compaction-trigger=2")
    assert "compaction of" in rest
    assert orders.scan().count() == 2
    assert orders.system_table("files").scan().to_arrow()["level"].to_pylist() == [5, 2]


def test_it_refuses_other_columns_and_tables_by_name(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = run(capsys, "compact", orders.location, "--where", "id = 1", code=1)
    assert "'id'" in wrong and "hint: partition columns of" in wrong
    refused = run(capsys, "compact", orders.location, "--option", "clustering.incremental=true", code=1)
    assert "clustering.incremental" in refused
