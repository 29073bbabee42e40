"""Java and we write, compact and read a table with postponed buckets alternately."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_nightly
from support.java_paimon import JavaPaimon, canonical

import paimon
from paimon.operations.commit.base import CommitBase

pytestmark = pytest.mark.interop

FIELDS = {"p": "STRING NOT NULL", "k": "INT NOT NULL", "v": "STRING"}
OPTIONS: list[dict[str, str]] = [
    {},
    {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    {"deletion-vectors.enabled": "true"},
    {"changelog-producer": "lookup", "file.format": "orc"},
]
STEPS = 10


def make_rows(number: int) -> list[dict[str, Any]]:
    """New keys, newer rows of keys of both sides, and a delete, in two partitions."""
    added = [{"p": "ab"[k % 2], "k": k, "v": f"new {number}"} for k in range(number * 4, number * 4 + 6)]
    updated = [{"p": "ab"[k % 2], "k": k, "v": f"step {number}", "_ROW_KIND": "+U"} for k in (0, 1, number)]
    gone = number * 4 + 5
    return [*added, *updated, {"p": "ab"[gone % 2], "k": gone, "v": "gone", "_ROW_KIND": "-D"}]


def write_ours(table: paimon.Table, rows: list[dict[str, Any]]) -> None:
    columns = {name: [row.get(name, "+I") for row in rows] for name in (*FIELDS, "_ROW_KIND")}
    table.write(columns, kind_column="_ROW_KIND")


def postponed(table: paimon.Table) -> int:
    live = CommitBase(table.context, table.snapshot()).read_live_files(lambda _: True)
    return sum(entry.bucket == -2 for entry in live)


@pytest.mark.parametrize(
    "options", mark_nightly(OPTIONS, always=OPTIONS[::2]), ids=lambda options: " ".join(options.values()) or "plain"
)
@pytest.mark.parametrize("starts", mark_nightly(["java", "we"], always=["java"]))
def test_alternate_writes_and_compactions(
    java: JavaPaimon, tmp_path: Path, options: dict[str, str], starts: str
) -> None:
    given = {"bucket": "-2", "postpone.default-bucket-num": "2", **options}
    directory = tmp_path / "db.db" / "t"
    if starts == "java":
        java.create(directory, FIELDS, primary_keys=["p", "k"], partition_keys=["p"], options=given)
    else:
        catalog = paimon.connect(tmp_path)
        catalog.create_database("db")
        ddl = ", ".join(f"{name} {kind}" for name, kind in FIELDS.items())
        catalog.create_table("db.t", ddl, primary_keys=["p", "k"], partition_keys=["p"], options=given)
    table = paimon.open_table(directory)
    assert isinstance(table, paimon.Table)
    expected: dict[int, dict[str, Any]] = {}
    for number in range(STEPS):
        java_writes = (number % 2 == 0) == (starts == "java")
        rows = make_rows(number)
        if java_writes:
            java.write(directory, rows, identifier=2 * number + 1)
        else:
            write_ours(table, rows)
        assert postponed(table) == 2
        if number % 4 in (0, 3):
            java.compact_postponed(directory, 2, identifier=2 * number + 2)
        else:
            table.compact(full=number == 5)
        for row in rows:
            expected[row["k"]] = {name: row[name] for name in FIELDS}
            if row.get("_ROW_KIND") == "-D":
                del expected[row["k"]]
        assert postponed(table) == 0
        assert canonical(table.scan().to_arrow().to_pylist()) == canonical(expected.values())
        assert java.read(directory) == canonical(expected.values())
    assert table.maintain.check(deep=True).is_whole
