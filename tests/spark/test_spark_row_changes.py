"""UPDATE and DELETE on Spark equal the embedded methods, and their rows stay in the tasks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from support.case_lists import mark_nightly
from support.row_level_layouts import LAYOUTS, SMALL_SPLITS

import paimon
import paimon.spark
from paimon.domain.errors import CommitConflict, InvalidRequest, StorageError, Unsupported
from paimon.operations.data_files import read_data_file
from paimon.operations.row_level import delete_update
from paimon.operations.write.writer import TableWriter
from paimon.table import Table

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT NOT NULL, day INT NOT NULL, v INT, s STRING, at TIMESTAMP(9)"


def make(place: Path, layout: str, name: str = "t") -> Table:
    catalog = paimon.connect(str(place))
    catalog.create_database("d", exist_ok=True)
    chosen = LAYOUTS[layout]
    options = {**SMALL_SPLITS, **chosen.get("options", {})}
    table = catalog.create_table(f"d.{name}", SCHEMA, **{**chosen, "options": options})
    for start in (0, 10):
        table.write(make_rows(range(start, start + 10)))
    return table


def make_rows(ids: range) -> pa.Table:
    columns = {
        "id": pa.array(ids, pa.int64()),
        "day": pa.array([i % 2 for i in ids], pa.int32()),
        "v": pa.array([i % 5 for i in ids], pa.int32()),
        "s": pa.array([None if i % 4 == 0 else f"s{i}" for i in ids], pa.string()),
        "at": pa.array([1_700_000_000_123_456_789 + i for i in ids], pa.timestamp("ns")),
    }
    return pa.table(columns)


def read(table: Table) -> list[dict[str, Any]]:
    return table.scan().to_arrow().sort_by([("day", "ascending"), ("id", "ascending")]).to_pylist()


WHERES = ["v = 3", "s IS NULL", "s <> 's1' AND day = 1", "id BETWEEN 4 AND 11", "1 = 0", "length(s) = 2", "id >= 0"]
STEPS = st.lists(st.tuples(st.sampled_from(["delete", "update"]), st.sampled_from(WHERES)), min_size=1, max_size=3)


def check_steps(spark: SparkSession, place: Path, layout: str, steps: list[tuple[str, str]]) -> None:
    here, there = make(place, layout, "here"), make(place, layout, "there")
    for action, where in steps:
        if action == "delete":
            expected, done = here.delete(where), paimon.spark.delete(there, where, spark=spark)
        else:
            new = {"v": "v + 1", "s": "'new'"}
            expected, done = here.update(new, where), paimon.spark.update(there.location, new, where, spark=spark)
        assert (done.rows, len(done.snapshot_ids)) == (expected.rows, len(expected.snapshot_ids))
        assert read(there) == read(here)
        own, other = there.snapshot(), here.snapshot()
        assert own is not None and other is not None
        assert (own.commit_kind, own.operation) == (other.commit_kind, other.operation)
    report = there.maintain.check(deep=True)
    assert report.is_whole, str(report)


LAYOUTS_BY_DAY = ["append with vectors", "fixed", "dynamic", "partial update"]
"""Layouts that are written in different ways; the others run by night."""


@pytest.mark.parametrize("layout", mark_nightly(LAYOUTS, always=LAYOUTS_BY_DAY))
def test_tasks_change_the_rows_that_embedded_methods_change(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    number = list(LAYOUTS).index(layout)
    check_steps(spark, tmp_path, layout, [("update", WHERES[number % 7]), ("delete", WHERES[(number + 3) % 7])])


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(layout=st.sampled_from(sorted(LAYOUTS)), steps=STEPS)
def test_drawn_changes_equal_the_embedded_ones(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, layout: str, steps: list[tuple[str, str]]
) -> None:
    check_steps(spark, tmp_path_factory.mktemp("rows"), layout, steps)


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("rows passed through the driver")


def forbid_rows_in_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process fail where it reads or writes rows; tasks run in processes of their own."""
    monkeypatch.setattr(read_data_file, "_read_tolerant_batches", refuse)
    monkeypatch.setattr(TableWriter, "write", refuse)
    monkeypatch.setattr(TableWriter, "prepare_commit", refuse)


