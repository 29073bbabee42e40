"""MERGE on Spark equals the embedded merge, and the rows of both sides stay in the tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from support.case_lists import mark_nightly
from support.row_level_layouts import LAYOUTS, SMALL_SPLITS

import paimon
import paimon.spark
from paimon.builders import merge_builder
from paimon.builders.merge_builder import MergeBuilder
from paimon.domain.assignment.merge_clauses import MergeAction
from paimon.domain.errors import AmbiguousMerge, CommitConflict, InvalidRequest, Unsupported
from paimon.operations.data_files import read_data_file
from paimon.operations.row_level import merge as merge_module
from paimon.operations.row_level.merge import MergeGroup, MergeRequest, WhenClause, bind_merge
from paimon.operations.row_level.merge_source import describe_source
from paimon.operations.write.writer import TableWriter
from paimon.spark.row_level.merge_tasks import MergeJob, TaskShare
from paimon.spark.tasks.shuffle import send_rows
from paimon.spark.types import to_spark_frame
from paimon.table import Table

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT NOT NULL, day INT NOT NULL, v INT, s STRING, f DOUBLE, at TIMESTAMP(9)"
Clauses = list[tuple[str, tuple[Any, ...]]]
ALL = {"id": "source.id", "day": "source.day", "v": "source.v"}
MERGES: list[tuple[Any, Clauses]] = [
    ("id", [("when_matched_update", ({"v": "target.v + source.v", "s": "source.s"},)),
            ("when_not_matched_insert_all", ())]),
    (["id", "day"], [("when_matched_delete", ("source.v > 2",)), ("when_matched_update_all", ()),
                     ("when_not_matched_insert", (ALL, "v <> 3"))]),
    ("target.id = source.id AND target.v < 3 AND source.s IS NOT NULL",
     [("when_matched_update", ({"s": "'x'"},)), ("when_not_matched_by_source_update", ({"v": "v + 7"}, "v = 1")),
      ("when_not_matched_by_source_delete", ("id < 3",))]),
    ("target.id + 31 = source.id",
     [("when_matched_update", ({"v": "-1"},)), ("when_not_matched_insert", (ALL, "id > 30"))]),
    ("target.f = source.f AND target.id = source.id",
     [("when_matched_update", ({"v": "source.v"},)), ("when_not_matched_insert", (ALL, "id > 20"))]),
    ("id", [("when_not_matched_insert_all", ("source.v < 4",))]),
    ("id", [("when_matched_delete", ())]),
]  # fmt: skip


def make(place: Path, layout: str, name: str = "t") -> Table:
    catalog = paimon.connect(str(place))
    catalog.create_database("d", exist_ok=True)
    chosen = LAYOUTS[layout]
    options = {**SMALL_SPLITS, **chosen.get("options", {})}
    table = catalog.create_table(f"d.{name}", SCHEMA, **{**chosen, "options": options})
    for start in (0, 10):
        table.write(make_rows(range(start, start + 10)))
    return table


def make_rows(ids: range, s: str = "old") -> pa.Table:
    columns = {
        "id": pa.array(ids, pa.int64()),
        "day": pa.array([i % 2 for i in ids], pa.int32()),
        "v": pa.array([i % 5 for i in ids], pa.int32()),
        "s": pa.array([None if i % 4 == 0 and s == "old" else f"{s}{i}" for i in ids], pa.string()),
        "f": pa.array([float("nan") if i % 3 else -0.0 for i in ids], pa.float64()),
        "at": pa.array([1_700_000_000_123_456_000 + i * 1000 for i in ids], pa.timestamp("ns")),
    }
    return pa.table(columns)


def read(table: Table) -> list[str]:
    return [
        str(row) for row in table.scan().to_arrow().sort_by([("day", "ascending"), ("id", "ascending")]).to_pylist()
    ]


def apply(merge: MergeBuilder, clauses: Clauses) -> MergeBuilder:
    for name, arguments in clauses:
        merge = getattr(merge, name)(*arguments)
    return merge


def to_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    return to_spark_frame(spark, rows).repartition(2)


def check_merge(spark: SparkSession, place: Path, layout: str, on: Any, clauses: Clauses, source: pa.Table) -> None:
    here, there = make(place, layout, "here"), make(place, layout, "there")
    there.delete("id = 7")
    here.delete("id = 7")
    expected = apply(here.merge(source, on), clauses).execute()
    done = apply(paimon.spark.merge(to_frame(spark, source), there.location, on), clauses).execute()
    assert (done.inserted, done.updated, done.deleted) == (expected.inserted, expected.updated, expected.deleted)
    assert read(there) == read(here)
    own, other = there.snapshot(), here.snapshot()
    assert own is not None and other is not None
    assert (own.id, own.commit_kind, own.operation) == (other.id, other.commit_kind, other.operation)
    report = there.maintain.check(deep=True)
    assert report.is_whole, str(report)


CASES = [("dynamic", 1), ("cross partition", 2), ("partial update", 3), ("fixed with vectors", 6)]
"""Merges on layouts that are written in different ways."""
MORE = [("append", 0), ("append with vectors", 4), ("fixed", 5),
        ("append partitioned", 1), ("append in buckets", 3), ("append in buckets with vectors", 4), ("partitioned", 0),
        ("append", 2), ("append with vectors", 1), ("append with vectors", 2), ("fixed", 3), ("dynamic", 0),
        ("cross partition", 1)]  # fmt: skip


@pytest.mark.parametrize(("layout", "number"), [*CASES, *(pytest.param(*c, marks=pytest.mark.nightly) for c in MORE)])
def test_tasks_merge_as_the_embedded_merge(spark: SparkSession, tmp_path: Path, layout: str, number: int) -> None:
    on, clauses = MERGES[number]
    check_merge(spark, tmp_path, layout, on, clauses, make_rows(range(5, 35, 2), "new"))


UPDATED = ["append", "append in buckets", "append with vectors", "fixed", "cross partition"]


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("rows passed through the driver")


def forbid_rows_in_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process fail where it reads, receives or writes rows; tasks run in processes of their own."""
    monkeypatch.setattr(read_data_file, "_read_tolerant_batches", refuse)
    monkeypatch.setattr(TableWriter, "write", refuse)
    monkeypatch.setattr(TableWriter, "prepare_commit", refuse)
    monkeypatch.setattr(DataFrame, "toArrow", refuse)
    monkeypatch.setattr(DataFrame, "toPandas", refuse)
    monkeypatch.setattr(DataFrame, "toLocalIterator", refuse)


