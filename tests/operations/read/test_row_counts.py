"""Row counts from metadata, where they are known, and what a plan counts at each step."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import paimon
from paimon.operations.read.plan import count_rows_from_metadata


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    made = paimon.connect(tmp_path)
    made.create_database("db")
    return made


def count_known_rows(table: paimon.Table) -> int | None:
    return count_rows_from_metadata(table.context, table.snapshot())


def rows(ids: Iterable[int], **more: Any) -> list[dict[str, Any]]:
    return [{"id": i, **more} for i in ids]


def test_an_append_table_knows_its_rows(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", "id INT, day STRING", partition_keys=["day"])
    assert count_known_rows(table) is None, "there is no snapshot"
    table.write(rows(range(5), day="mon"))
    table.write(rows(range(3), day="tue"))
    assert count_known_rows(table) == table.scan().count() == 8
    table.delete("id = 1")
    assert count_known_rows(table) == table.scan().count() == 6


def test_deleted_rows_are_subtracted(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", "id INT", options={"deletion-vectors.enabled": True})
    table.write(rows(range(5)))
    table.delete("id < 2")
    assert count_known_rows(table) == table.scan().count() == 3


def test_a_primary_key_table_has_a_row_count_if_no_files_overlap(catalog: paimon.Catalog) -> None:
    options = {"bucket": 1, "write-only": True}
    table = catalog.create_table("db.t", "id INT NOT NULL", primary_keys=["id"], options=options)
    table.write(rows(range(5)))
    assert count_known_rows(table) == 5
    table.write(rows(range(3)))
    assert count_known_rows(table) is None
    table.with_options({"write-only": False}).compact(full=True)
    assert count_known_rows(table) == table.scan().count() == 5
    table.write([{"id": 9, "op": "-D"}], kind_column="op")
    assert count_known_rows(table) is None, "a file holds a delete"


def test_a_primary_key_table_with_deletion_vectors(catalog: paimon.Catalog) -> None:
    options = {"bucket": 1, "deletion-vectors.enabled": True}
    table = catalog.create_table("db.t", "id INT NOT NULL, v INT", primary_keys=["id"], options=options)
    for version in range(3):
        table.write(rows(range(version, 5), v=version))
    assert count_known_rows(table) == table.scan().count() == 5


def test_data_evolution_rows_are_counted_once(catalog: paimon.Catalog) -> None:
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True}
    table = catalog.create_table("db.t", "id INT, v INT", options=options)
    table.write(rows(range(4), v=1))
    counted = count_known_rows(table)
    assert counted in (None, 4)
    assert table.scan().count() == 4


def test_rows_of_a_fallback_branch_count(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", "id INT, day STRING", partition_keys=["day"])
    table.branches.create("stream")
    catalog.table("db.t$branch_stream").write(rows(range(3), day="old"))
    table.write(rows(range(2), day="new"))
    both = table.with_options({"scan.fallback-branch": "stream"})
    assert count_known_rows(both) == both.scan().count() == 5


def test_a_plan_counts_partitions_buckets_and_files_not_entries(catalog: paimon.Catalog) -> None:
    table = catalog.create_table(
        "db.t", "id INT NOT NULL, day STRING NOT NULL", partition_keys=["day"], primary_keys=["id", "day"],
        options={"bucket": 4, "write-only": True},
    )  # fmt: skip
    for _ in range(3):
        table.write([row for day in ("mon", "tue", "wed") for row in rows(range(20), day=day)])
    table.with_options({"write-only": False}).compact(full=True)
    plan = table.scan(where="day = 'mon' AND id = 1").plan()
    steps = {step.name: (step.before, step.after) for step in plan.steps}
    assert steps["partitions"] == (3, 1)
    assert steps["buckets"] == (4, 1)
    assert steps["live files"] == (4, 1), "three files that were added to the bucket were compacted into one"
    sizes = {step.name: step.size_bytes for step in plan.steps}
    assert sizes["live files"] == sizes["buckets"] == plan.size_bytes
    text = table.scan(where="day = 'mon'").explain()
    assert "partitions: 3 -> 1" in text
    assert "80 stored records" not in text
    assert "20 stored records" in text


def test_a_partition_without_files_is_not_counted(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", "id INT, day STRING", partition_keys=["day"])
    table.write([row for day in ("mon", "tue") for row in rows(range(2), day=day)])
    table.delete("day = 'tue' OR id = 0")
    plan = table.scan(where="day = 'mon'").plan()
    steps = {step.name: (step.before, step.after, step.size_bytes) for step in plan.steps}
    assert steps["partitions"] == (1, 1, plan.size_bytes)
    assert steps["live files"] == (2, 1, plan.size_bytes)