UPDATED = ["append", "append with vectors", "fixed", "dynamic", "cross partition"]


@pytest.mark.parametrize("layout", mark_nightly(UPDATED, always=["append with vectors", "cross partition"]))
def test_rows_do_not_pass_through_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    table = make(tmp_path, layout)
    forbid_rows_in_the_driver(monkeypatch)
    with pytest.raises(AssertionError, match="through the driver"):
        table.delete("v = 1")
    session = paimon.spark.connect(spark, tmp_path)
    (deleted,) = session.sql("DELETE FROM d.t WHERE v = 1").collect()
    (updated,) = session.sql("UPDATE d.t SET s = upper(s) || '!' WHERE v > 2").collect()
    assert (deleted.rows, updated.rows) == (4, 8)
    rows = session.sql("SELECT s FROM d.t WHERE id = 3").collect()
    assert [row.s for row in rows] == ["S3!"]


@pytest.mark.parametrize("layout", mark_nightly(["append", "append with vectors"], always=["append with vectors"]))
def test_a_change_of_the_same_files_refuses_the_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    table = make(tmp_path, layout)
    commit = delete_update.commit_rows

    def commit_second(*arguments: Any) -> Any:
        monkeypatch.setattr(delete_update, "commit_rows", commit)
        table.delete("id = 4")
        return commit(*arguments)

    monkeypatch.setattr(delete_update, "commit_rows", commit_second)
    with pytest.raises(CommitConflict):
        paimon.spark.update(table, {"s": "'new'"}, "id < 5", spark=spark)
    assert [r["s"] for r in read(table) if r["id"] < 5] == [None, "s2", "s1", "s3"]
    expected = 2 if layout == "append with vectors" else 3
    assert len(list_files(table)) == expected, "the new files are deleted"


def list_files(table: Table) -> list[Path]:
    return sorted(Path(table.location).rglob("bucket-*/*.parquet"))


def test_a_failed_task_leaves_the_table_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, "append")
    files = list_files(table)
    files[-1].write_bytes(b"damaged")
    with pytest.raises(StorageError, match="a task failed"):
        paimon.spark.delete(table, "id % 2 = 0", spark=spark)
    assert len(table.snapshots()) == 2
    assert list_files(table) == files, "files of tasks that succeeded are deleted"


def test_errors_are_those_of_the_embedded_methods(spark: SparkSession, tmp_path: Path) -> None:
    keyed, append = make(tmp_path, "fixed", "keyed"), make(tmp_path, "append", "append")
    with pytest.raises(InvalidRequest, match="primary key"):
        paimon.spark.update(keyed, {"id": "id + 1"}, "id = 1", spark=spark)
    with pytest.raises(InvalidRequest, match="Column 'w' does not exist"):
        paimon.spark.delete(append, "w = 1", spark=spark)
    with pytest.raises(InvalidRequest, match=r"(?i)could not"):
        paimon.spark.update(append, {"v": "CAST(s AS INT)"}, "id = 1", spark=spark)
    with pytest.raises(InvalidRequest, match="system table"):
        paimon.spark.delete(f"{append.location}$files", "1 = 1", spark=spark)
    memory = paimon.connect("memory://row-changes")
    memory.create_database("d")
    held = memory.create_table("d.t", SCHEMA)
    held.write(make_rows(range(3)))
    with pytest.raises(Unsupported, match=re.escape("on Spark, whose tasks are other processes")):
        paimon.spark.delete(held, "id = 1", spark=spark)
    assert (len(keyed.snapshots()), len(append.snapshots())) == (2, 2)