MERGE = """MERGE INTO d.t AS t USING (SELECT id + 5 AS id, day, v * 10 AS v FROM d.t WHERE id >= 10) AS s
    ON t.id = s.id
    WHEN MATCHED AND t.v = 1 THEN DELETE
    WHEN MATCHED THEN UPDATE SET v = s.v + t.v
    WHEN NOT MATCHED THEN INSERT (id, day, v, s) VALUES (s.id, s.day, s.v, 'made')"""


@pytest.mark.parametrize("layout", mark_nightly(UPDATED, always=["append"]))
def test_rows_do_not_pass_through_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    there, here = make(tmp_path / "there", layout), make(tmp_path / "here", layout)
    expected = paimon.connect(tmp_path / "here").sql(MERGE).to_arrow().to_pylist()[0]
    session = paimon.spark.connect(spark, tmp_path / "there")
    with monkeypatch.context() as patched:
        forbid_rows_in_the_driver(patched)
        with pytest.raises(AssertionError, match="through the driver"):
            there.delete("v = 1")
        (done,) = session.sql(MERGE).collect()
    assert done.asDict() == expected == {"inserted": 5, "updated": 4, "deleted": 1, "snapshot": 3}
    assert read(there) == read(here)


CORRELATED = [
    "UPDATE d.t AS t SET v = (SELECT max(o.v) FROM d.t AS o WHERE o.day = t.day) WHERE v < 2",
    "DELETE FROM d.t AS t WHERE EXISTS (SELECT 1 FROM d.t AS o WHERE o.id = t.id + 3 AND o.v > t.v)",
]


