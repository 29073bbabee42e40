"""A data frame has the same rows in each of its uses, whatever other uses filter."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

import paimon
import paimon.spark
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Not, Operator, Predicate
from paimon.domain.types.data_types import BooleanType, DataField, DoubleType, IntType, VarCharType
from paimon.spark.conditions import find_columns, find_where

pytestmark = pytest.mark.spark


def ids_of(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


@pytest.mark.parametrize("pushdown", ["true", "false"])
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
    frame = paimon.spark.read(spark, table, columns=["w"], where="id = 4")
    assert frame.rdd.getNumPartitions() == 1
    assert paimon.spark.read(spark, table).rdd.getNumPartitions() == 3
    assert [tuple(row) for row in frame.collect()] == [("b",)]
