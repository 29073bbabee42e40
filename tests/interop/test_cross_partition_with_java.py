"""Cross-partition tables that Java and this library write alternately: both return the rows of one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_lengths, mark_nightly
from support.java_paimon import JavaPaimon, canonical

import paimon

ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {},
    "aggregation": {"fields.v.aggregate-function": "sum"},
    "first-row": {},
}
Row = dict[str, Any]


def batch(step: int) -> list[Row]:
    return [{"p": "abc"[(k + step * (1 + k % 2)) % 3], "k": k, "v": step * 100 + k} for k in range(step, step + 12)]


def apply(
    model: dict[Any, Row], rows: list[Row], engine: str, keys: tuple[str, ...] = ("k",), moves: str = "p"
) -> None:
    for row in rows:
        key = tuple(row[name] for name in keys)
        old = model.get(key)
        if old is None or engine == "deduplicate":
            model[key] = row
        elif engine == "partial-update":
            model[key] = {**row, moves: old[moves]}
        elif engine == "aggregation":
            model[key] = {**old, "v": old["v"] + row["v"]}


@pytest.mark.parametrize(
    ("engine", "steps"), mark_lengths(ENGINES, always=["deduplicate", "partial-update"], short=5, full=10)
)
def test_java_and_we_write_in_turns(java: JavaPaimon, tmp_path: Path, engine: str, steps: int) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    options = {"merge-engine": engine, "dynamic-bucket.target-row-num": "5", **ENGINES[engine]}
    columns = "p STRING, k INT NOT NULL, v INT"
    table = catalog.create_table("d.t", columns, primary_keys=["k"], partition_keys=["p"], options=options)
    directory = tmp_path / "d.db" / "t"
    model: dict[Any, Row] = {}
    for step in range(steps):
        rows = batch(step)
        if step % 2:
            java.write(directory, rows, identifier=step, compact=step % 4 == 1)
        else:
            table.write(rows)
            if step % 4 == 2:
                table.compact(full=True)
        apply(model, rows, engine)
        expected = canonical(list(model.values()))
        assert java.read(directory) == canonical(table.scan().to_arrow().to_pylist()) == expected, f"step {step}"


def batch_of_two_columns(step: int) -> list[Row]:
    """Rows of 12 partitions; some keys occur in several of them, also within the batch."""
    ks = range(step, step + 12)
    return [{"c": "xyz"[(k + step * (1 + k % 2)) % 3], "a": k % 4, "v": step * 100 + k, "b": k // 8} for k in ks]


@pytest.mark.parametrize(
    ("engine", "creator"),
    mark_nightly(
        [("deduplicate", "java"), ("partial-update", "we"), ("aggregation", "java"), ("first-row", "we")],
        always=["aggregation", "first-row"],
    ),
)
def test_key_with_one_of_two_partition_columns(java: JavaPaimon, tmp_path: Path, engine: str, creator: str) -> None:
    """The key (a, b) of the partitions (a, c) moves between the partitions of its a."""
    table = create_table_of_two_columns(java, tmp_path, "t", engine, creator)
    model: dict[Any, Row] = {}
    for step in range(6):
        rows = batch_of_two_columns(step)
        if step % 2:
            java.write(tmp_path / "d.db" / "t", rows, identifier=step, compact=step % 4 == 1)
        else:
            table.write(rows)
            if step % 4 == 2:
                table.compact(full=True)
        apply(model, rows, engine, ("a", "b"), "c")
        expected = canonical(list(model.values()))
        read, ours = java.read(tmp_path / "d.db" / "t"), canonical(table.scan().to_arrow().to_pylist())
        assert read == ours == expected, f"step {step}"


def test_java_and_we_choose_the_same_buckets_and_write_the_same_deletes(java: JavaPaimon, tmp_path: Path) -> None:
    tables = [create_table_of_two_columns(java, tmp_path, name, "deduplicate", "java") for name in ("java", "ours")]
    first = [
        {"c": "x", "a": 9, "v": 0, "b": 0}
    ]  # a batch for an empty table is reduced first; the driver of Java's is not
    for step, rows in enumerate([first, *map(batch_of_two_columns, range(3))]):
        java.write(tmp_path / "d.db" / "java", rows, identifier=step, options={"write-only": "true"})
        tables[1].with_options({"write-only": "true"}).write(rows)
        counts = [canonical(read_buckets(tmp_path, table.name)) for table in tables]
        assert counts[0] == counts[1], f"step {step}"


def read_buckets(warehouse: Path, name: str) -> list[Row]:
    """The partition, bucket and number of stored rows, -D rows included."""
    buckets = paimon.connect(warehouse).table(f"{name}$buckets").scan().to_arrow()
    return [dict(row) for row in buckets.select(["partition", "bucket", "record_count"]).to_pylist()]


def create_table_of_two_columns(java: JavaPaimon, warehouse: Path, name: str, engine: str, creator: str) -> Any:
    catalog = paimon.connect(warehouse)
    if "d" not in catalog.list_databases():
        catalog.create_database("d")
    options = {"bucket": "-1", "merge-engine": engine, "dynamic-bucket.target-row-num": "2", **ENGINES[engine]}
    keys, partitions = ["a", "b"], ["a", "c"]
    if creator == "java":
        fields = {"c": "STRING", "a": "INT NOT NULL", "v": "INT", "b": "INT NOT NULL"}
        directory = warehouse / "d.db" / name
        java.create(directory, fields, primary_keys=keys, partition_keys=partitions, options=options)
    else:
        columns = "c STRING, a INT NOT NULL, v INT, b INT NOT NULL"
        catalog.create_table(f"d.{name}", columns, primary_keys=keys, partition_keys=partitions, options=options)
    return catalog.table(f"d.{name}")