@pytest.mark.parametrize("layout", mark_nightly([*UPDATED, "dynamic"], always=["append with vectors"]))
@pytest.mark.slow("updates and deletes, each in several Spark jobs")
def test_subqueries_over_the_changed_row_run_in_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    there, here = make(tmp_path / "there", layout), make(tmp_path / "here", layout)
    session = paimon.spark.connect(spark, tmp_path / "there")
    for statement in CORRELATED if layout.startswith("append") else CORRELATED[:1]:
        expected = paimon.connect(tmp_path / "here").sql(statement).to_arrow().to_pylist()[0]
        assert expected["rows"]
        with monkeypatch.context() as patched:
            forbid_rows_in_the_driver(patched)
            (done,) = session.sql(statement).collect()
        assert done.asDict() == expected
        assert read(there) == read(here)


@pytest.mark.parametrize("layout", mark_nightly(["append", "append with vectors", "fixed"], always=["fixed"]))
def test_two_matches_of_a_row_are_refused(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    table = make(tmp_path, layout)
    files = list_files(table)
    rows = pa.concat_tables([make_rows(range(3, 9)), make_rows(range(8, 10))])
    merge = paimon.spark.merge(to_frame(spark, rows), table, "id")
    with pytest.raises(AmbiguousMerge, match=r"Two rows of the source match the same row of table 'd\.t': id = 8"):
        merge.when_matched_update({"v": "source.v"}).when_not_matched_insert_all().execute()
    assert len(table.snapshots()) == 2
    assert list_files(table) == files, "files of tasks that succeeded are deleted"
    assert merge.when_not_matched_insert_all().execute().inserted == 0, "nothing of a matched row changes"


def list_files(table: Table) -> list[Path]:
    return sorted(Path(table.location).rglob("bucket-*/*.parquet"))


@pytest.mark.parametrize("layout", mark_nightly(["append", "fixed"], always=["fixed"]))
def test_a_merge_sees_rows_of_writers_that_commit_first(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    table = make(tmp_path, layout)
    commit = merge_module.commit_rows

    def commit_second(*arguments: Any) -> Any:
        monkeypatch.setattr(merge_module, "commit_rows", commit)
        table.update({"v": 100}, "id = 4")
        return commit(*arguments)

    monkeypatch.setattr(merge_module, "commit_rows", commit_second)
    merge = paimon.spark.merge(lambda: paimon.spark.read(spark, table, where="id IN (4, 5)"), table, "id")
    assert merge.when_matched_update({"v": "source.v + 1"}).execute().updated == 2
    assert {row["id"]: row["v"] for row in table.scan(where="id IN (4, 5)").to_arrow().to_pylist()} == {4: 101, 5: 1}

    def conflict(*_: Any) -> Any:
        raise CommitConflict("another user was first")

    monkeypatch.setattr(merge_module, "commit_rows", conflict)
    monkeypatch.setattr(merge_builder, "_ATTEMPTS", 2)
    with pytest.raises(CommitConflict, match="another user was first"):
        merge.when_matched_delete().execute()
    assert table.scan().count() == 20


def test_only_files_with_possible_matches_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, "append")
    ((file,),) = [split.files for split in table.scan(where="id < 10").plan().splits]
    Path(table.location, "bucket-0", file.file_name).unlink()
    merge = paimon.spark.merge(to_frame(spark, make_rows(range(10, 20))), table, "id")
    assert merge.when_matched_update({"v": "source.v + 1"}).execute().updated == 10
    merge = paimon.spark.merge(to_frame(spark, make_rows(range(9, 20))), table, "id")
    with pytest.raises(paimon.PaimonError, match="a task failed"):
        merge.when_matched_delete().execute()


def test_partitions_with_another_number_of_buckets_than_the_table(spark: SparkSession, tmp_path: Path) -> None:
    for place in ("here", "there"):
        make(tmp_path, "append in buckets with vectors", place).set_options({"bucket": "5"})
    here, there = (paimon.open_table(tmp_path / "d.db" / place) for place in ("here", "there"))
    source = make_rows(range(0, 20, 3))
    expected = here.merge(source, "id").when_matched_delete().execute()
    evaluated = spark.sparkContext.accumulator(0)

    def count_evaluation(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        evaluated.add(1)
        yield from batches

    frame = to_frame(spark, source)
    counted = frame.mapInArrow(count_evaluation, frame.schema)
    done = paimon.spark.merge(counted, there, "id").when_matched_delete().execute()
    assert (done.deleted, expected.deleted) == (7, 7)
    assert read(there) == read(here)
    assert evaluated.value == 2, "each of two partitions once: another evaluation may have other rows"


def test_an_empty_source_or_table(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, "fixed")
    empty = to_frame(spark, make_rows(range(0)))
    done = paimon.spark.merge(empty, table, "id").when_matched_delete().when_not_matched_insert_all().execute()
    assert done.snapshot_ids == ()
    done = paimon.spark.merge(empty, table, "id").when_not_matched_by_source_delete("id > 4").execute()
    assert (done.deleted, table.scan().count()) == (15, 5)
    new = paimon.connect(str(tmp_path)).create_table("d.new", SCHEMA)
    rows = to_frame(spark, make_rows(range(6)))
    assert paimon.spark.merge(rows, new, "id").when_not_matched_insert_all().execute().inserted == 6
    assert new.scan().count() == 6


def test_what_is_not_possible_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table, frame = make(tmp_path, "append"), to_frame(spark, make_rows(range(3)))
    with pytest.raises(InvalidRequest, match="must be a data frame"):
        paimon.spark.merge(make_rows(range(3)), table, "id")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="at least 1"):
        paimon.spark.merge(frame, table, "id", tasks=0)
    with pytest.raises(InvalidRequest, match="system table"):
        paimon.spark.merge(frame, f"{table.location}$files", "id")
    twice = frame.select("id", "v", frame["v"])
    with pytest.raises(InvalidRequest, match="'v' more than once"):
        paimon.spark.merge(twice, table, "id")
    with pytest.raises(InvalidRequest, match=r"(?i)cast the column"):
        paimon.spark.merge(frame, table, "target.id = source.s").when_matched_delete().execute()
    small = paimon.connect(str(tmp_path), memory_budget="1 mb").table("d.t")
    with pytest.raises(InvalidRequest, match="memory budget"):
        merge = paimon.spark.merge(spark.range(1 << 19), small, "target.id < source.id")
        merge.when_matched_delete().execute()
    memory = paimon.connect("memory://merges")
    memory.create_database("d")
    with pytest.raises(Unsupported, match="other processes"):
        paimon.spark.merge(frame, memory.create_table("d.t", SCHEMA), "id")
    assert len(table.snapshots()) == 2


@pytest.mark.parametrize("layout", mark_nightly(["append", "dynamic", "fixed"], always=["fixed"]))
def test_a_share_of_the_source_above_the_memory_budget_is_spilled(
    spark: SparkSession, tmp_path: Path, layout: str
) -> None:
    here, there = make(tmp_path, layout, "here"), make(tmp_path, layout, "there")
    source = make_rows(range(6, 16_000, 3), "new")
    clauses: Clauses = [
        ("when_matched_update", ({"v": "target.v + source.v", "s": "source.s"},)),
        ("when_not_matched_insert_all", ("id < 9000",)),
        ("when_not_matched_by_source_delete", ("id < 9",)),
    ]
    expected = apply(here.merge(source, "id"), clauses).execute()
    small = paimon.connect(str(tmp_path), memory_budget="300 kb").table("d.there")
    done = apply(paimon.spark.merge(to_frame(spark, source), small, "id"), clauses).execute()
    assert (done.inserted, done.updated, done.deleted) == (expected.inserted, expected.updated, expected.deleted)
    assert done.inserted > 2000 and done.updated and done.deleted
    assert read(there) == read(here)


@pytest.mark.parametrize("rows", [9, 9000])
def test_the_parts_of_a_share_find_each_match_once(tmp_path: Path, rows: int) -> None:
    make(tmp_path, "append")
    context = paimon.connect(str(tmp_path), memory_budget="300 kb").table("d.t").context  # type: ignore[union-attr]
    clauses = [WhenClause(MergeGroup.MATCHED, MergeAction.DELETE)]
    clauses += [WhenClause(MergeGroup.NOT_MATCHED_BY_SOURCE, MergeAction.DELETE)]
    source = make_rows(range(0, 2 * rows, 2), "new")
    fields = describe_source(source.schema, context.schema.fields)
    job = MergeJob(context, bind_merge(context, fields, MergeRequest("id", clauses=clauses)), fields, 1)

    def send() -> Iterator[pa.RecordBatch]:
        for number, start in enumerate(range(0, rows, 2000)):
            part = source.slice(start, 2000)
            yield from send_rows(part, np.zeros(part.num_rows, np.int32), -1, number)
        for number in range(4):
            target = make_rows(range(number * 3000, (number + 1) * 3000)).select(["id"])
            marked = target.replace_schema_metadata({b"file": str(number)})
            yield from send_rows(marked, np.zeros(target.num_rows, np.int32), number, number)

    share = TaskShare.receive(job, send())
    assert share is not None
    assert len(share.source.parts()) == 1 if rows == 9 else len(share.source.parts()) > 3
    matched, unmatched = Counter[int](), Counter[int]()
    for part in share.parts():
        for received in part.target:
            assert received.rows.schema.metadata == {b"file": str(received.source).encode()}
            for batch in received.rows.to_batches():
                changes = part.find_changes(batch)
                ids = batch["id"].to_numpy()[changes.rows]
                matched.update(ids[changes.source_rows >= 0].tolist())
                unmatched.update(ids[changes.source_rows < 0].tolist())
        expected = {*part.matcher.source["source.id"].to_pylist()} & set(range(12_000))
        assert set(np.asarray(part.matcher.source["source.id"])[part.matched].tolist()) == expected
    assert matched == Counter(range(0, min(2 * rows, 12_000), 2)) and unmatched == Counter(range(12_000)) - matched


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(
    layout=st.sampled_from(sorted(LAYOUTS)),
    merge=st.sampled_from(MERGES),
    start=st.integers(-5, 25),
    step=st.integers(1, 7),
    count=st.integers(0, 12),
)
def test_drawn_merges_equal_the_embedded_ones(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    layout: str,
    merge: tuple[Any, Clauses],
    start: int,
    step: int,
    count: int,
) -> None:
    source = make_rows(range(start, start + step * count, step), "new")
    check_merge(spark, tmp_path_factory.mktemp("merges"), layout, *merge, source)


def test_tables_with_data_evolution_are_merged_in_one_process(spark: SparkSession, tmp_path: Path) -> None:
    catalog = paimon.connect(str(tmp_path))
    catalog.create_database("d", exist_ok=True)
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True}
    table = catalog.create_table("d.e", "id BIGINT, s STRING", options=options)
    table.write({"id": [1], "s": ["a"]})
    frame = spark.createDataFrame([(1, "b")], "id BIGINT, s STRING")
    with pytest.raises(Unsupported, match="on Spark"):
        paimon.spark.merge(frame, table, "id").when_matched_update_all().execute()
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "s": "a"}]
