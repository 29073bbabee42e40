"""Alternating rescales: Java reads, writes and compacts what we rescaled, and we continue after Java rescaled."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_lengths
from support.java_paimon import JavaPaimon, canonical

import paimon
from paimon.operations.commit.base import CommitBase

pytestmark = pytest.mark.interop

FIELDS = {"k": "INT NOT NULL", "p": "STRING NOT NULL", "s": "INT", "v": "STRING"}
KEYED = {"primary_keys": ["p", "k"], "partition_keys": ["p"]}
APPEND = {"partition_keys": ["p"]}
CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "defaults": (KEYED, {}),
    "deletion vectors": (KEYED, {"deletion-vectors.enabled": "true"}),
    "lookup, partial update": (KEYED, {"merge-engine": "partial-update", "changelog-producer": "lookup"}),
    "aggregation": (KEYED, {"merge-engine": "aggregation", "fields.s.aggregate-function": "sum", "file.format": "orc"}),
    "first row": (KEYED, {"merge-engine": "first-row"}),
    "mod": (KEYED, {"bucket-function.type": "mod", "bucket-key": "k"}),
    "hive": (KEYED, {"bucket-function.type": "hive", "file.format": "avro"}),
    "append": (APPEND, {"bucket-key": "k"}),
    "unordered append": (APPEND, {"bucket-key": "k", "bucket-append-ordered": "false"}),
}
REFUSED_BY_JAVA = {"unordered append"}
"""Java reads the previous files of these tables also for an overwrite, and refuses another number of buckets."""
COUNTS = [(3, 2), (1, 4), (5, 3), (6, 2), (2, 7)]
"""For each round, the number of buckets after our rescale, and after Java's."""


def reopen(directory: Path) -> paimon.Table:
    table = paimon.open_table(directory)
    assert isinstance(table, paimon.Table)
    return table


def list_totals(table: paimon.Table) -> set[int]:
    return {e.total_buckets for e in CommitBase(table.context, table.snapshot()).read_live_files(lambda _: True)}


def draw_rows(chance: random.Random, step: int) -> list[dict[str, Any]]:
    return [{"k": chance.randrange(60), "p": chance.choice("ab"), "s": step, "v": "x" * step} for _ in range(25)]


@pytest.mark.parametrize(
    ("case", "rounds"),
    mark_lengths(CASES, always=["deletion vectors", "hive"], short=2, full=len(COUNTS)),
)
def test_each_side_continues_after_a_rescale_of_the_other(
    java: JavaPaimon, tmp_path: Path, case: str, rounds: int
) -> None:
    keys, options = CASES[case]
    directory, chance = tmp_path / "t", random.Random(case)
    java.create(directory, FIELDS, options={"bucket": "2"} | options, **keys)
    for number, (ours, theirs) in enumerate(COUNTS[:rounds]):
        java.write(directory, draw_rows(chance, 4 * number + 1), identifier=4 * number + 1)
        before = java.read(directory)
        reopen(directory).rescale(ours)
        assert list_totals(reopen(directory)) == {ours}
        assert java.read(directory) == before == canonical(reopen(directory).scan().to_arrow().to_pylist())
        java.write(directory, draw_rows(chance, 4 * number + 2), identifier=4 * number + 2)
        reopen(directory).write(draw_rows(chance, 4 * number + 3))
        reopen(directory).compact(full=number % 2 == 0)
        java.write(directory, [], compact=True, identifier=4 * number + 3)
        rows = java.read(directory)
        assert canonical(reopen(directory).scan().to_arrow().to_pylist()) == rows
        reopen(directory).alter(f"SET ('bucket' = '{theirs}')")
        if case in REFUSED_BY_JAVA:
            with pytest.raises(Exception, match=f"new bucket num {theirs}"):
                java.write(directory, rows, overwrite={}, identifier=4 * number + 4)
            reopen(directory).rescale(theirs)
        else:
            java.write(directory, rows, overwrite={}, identifier=4 * number + 4)
        assert list_totals(reopen(directory)) == {theirs}
        assert canonical(reopen(directory).scan().to_arrow().to_pylist()) == java.read(directory) == rows
    report = reopen(directory).maintain.check(deep=True)
    assert report.is_whole, str(report)


def test_java_prunes_buckets_by_the_number_of_each_partition(java: JavaPaimon, tmp_path: Path) -> None:
    directory = tmp_path / "t"
    java.create(directory, FIELDS, options={"bucket": "2"}, **KEYED)
    java.write(directory, [{"k": k, "p": p, "s": 1, "v": "x"} for k in range(30) for p in "ab"])
    before = java.read(directory)
    reopen(directory).rescale(5, where="p = 'a'")
    assert java.read(directory) == before
    assert list_totals(reopen(directory)) == {2, 5}
    with pytest.raises(Exception, match="new bucket num 5"):
        # Java checks only buckets that have files, so some row must be in one of them.
        java.write(directory, [{"k": k, "p": "b", "s": 2, "v": "y"} for k in range(30)], identifier=2)
    java.write(directory, [{"k": 1, "p": "a", "s": 2, "v": "y"}], identifier=3)
    assert reopen(directory).scan(where="p = 'a' and k = 1").to_arrow()["v"].to_pylist() == ["y"]
