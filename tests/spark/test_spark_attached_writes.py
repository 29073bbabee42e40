"""Statements that write in an attached catalog: partitions, changes of tables, and the errors of each."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException, UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import paimon

pytestmark = pytest.mark.spark


def run(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


def make_days(lake: paimon.Catalog) -> paimon.Table:
    table = lake.create_table("db.days", "id INT, day STRING, hour INT", partition_keys=["day", "hour"])
    rows = [(1, "a", 1), (2, "a", 2), (3, None, 1), (4, None, None)]
    table.write([{"id": i, "day": day, "hour": hour} for i, day, hour in rows])
    return table


def read_ids(table: paimon.Table) -> list[int]:
    return sorted(row["id"] for row in table.scan(["id"]).to_arrow().to_pylist())


def test_partitions_of_nulls_are_overwritten(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_days(lake)
    spark.sql("INSERT OVERWRITE lake.db.days PARTITION (day = NULL, hour = 1) SELECT 5")
    assert read_ids(table) == [1, 2, 4, 5]
    frame = spark.createDataFrame([(6, None, None)], "id INT, day STRING, hour INT")
    frame.writeTo("lake.db.days").overwrite(F.col("hour").isNull())
    assert read_ids(table) == [1, 2, 5, 6]


@pytest.mark.nightly
def test_partitions_of_each_type_are_overwritten(spark: SparkSession, lake: paimon.Catalog) -> None:
    spark.sql(
        "CREATE TABLE lake.db.t (id INT, a TIMESTAMP, b TIMESTAMP_NTZ, c DOUBLE, d BOOLEAN, e DECIMAL(5, 2), f DATE, "
        "g FLOAT) PARTITIONED BY (a, b, c, d, e, f, g)"
    )
    time, values = "'2026-01-01 10:00:00'", "c = 1.5, d = true, e = 1.5, f = '2026-01-01', g = 0.1"
    for number in (1, 2):
        spark.sql(f"INSERT OVERWRITE lake.db.t PARTITION (a = {time}, b = {time}, {values}) SELECT {number}")
    assert run(spark, "SELECT id FROM lake.db.t") == [(2,)]


REFUSED = (
    ("ALTER TABLE {} CLUSTER BY (id)", "Unsupported: Not supported: ClusterBy"),
    ("ALTER TABLE {} SET TBLPROPERTIES ('bukcet' = '1')", "InvalidRequest: Option 'bukcet' is unknown"),
    ("ALTER TABLE {} DROP COLUMN day", "InvalidRequest: Column 'day' cannot be dropped"),
    ("ALTER TABLE lake.db.`days$files` ADD COLUMN x INT", "InvalidRequest: 'lake.db.days.files' is a system table"),
    ("ALTER TABLE {} RENAME TO nothing.days", "NotFound: Database 'nothing' does not exist"),
    ("UPDATE lake.db.`days$files` SET level = 1", "InvalidRequest: 'lake.db.days.files' is a system table"),
    ("DROP TABLE lake.db.`days$files`", "InvalidRequest: 'days.files' is a part of a table"),
    ("INSERT INTO {} REPLACE WHERE id > 3 VALUES (7, 'a', 1)", "Unsupported: Not supported: overwriting lake.db.days"),
    ("INSERT INTO {} REPLACE WHERE day = 'a' OR hour = 1 VALUES (7, 'a', 1)", "Unsupported: Not supported: overwrit"),
    ("INSERT INTO {} REPLACE WHERE day = 'a' AND day = 'b' VALUES (7, 'a', 1)", "InvalidRequest: The condition gives"),
)


def test_refused_statements_name_our_error(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_days(lake)
    for text, error in REFUSED:
        with pytest.raises((IllegalArgumentException, UnsupportedOperationException), match=f"^{error}"):
            spark.sql(text.format("lake.db.days"))
    assert read_ids(table) == [1, 2, 3, 4]
