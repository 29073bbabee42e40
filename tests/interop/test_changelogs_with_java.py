"""Changelogs of compactions: Java reads ours, returns the same changes for the same writes, and compacts further."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_lengths
from support.java_paimon import JavaPaimon, canonical

import paimon

pytestmark = pytest.mark.interop

DDL = "id BIGINT NOT NULL, p STRING NOT NULL, s INT, v STRING, n INT"
FULL = {"changelog-producer": "full-compaction"}
LOOKUP = {"changelog-producer": "lookup"}
SMALL = {"num-sorted-run.compaction-trigger": "3", "compaction.max-size-amplification-percent": "9999"}
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.v.aggregate-function": "listagg",
       "fields.s.aggregate-function": "max"}  # fmt: skip
GROUP = {"merge-engine": "partial-update", "fields.s.sequence-group": "v,n", "fields.n.aggregate-function": "sum"}
CASES: dict[str, dict[str, str]] = {
    "lookup": LOOKUP | SMALL,
    "lookup of equal rows": LOOKUP | {
        "changelog-producer.row-deduplicate": "true", "changelog-producer.row-deduplicate-ignore-fields": "v",
        "file.format": "orc", "changelog-file.format": "avro", "changelog-file.prefix": "changes-",
    },
    "lookup by sequence": LOOKUP | SMALL | {"sequence.field": "s", "file.format": "avro"},
    "lookup of sums": LOOKUP | SMALL | SUM,
    "lookup of groups": LOOKUP | SMALL | GROUP,
    "lookup of large files": LOOKUP | SMALL | {"target-file-size": "1 b", "file.format.per.level": "0:avro"},
    "first-row": LOOKUP | SMALL | {"merge-engine": "first-row"},
    "first-row without changes": SMALL | {"merge-engine": "first-row"},
    "forced lookups": SMALL | SUM | {"force-lookup": "true"},
    "full": FULL | SMALL,
    "full of equal rows": FULL | SMALL | {"changelog-producer.row-deduplicate": "true"},
    "full of sums": FULL | SUM | {"target-file-size": "1 kb"},
    "full of groups": FULL | SMALL | GROUP,
}  # fmt: skip


def create_tables(home: Path, case: str) -> tuple[paimon.Table, Path]:
    catalog = paimon.connect(home)
    catalog.create_database("db")
    options = {"bucket": "2", "write-only": "true", **CASES[case]}
    table = catalog.create_table("db.t", DDL, primary_keys=["p", "id"], partition_keys=["p"], options=options)
    return table, Path(table.location)


def draw_changes(chance: random.Random, step: int, case: str) -> list[dict[str, Any]]:
    removes = CASES[case].get("merge-engine", "deduplicate") == "deduplicate"
    kinds = ["+I", "+I", "+U", "-D"] if removes else ["+I"]
    # For a moved file, Java's changelog has the result of a merge: none for a single record without a sequence.
    sequences = [1, 2, 3] if "fields.s.sequence-group" in CASES[case] else [None, 1, 2, 3]
    return [
        {"id": chance.randrange(25), "p": chance.choice("ab"), "s": chance.choice(sequences),
         "v": f"{step}" * 3, "n": chance.randrange(3), "_ROW_KIND": chance.choice(kinds)}
        for _ in range(15)
    ]  # fmt: skip


def by_us(table: paimon.Table, rows: list[dict[str, Any]], full: bool) -> None:
    table.write(rows, kind_column="_ROW_KIND")
    table.compact(full=full)


def by_java(java: JavaPaimon, directory: Path, rows: list[dict[str, Any]], step: int, full: bool) -> None:
    java.write(directory, rows, identifier=step, options={} if full else {"write-only": "false"})
    if full:
        java.write(directory, [], identifier=100 + step, compact=True, options={"write-only": "false"})


def latest(directory: Path) -> paimon.Table:
    table = paimon.open_table(directory)
    assert isinstance(table, paimon.Table)
    return table


def ours(directory: Path) -> list[Any]:
    return list(canonical(latest(directory).scan().to_arrow().to_pylist()))


def read_changes_by_java(java: JavaPaimon, directory: Path, after: int, through: int) -> list[Any]:
    between = {"incremental-between": f"{after},{through}", "incremental-between-scan-mode": "changelog"}
    return list(java.read(directory, kinds=True, options=between))


def read_our_changes(directory: Path, after: int, through: int) -> list[Any]:
    rows = latest(directory).changes(after=after, through=through).to_arrow().to_pylist()
    changes_found = ({"_ROW_KIND": r["_row_kind"]} | {k: v for k, v in r.items() if k[0] != "_"} for r in rows)
    return list(canonical(changes_found))


def newest(directory: Path) -> int:
    snapshot = latest(directory).snapshot()
    return 0 if snapshot is None else snapshot.id


def to_visible_rows(rows: list[Any], case: str) -> set[str]:
    """The rows that a reader of the changelog has."""
    ignored = CASES[case].get("changelog-producer.row-deduplicate-ignore-fields", "")
    return {json.dumps({k: v for k, v in sorted(row.items()) if k not in ("_ROW_KIND", ignored)}) for row in rows}


def apply_changes(state: set[str], changes: list[Any], case: str) -> set[str]:
    """Apply the changes of one commit to the state: retractions first, then additions."""
    gone = to_visible_rows([c for c in changes if c["_ROW_KIND"] in ("-U", "-D")], case)
    assert gone <= state
    return state - gone | to_visible_rows([c for c in changes if c["_ROW_KIND"] not in ("-U", "-D")], case)


@pytest.mark.parametrize(
    ("case", "steps"), mark_lengths(CASES, ["lookup", "first-row", "full of groups"], short=3, full=5)
)
def test_the_same_writes_lead_to_the_same_changelog(java: JavaPaimon, tmp_path: Path, case: str, steps: int) -> None:
    """One table is written and compacted by us, one by Java; each side reads both."""
    full = "full-compaction" in CASES[case].values()
    (table, mine), (_, theirs) = create_tables(tmp_path / "a", case), create_tables(tmp_path / "b", case)
    chance = random.Random(case)
    state: set[str] = set()
    for step in range(1, steps + 1):
        rows = draw_changes(chance, step, case)
        before, before_java = newest(mine), newest(theirs)
        by_us(table, rows, full)
        by_java(java, theirs, rows, step, full)
        expected = java.read(theirs)
        assert java.read(mine) == expected == ours(mine) == ours(theirs)
        if "changelog-producer" not in CASES[case]:
            continue
        changes_found = read_changes_by_java(java, theirs, before_java, newest(theirs))
        assert read_our_changes(mine, before, newest(mine)) == changes_found
        assert read_changes_by_java(java, mine, before, newest(mine)) == changes_found
        assert read_our_changes(theirs, before_java, newest(theirs)) == changes_found
        state = apply_changes(state, changes_found, case)
        assert state == to_visible_rows(expected, case)


ALTERNATING = ["lookup", "lookup by sequence", "lookup of sums", "lookup of large files", "first-row", "forced lookups",
            "full", "full of groups"]  # fmt: skip


@pytest.mark.parametrize(("case", "steps"), mark_lengths(ALTERNATING, ["lookup of sums", "full"], short=4, full=6))
def test_both_compact_one_table_alternately(java: JavaPaimon, tmp_path: Path, case: str, steps: int) -> None:
    full = "full-compaction" in CASES[case].values()
    table, directory = create_tables(tmp_path, case)
    chance = random.Random(f"{case} in turns")
    state: set[str] = set()
    for step in range(1, steps + 1):
        before = newest(directory)
        rows = draw_changes(chance, step, case)
        if step % 2:
            by_us(table, rows, full or step == 3)
        else:
            by_java(java, directory, rows, step, full or step == 4)
        assert java.read(directory) == ours(directory)
        if "changelog-producer" in CASES[case]:
            changes_found = read_changes_by_java(java, directory, before, newest(directory))
            assert read_our_changes(directory, before, newest(directory)) == changes_found
            state = apply_changes(state, changes_found, case)
            assert state == to_visible_rows(ours(directory), case), step
