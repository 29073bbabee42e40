"""Merges with Java: Java reads what a merge leaves, on tables that both write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_nightly
from support.java_paimon import JavaPaimon, canonical
from support.shared_java_table import create_shared_table, read_rows

pytestmark = pytest.mark.interop

MARKED = {"deletion-vectors.enabled": "true"}
LAYOUTS: dict[str, dict[str, Any]] = {
    "append": {"partition_keys": ["p"]},
    "append with vectors": {"partition_keys": ["p"], "options": MARKED},
    "append in buckets": {"options": {"bucket": "2", "bucket-key": "id"}},
    "fixed": {"primary_keys": ["id", "p"], "partition_keys": ["p"], "options": {"bucket": "2"}},
    "fixed with vectors": {"primary_keys": ["id"], "options": {"bucket": "1", **MARKED}},
    "dynamic": {"primary_keys": ["id"]},
    "cross partition": {"primary_keys": ["id"], "partition_keys": ["p"]},
}


def row(number: int, s: int | None, v: str | None) -> dict[str, Any]:
    return {"id": number, "p": "ab"[number % 2], "s": s, "v": v}


@pytest.mark.parametrize("layout", mark_nightly(LAYOUTS, always=["append with vectors", "fixed", "dynamic"]))
def test_java_reads_a_merged_table(java: JavaPaimon, tmp_path: Path, layout: str) -> None:
    table, directory = create_shared_table(tmp_path, **LAYOUTS[layout])
    table.write([row(i, i, "ours") for i in range(20)])
    expected = {i: row(i, i, "ours") for i in range(20)}
    java.write(directory, [row(i, i, "java") for i in range(20, 30)], identifier=1)
    expected |= {i: row(i, i, "java") for i in range(20, 30)}
    for turn in range(1, 4):
        source = [row(i, turn, f"turn {turn}") for i in range(turn, 40, 3)]
        merge = (
            table.merge(source, "target.id = source.id AND target.p = source.p")
            .when_matched_delete("target.id > 24")
            .when_matched_update({"s": "target.s + source.s", "v": "upper(source.v) || '!'"})
            .when_not_matched_insert_all("source.id < 38")
            .when_not_matched_by_source_update({"v": "NULL"}, "target.s = 10")
        )
        done = merge.execute()
        before = dict(expected)
        for new in source:
            old = before.get(new["id"])
            if old is None and new["id"] < 38:
                expected[new["id"]] = new
            elif old is not None and new["id"] > 24:
                del expected[new["id"]]
            elif old is not None:
                expected[new["id"]] = {**old, "s": old["s"] + turn, "v": f"TURN {turn}!"}
        for number in set(before) - {new["id"] for new in source}:
            if before[number]["s"] == 10:
                expected[number] = {**before[number], "v": None}
        assert done.inserted + done.updated + done.deleted > 0
        assert read_rows(directory) == canonical(expected.values()), f"ours, turn {turn}"
        assert java.read(directory) == canonical(expected.values()), f"Java, turn {turn}"
    table.compact(full=True)
    assert java.read(directory) == canonical(expected.values()), "Java, compacted"
