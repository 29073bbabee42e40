"""Deletion vectors with Java: each side reads, extends and compacts the vectors of the other."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_lengths
from support.java_paimon import JavaPaimon, canonical
from support.shared_java_table import create_shared_table, read_rows

pytestmark = pytest.mark.interop

LAYOUTS: dict[str, dict[str, str]] = {
    "unaware": {},
    "unaware 64": {"deletion-vectors.bitmap64": "true", "deletion-vector.index-file.target-size": "40 b"},
    "fixed": {"bucket": "2", "bucket-key": "id"},
    "orc": {"file.format": "orc", "bucket": "2", "bucket-key": "id", "deletion-vectors.bitmap64": "true"},
}


def rows(step: int, count: int = 20) -> list[dict[str, Any]]:
    first = step * count
    return [{"id": first + i, "p": "ab"[i % 2], "s": i % 7, "v": f"{step}-{i}"} for i in range(count)]


@pytest.mark.parametrize(("case", "steps"), mark_lengths(LAYOUTS, always=["unaware 64", "fixed"], short=4, full=8))
def test_both_delete_from_an_append_table(java: JavaPaimon, tmp_path: Path, case: str, steps: int) -> None:
    options = {"deletion-vectors.enabled": "true", **LAYOUTS[case]}
    table, directory = create_shared_table(tmp_path, partition_keys=["p"], options=options)
    chance = random.Random(case)
    expected_rows: dict[int, dict[str, Any]] = {}
    for step in range(1, steps + 1):
        if step % 2:
            table.write(rows(step))
        else:
            java.write(directory, rows(step), identifier=step, options={"write-only": "true"})
        expected_rows |= {row["id"]: row for row in rows(step)}
        gone = chance.sample(sorted(expected_rows), 7)
        if step % 4 < 2:
            table.delete(f"id IN ({', '.join(map(str, gone))})")
        else:
            java.delete(directory, "id", gone, identifier=100 + step)
        for number in gone:
            del expected_rows[number]
        changed = chance.sample(sorted(expected_rows), 3)
        table.update({"s": "s + 100", "v": "'ours'"}, where=f"id IN ({', '.join(map(str, changed))})")
        for number in changed:
            expected_rows[number] = {**expected_rows[number], "s": expected_rows[number]["s"] + 100, "v": "ours"}
        expected = canonical(expected_rows.values())
        assert read_rows(directory) == expected, f"ours after step {step}"
        assert java.read(directory) == expected, f"Java after step {step}"
        if step % 4 == 3:
            table.compact(full=step == 7)
        elif step % 4 == 1 and table.definition.is_bucketed:
            java.write(directory, [], identifier=200 + step, compact=True)
        elif step % 4 == 1:
            java.compact_append(directory, identifier=200 + step)
        assert read_rows(directory) == expected, f"ours, compacted after step {step}"
        assert java.read(directory) == expected, f"Java, compacted after step {step}"
    kinds = [(s.commit_user == "java", s.commit_kind.value) for s in table.snapshots()]
    assert {(True, "COMPACT"), (False, "COMPACT"), (True, "OVERWRITE"), (False, "OVERWRITE")} <= set(kinds)


def test_rows_are_rewritten_without_vectors(java: JavaPaimon, tmp_path: Path) -> None:
    table, directory = create_shared_table(tmp_path, partition_keys=["p"])
    table.write(rows(0))
    java.write(directory, rows(1), identifier=1)
    table.delete("id < 3 OR id = 25")
    table.update({"v": "NULL"}, where="s = 4")
    left = [r for step in (0, 1) for r in rows(step) if r["id"] >= 3 and r["id"] != 25]
    expected = [r if r["s"] != 4 else {**r, "v": None} for r in left]
    assert java.read(directory) == canonical(expected) == read_rows(directory)


TREE = {"bucket": "2", "deletion-vectors.enabled": "true", "compaction.max-size-amplification-percent": "100000"}
TREES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "64 bit": {"deletion-vectors.bitmap64": "true", "file.format": "orc"},
    "lookup": {"changelog-producer": "lookup"},
    "input": {"changelog-producer": "input", "file.format": "avro"},
    "sequence": {"sequence.field": "s"},
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.s.aggregate-function": "sum",
        "fields.v.aggregate-function": "last_value",
        "changelog-producer": "lookup",
    },
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
}


@pytest.mark.parametrize(
    ("case", "steps"), mark_lengths(TREES, ["deduplicate", "lookup", "partial-update"], short=8, full=10)
)
def test_both_compact_one_tree(java: JavaPaimon, tmp_path: Path, case: str, steps: int) -> None:
    options = {**TREE, "write-only": "true", **TREES[case]}
    table, directory = create_shared_table(tmp_path, primary_keys=["p", "id"], partition_keys=["p"], options=options)
    chance = random.Random(case)
    kinds = ["+I"] if case == "aggregation" else ["+I", "+U", "-D"]
    expected_rows: dict[tuple[str, int], dict[str, Any]] = {}
    marked: set[bool] = set()
    for step in range(1, steps + 1):
        wrote = [
            {"id": chance.randrange(40), "p": chance.choice("ab"), "s": step, "v": f"{step}-{i}"}
            for i in range(60 if step < 3 else 6)
        ]
        row_kinds = chance.choices(kinds, [4, 2, 2][: len(kinds)], k=len(wrote))
        for row, kind in zip(wrote, row_kinds, strict=True):
            key = row["p"], row["id"]
            before = expected_rows.pop(key, None)
            if kind != "-D":
                summed = row["s"] + before["s"] if before and case == "aggregation" else row["s"]
                expected_rows[key] = {**row, "s": summed}
        if step % 3:
            table.write([{**row, "op": kind} for row, kind in zip(wrote, row_kinds, strict=True)], kind_column="op")
            table.compact(full=step == 8)
        else:
            lines = [{**row, "_ROW_KIND": kind} for row, kind in zip(wrote, row_kinds, strict=True)]
            java.write(directory, lines, identifier=step, options={"write-only": "false"})
        expected = canonical(expected_rows.values())
        assert read_rows(directory) == expected, f"ours after step {step}"
        assert java.read(directory) == expected, f"Java after step {step}"
        entries = table.system_table("table_indexes").scan().to_arrow().to_pylist()
        if any(entry["dv_ranges"] for entry in entries):
            marked.add(step % 3 == 0)
    assert marked == {True, False}, "both marked rows"
