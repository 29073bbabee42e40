"""A data frame has the same rows in each of its uses, whatever other uses filter."""

from __future__ import annotations

import math
from datetime import UTC, datetime, time

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.case_lists import mark_nightly

import paimon
import paimon.spark
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Not, Operator, Predicate
from paimon.domain.types.data_types import BooleanType, DataField, DoubleType, IntType, VarCharType
from paimon.spark.conditions import find_columns, find_where

pytestmark = pytest.mark.spark


def ids_of(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


@pytest.mark.parametrize("pushdown", mark_nightly(["true", "false"], always=["true"]))
def test_uses_of_one_frame_do_not_share_filters(spark: SparkSession, catalog: paimon.Catalog, pushdown: str) -> None:
    table = catalog.create_table("db.t", "id BIGINT NOT NULL", primary_keys=["id"], options={"bucket": 1})
    table.write([{"id": i} for i in range(6)])
    table.write([{"id": 0}])
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    try:
        for frame in (paimon.spark.read(spark, table), spark.read.format("paimon").load(table.location)):
            two, three = frame.where("id = 2"), frame.where("id = 3")
            assert ids_of(two.union(three)) == [2, 3]
            assert ids_of(frame.where("id > 4").union(frame)) == [0, 1, 2, 3, 4, 5, 5]
            assert frame.count() == 6
            assert (ids_of(two), ids_of(three)) == ([2], [3])
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


FIELDS = [
    DataField(0, "id", IntType()),
    DataField(1, "Word", VarCharType(9)),
    DataField(2, "x", DoubleType()),
    DataField(3, "flag", BooleanType()),
]
EQUAL = Compare("id", Operator.EQ, 5)
CONDITIONS: list[tuple[str, Predicate | None]] = [
    ("id = 5", EQUAL),
    ("`ID` == 5 AND x > 1.5", EQUAL),
    ("-5 < id", Compare("id", Operator.GT, -5)),
    ("id = 5 AND WORD IN ('a', 'b')", And((EQUAL, In("Word", ("a", "b"))))),
    ("NOT (id = 5) AND flag = true", And((Not(EQUAL), Compare("flag", Operator.EQ, True)))),
    ("word IS NULL", IsNull("Word")),
    ("id = 5 OR x = 1", None),
    ("id = '5'", None),
    ("id = 5.0", None),
    ("x = 5", None),
    ("word = 'a\\\\b'", None),
    ('word = "a"', None),
    ("id = 5L", None),
    ("id <=> 5", None),
    ("id = (SELECT 5)", None),
    ("id = 5 AND", None),
    ("other = 5", None),
]


@pytest.mark.parametrize(("text", "expected"), CONDITIONS)
def test_a_condition_of_spark_restricts_the_scan(text: str, expected: Predicate | None) -> None:
    assert find_where(text, FIELDS) == expected
    assert find_where(text, [*FIELDS, DataField(9, "ID", IntType())]) is None


def test_columns_of_a_condition_are_read() -> None:
    names = ["id", "Word", "x", "row"]
    assert find_columns("`WORD` = 'a'", ["x"], names) == ["Word", "x"]
    assert find_columns("row.f = 1", ["row.g", "id"], names) == ["id", "row"]
    assert find_columns("x = 1", None, names) == names
    assert find_columns("hash(struct(*)) = 1", ["x"], names) == names


def test_a_condition_selects_the_files_of_the_plan(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", "id BIGINT NOT NULL, w STRING", primary_keys=["id"], options={"bucket": 3})
    for word in ("a", "b"):
        table.write([{"id": i, "w": word} for i in range(9)])
    one_each = {"source.split.target-size": "1 b"}
    frame = paimon.spark.read(spark, table, columns=["w"], where="id = 4", options=one_each)
    assert frame.rdd.getNumPartitions() == 1
    assert paimon.spark.read(spark, table, options=one_each).rdd.getNumPartitions() == 3
    whole = paimon.spark.read(spark, table)
    assert (whole.rdd.getNumPartitions(), whole.count()) == (1, 9)
    assert [tuple(row) for row in frame.collect()] == [("b",)]


def runs_tasks_of_python(frame: DataFrame) -> bool:
    return "Scan paimon" in frame._jdf.queryExecution().executedPlan().toString()


def test_rows_of_whole_keys_are_read_without_tasks(spark: SparkSession, catalog: paimon.Catalog) -> None:
    columns = "id BIGINT NOT NULL, p STRING NOT NULL, at TIMESTAMP(9), zoned TIMESTAMP_LTZ(3), x DOUBLE, l ARRAY<TIME>"
    table = catalog.create_table(
        "db.t", columns, primary_keys=["id", "p"], partition_keys=["p"], options={"bucket": 2, "write-only": True}
    )
    row = {"at": datetime(2026, 1, 2, 3, 4, 5, 678901), "zoned": datetime(2026, 1, 2, tzinfo=UTC), "l": [time(3), None]}
    for word in ("a", "b"):
        table.write([{"id": i, "p": word, "x": math.nan, **row} for i in range(9)])
        table.write([{"id": 4, "p": word, "x": None}, {"id": 5, "p": word, "x": 5.5, **row}])

    def read(where: str, options: dict[str, str] | None = None) -> DataFrame:
        return paimon.spark.read(spark, table, where=where, options=options)

    in_tasks, alone = {"source.split.target-size": "1 b"}, "p = 'a' AND id IN (3, 4, 5, 77)"
    here, there = read(alone), read(alone, in_tasks)
    assert [runs_tasks_of_python(frame) for frame in (here, there)] == [False, True]
    assert here.schema == there.schema == read("id = -1 AND p = 'a'").schema
    others = [
        read("p = 'b' AND id = 5 AND x > 5"),
        read("p = 'b' AND id = 5 AND x > 6"),
        read("id = 77 AND p = 'a'"),
        paimon.spark.read(spark, table, ["x"], "id = 5 AND p = 'b'"),
    ]
    assert not any(map(runs_tasks_of_python, others))
    changed = [{"id": i, "p": "a", "x": 0.0} for i in range(9)]
    table.write(changed, missing_columns="null")  # no frame changes
    assert sorted(map(str, here.collect())) == sorted(map(str, there.collect()))
    assert [(found["id"], str(found["x"])) for found in here.orderBy("id").collect()] == [
        (3, "nan"), (4, "None"), (5, "5.5")
    ]  # fmt: skip
    assert [[found["x"] for found in frame.collect()] for frame in others] == [[5.5], [], [], [5.5]]
    assert all(map(runs_tasks_of_python, [read("id = 5"), read("p = 'b'"), read("id = 5 OR p = 'b'")]))


def test_a_count_runs_a_job_only_where_files_are_merged(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table(
        "db.t", "id BIGINT NOT NULL", primary_keys=["id"], options={"bucket": 1, "write-only": True}
    )
    tracker = spark.sparkContext.statusTracker()

    def count(group: str, frame: DataFrame) -> tuple[int, bool]:
        spark.sparkContext.setJobGroup(group, group)
        return frame.count(), bool(tracker.getJobIdsForGroup(group))

    empty = paimon.spark.read(spark, table)
    table.write([{"id": i} for i in range(6)])
    one_run = paimon.spark.read(spark, table, ["id"])
    cached = paimon.spark.read(spark, table).cache()
    table.write([{"id": 5}, {"id": 6}])
    merged = paimon.spark.read(spark, table)
    try:
        assert count("empty", empty) == (0, False)
        assert count("one run", one_run) == (6, False)
        assert count("a part", one_run.where("id > 2")) == (3, True)
        assert count("cached", cached) == (6, True)
        assert count("merged", merged) == (7, True)
    finally:
        spark.sparkContext.setJobGroup("", "")
        cached.unpersist()


def test_tasks_are_packed_by_the_size_of_splits(spark: SparkSession, catalog: paimon.Catalog) -> None:
    options = {"write-only": True, "source.split.open-file-cost": "1 b"}
    table = catalog.create_table("db.t", "id BIGINT", options=options)
    for number in range(6):
        table.write({"id": [number]})
    size = max(file.file_size for split in table.scan().plan().splits for file in split.files)

    def count_tasks(target: int) -> int:
        reader = spark.read.format("paimon").option("source.split.target-size", f"{target} b")
        return int(reader.load(table.location).rdd.getNumPartitions())

    assert [count_tasks(target) for target in (size, 2 * size, 6 * size)] == [6, 3, 1]
