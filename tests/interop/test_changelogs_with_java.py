"""Changelogs that compactions make: Java reads ours, tells the same of the same writes, and compacts on."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from java_paimon import JavaPaimon, canonical

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
        "file.format": "orc", "changelog-file.format": "avro", "changelog-file.prefix": "told-",
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


def created(home: Path, case: str) -> tuple[paimon.Table, Path]:
    catalog = paimon.connect(home)
    catalog.create_database("db")
    options = {"bucket": "2", "write-only": "true", **CASES[case]}
    table = catalog.create_table("db.t", DDL, primary_keys=["p", "id"], partition_keys=["p"], options=options)
    return table, Path(table.location)


def drawn(chance: random.Random, turn: int, case: str) -> list[dict[str, Any]]:
    removes = CASES[case].get("merge-engine", "deduplicate") == "deduplicate"
    kinds = ["+I", "+I", "+U", "-D"] if removes else ["+I"]
    # Java tells of a moved file what merging would make of it: nothing, of a lone record without a sequence.
    sequences = [1, 2, 3] if "fields.s.sequence-group" in CASES[case] else [None, 1, 2, 3]
    return [
        {"id": chance.randrange(25), "p": chance.choice("ab"), "s": chance.choice(sequences),
         "v": f"{turn}" * 3, "n": chance.randrange(3), "_ROW_KIND": chance.choice(kinds)}
        for _ in range(15)
    ]  # fmt: skip


def by_us(table: paimon.Table, rows: list[dict[str, Any]], full: bool) -> None:
    table.write(rows, kind_column="_ROW_KIND")
    table.compact(full=full)


def by_java(java: JavaPaimon, directory: Path, rows: list[dict[str, Any]], turn: int, full: bool) -> None:
    java.write(directory, rows, identifier=turn, options={} if full else {"write-only": "false"})
    if full:
        java.write(directory, [], identifier=100 + turn, compact=True, options={"write-only": "false"})


def latest(directory: Path) -> paimon.Table:
    table = paimon.open_table(directory)
    assert isinstance(table, paimon.Table)
    return table


def ours(directory: Path) -> list[Any]:
    return list(canonical(latest(directory).scan().to_arrow().to_pylist()))


def told_to_java(java: JavaPaimon, directory: Path, after: int, through: int) -> list[Any]:
    between = {"incremental-between": f"{after},{through}", "incremental-between-scan-mode": "changelog"}
    return list(java.read(directory, kinds=True, options=between))


def told_to_us(directory: Path, after: int, through: int) -> list[Any]:
    rows = latest(directory).changes(after=after, through=through).to_arrow().to_pylist()
    told = ({"_ROW_KIND": r["_row_kind"]} | {k: v for k, v in r.items() if k[0] != "_"} for r in rows)
    return list(canonical(told))


def newest(directory: Path) -> int:
    snapshot = latest(directory).snapshot()
    return 0 if snapshot is None else snapshot.id


def known(rows: list[Any], case: str) -> set[str]:
    """Rows as those see them who follow the changes."""
    ignored = CASES[case].get("changelog-producer.row-deduplicate-ignore-fields", "")
    return {json.dumps({k: v for k, v in sorted(row.items()) if k not in ("_ROW_KIND", ignored)}) for row in rows}


def applied(state: set[str], changes: list[Any], case: str) -> set[str]:
    """The state after changes of one commit: what is taken away, then what comes."""
    gone = known([c for c in changes if c["_ROW_KIND"] in ("-U", "-D")], case)
    assert gone <= state
    return state - gone | known([c for c in changes if c["_ROW_KIND"] not in ("-U", "-D")], case)


@pytest.mark.parametrize("case", CASES)
def test_the_same_writes_tell_the_same(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    """One table is written and compacted by us, one by Java; each side reads both."""
    full = "full-compaction" in CASES[case].values()
    (table, mine), (_, theirs) = created(tmp_path / "a", case), created(tmp_path / "b", case)
    chance = random.Random(case)
    state: set[str] = set()
    for turn in range(1, 6):
        rows = drawn(chance, turn, case)
        before, before_java = newest(mine), newest(theirs)
        by_us(table, rows, full)
        by_java(java, theirs, rows, turn, full)
        expected = java.read(theirs)
        assert java.read(mine) == expected == ours(mine) == ours(theirs)
        if "changelog-producer" not in CASES[case]:
            continue
        told = told_to_java(java, theirs, before_java, newest(theirs))
        assert told_to_us(mine, before, newest(mine)) == told
        assert told_to_java(java, mine, before, newest(mine)) == told
        assert told_to_us(theirs, before_java, newest(theirs)) == told
        state = applied(state, told, case)
        assert state == known(expected, case)


IN_TURNS = ["lookup", "lookup by sequence", "lookup of sums", "lookup of large files", "first-row", "forced lookups",
            "full", "full of groups"]  # fmt: skip


@pytest.mark.parametrize("case", IN_TURNS)
def test_both_compact_one_table_in_turns(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    full = "full-compaction" in CASES[case].values()
    table, directory = created(tmp_path, case)
    chance = random.Random(f"{case} in turns")
    state: set[str] = set()
    for turn in range(1, 7):
        before = newest(directory)
        rows = drawn(chance, turn, case)
        if turn % 2:
            by_us(table, rows, full or turn == 3)
        else:
            by_java(java, directory, rows, turn, full or turn == 4)
        assert java.read(directory) == ours(directory)
        if "changelog-producer" in CASES[case]:
            told = told_to_java(java, directory, before, newest(directory))
            assert told_to_us(directory, before, newest(directory)) == told
            state = applied(state, told, case)
            assert state == known(ours(directory), case), turn
