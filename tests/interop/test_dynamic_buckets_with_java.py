"""Dynamic buckets: Java and we write one table alternately, and agree on the bucket of every key."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.case_lists import mark_nightly
from support.golden_tables import golden_directory
from support.java_paimon import JavaPaimon

import paimon
from paimon.domain.bucket.hash_index import decode_hash_index

pytestmark = pytest.mark.interop

COLUMNS = "p STRING NOT NULL, k BIGINT NOT NULL, name STRING NOT NULL, v INT"
OPTIONS = {"dynamic-bucket.target-row-num": "15", "num-sorted-run.compaction-trigger": "3"}
STEPS = 5


def rows(step: int, count: int = 40) -> list[dict[str, Any]]:
    """Rows of two partitions; half of the keys were written in the step before."""
    keys = range(step * count // 2, step * count // 2 + count)
    return [{"p": "ab"[k % 2], "k": k, "name": f"name {k}", "v": step} for k in keys]


def hashes(table: paimon.Table) -> dict[tuple[str, int], list[int]]:
    """The hashes of each bucket, from the files that the index manifest names."""
    found: dict[tuple[str, int], list[int]] = {}
    for row in table.system_table("table_indexes").scan().to_arrow().to_pylist():
        data = Path(table.location, "index", row["file_name"]).read_bytes()
        assert len(data) == row["file_size"] == 4 * row["row_count"]
        found[row["partition"].strip("{}"), row["bucket"]] = sorted(decode_hash_index(data, "index").tolist())
    return found


def make(directory: Path, options: Mapping[str, str] = OPTIONS) -> paimon.Table:
    catalog = paimon.connect(directory)
    catalog.create_database("d", exist_ok=True)
    return catalog.create_table(
        "d.t", COLUMNS, primary_keys=["p", "k", "name"], partition_keys=["p"], options=dict(options)
    )


def write(table: paimon.Table, given: list[dict[str, Any]], kind: str | None = None) -> None:
    schema = pa.schema([("p", pa.string()), ("k", pa.int64()), ("name", pa.string()), ("v", pa.int32())])
    data = pa.Table.from_pylist(given, schema)
    table.write(data if kind is None else data.append_column("op", pa.array([kind] * len(given))),
                kind_column=kind and "op")  # fmt: skip


def state(given: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((row["p"], row["k"], row["name"], row["v"]) for row in given)


@pytest.mark.parametrize("begins", mark_nightly(["java", "we"], always=["java"]))
def test_both_sides_write_in_turns(java: JavaPaimon, tmp_path: Path, begins: str) -> None:
    table = make(tmp_path)
    directory = Path(table.location)
    expected: dict[tuple[str, int], dict[str, Any]] = {}
    for step in range(2 * STEPS):
        given = rows(step)
        expected |= {(row["p"], row["k"]): row for row in given}
        if (step % 2 == 0) == (begins == "java"):
            java.write(directory, given, identifier=step + 1)
        else:
            write(table, given)
        if step % 3 == 2:
            table.compact(full=step % 2 == 0)
        assert state(java.read(directory)) == state(table.scan().to_arrow().to_pylist()) == state([*expected.values()])
    found = hashes(table)
    for partition in "ab":
        of_partition = [h for (p, _), bucket_hashes in found.items() if p == partition for h in bucket_hashes]
        assert len(of_partition) == len(set(of_partition)) == sum(p == partition for p, _ in expected)
        assert all(
            len(bucket_hashes) == 15 for (p, bucket), bucket_hashes in found.items() if p == partition and bucket < 6
        )


def test_index_files_equal_javas(java: JavaPaimon, tmp_path: Path) -> None:
    ours, theirs = make(tmp_path / "ours"), make(tmp_path / "theirs")
    for step in range(4):
        write(ours, rows(step))
        java.write(Path(theirs.location), rows(step), identifier=step + 1)
        assert hashes(ours) == hashes(theirs)


@pytest.mark.parametrize("options",
    mark_nightly([{"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    {"merge-engine": "partial-update"}, {"merge-engine": "first-row"}, {"deletion-vectors.enabled": "true"},
    {"changelog-producer": "lookup"}, {"changelog-producer": "input"}, {"index-file-in-data-file-dir": "true"}],
    always=[{"merge-engine": "partial-update"}, {"deletion-vectors.enabled": "true"},
    {"changelog-producer": "lookup"}]))  # fmt: skip
def test_merge_options_have_the_same_effect(java: JavaPaimon, tmp_path: Path, options: dict[str, str]) -> None:
    table = make(tmp_path, OPTIONS | options)
    directory = Path(table.location)
    for step in range(4):
        if step % 2:
            java.write(directory, rows(step), identifier=step)
        else:
            write(table, rows(step))
        assert state(java.read(directory)) == state(table.scan().to_arrow().to_pylist())
    table.compact(full=True)
    assert state(java.read(directory)) == state(table.scan().to_arrow().to_pylist())


def test_an_overwrite_and_deletes_are_continued(java: JavaPaimon, tmp_path: Path) -> None:
    table = make(tmp_path)
    directory = Path(table.location)
    write(table, rows(0))
    java.write(directory, [row | {"p": "a"} for row in rows(1)], identifier=1, overwrite={"p": "a"})
    write(table, rows(2))
    table.delete("k < 30")
    table.overwrite(pa.Table.from_pylist([{"p": "b", "k": 1, "name": "new", "v": 9}]))
    java.write(directory, rows(0), identifier=2)
    expected = state(table.scan().to_arrow().to_pylist())
    assert expected == state(java.read(directory)) and ("b", 1, "new", 9) in expected
    for partition in "ab":
        of_partition = [h for (p, _), bucket_hashes in hashes(table).items() if p == partition for h in bucket_hashes]
        assert len(of_partition) == len(set(of_partition))


@pytest.mark.parametrize("case", ["v07_dynamic", "v09_dynamic"])
def test_tables_of_earlier_releases_are_continued(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    """Old keys keep their bucket, and new keys get the next one, also if another client writes them."""
    directory = tmp_path / "t"
    shutil.copytree(golden_directory() / case / "table", directory)
    table = paimon.open_table(directory)
    rows_by_key = {(row["p"], row["k"]): row for row in table.scan().to_arrow().to_pylist()}
    assert len(rows_by_key) == len(java.read(directory))
    for turn in range(4):
        given = [row | {"s": f"turn {turn}"} for row in list(rows_by_key.values())[turn::5]]
        given += [{"p": k % 2, "k": 1_000 * (turn + 1) + k, "s": "new"} for k in range(15)]
        rows_by_key |= {(row["p"], row["k"]): row for row in given}
        if turn % 2:
            java.write(directory, given, identifier=turn)
        else:
            schema = pa.schema([("p", pa.int32()), ("k", pa.int32()), ("s", pa.string())])
            table.write(pa.Table.from_pylist(given, schema))
        found = table.scan().to_arrow().to_pylist()
        assert {(row["p"], row["k"]): row for row in found} == rows_by_key
        assert sorted(map(str, java.read(directory))) == sorted(map(str, found))
    table.compact(full=True)
    assert sorted(map(str, java.read(directory))) == sorted(map(str, table.scan().to_arrow().to_pylist()))
    for partition in {p for p, _ in hashes(table)}:
        of_partition = [h for (p, _), bucket_hashes in hashes(table).items() if p == partition for h in bucket_hashes]
        assert len(of_partition) == len(set(of_partition))
    assert table.maintain.check(deep=True).faults == ()
