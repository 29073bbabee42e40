"""A frame that lacks a column never replaces stored values by null unseen: the rule of `Table.write`, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import paimon
import paimon.spark
from paimon.domain.errors import InvalidRequest

pytestmark = pytest.mark.spark
FULL = [{"id": 1, "v": "a", "n": 1}]
NULL = [{"id": 1, "v": None, "n": 2}]
LACKING = "SELECT 1 AS id, 2 AS n"
REFUSED = "has the column 'v', whose stored values would become null"


def make_table(catalog: paimon.Catalog, partitioned: bool = False, **options: Any) -> paimon.Table:
    keys = ["n"] if partitioned else []
    table = catalog.create_table(
        "db.lacking", "id INT NOT NULL, v STRING, n INT", primary_keys=["id"], partition_keys=keys, options=options
    )
    table.write(FULL)
    return table


def rows(table: paimon.Table) -> list[dict[str, Any]]:
    return table.scan().to_arrow().to_pylist()


@pytest.mark.parametrize("partitioned", [False, True], ids=["dynamic buckets", "across partitions"])
def test_write_refuses_frames_without_a_column(spark: SparkSession, catalog: paimon.Catalog, partitioned: bool) -> None:
    table = make_table(catalog, partitioned)
    frame = spark.sql(LACKING)
    for given in ({}, {"merge_schema": True}):
        with pytest.raises(InvalidRequest, match=REFUSED):
            paimon.spark.write(frame, table, **given)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=REFUSED):
        paimon.spark.write(spark.sql(f"{LACKING}, '+I' AS kind"), table, kind_column="kind")
    assert rows(table) == FULL
    paimon.spark.write(frame, table, missing_columns="null")
    assert rows(table) == NULL
    deletes = spark.sql("SELECT 1 AS id, 2 AS n, '-D' AS kind")
    paimon.spark.write(deletes, table, kind_column="kind")
    assert rows(table) == []
    paimon.spark.write(frame, table.with_options({"write.missing-columns": "null"}))
    assert rows(table) == NULL


def test_columns_newer_than_the_handle_may_be_missing(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = make_table(catalog, bucket=1)
    table.add_column("x", "INT")
    frame = spark.sql("SELECT 1 AS id, 'b' AS v, 2 AS n, 3 AS y")
    paimon.spark.write(frame, table, merge_schema=True)
    assert rows(catalog.table("db.lacking")) == [{"id": 1, "v": "b", "n": 2, "x": None, "y": 3}]  # type: ignore[arg-type]


def test_streams_refuse_at_their_start(spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path) -> None:
    table = make_table(catalog, bucket=1)
    source = str(tmp_path / "source")
    spark.sql(LACKING).write.parquet(source)
    stream = spark.readStream.schema("id INT, n INT").parquet(source)
    with pytest.raises(InvalidRequest, match=REFUSED):
        paimon.spark.write_stream(stream, table, str(tmp_path / "refused"))
    given = {"write.missing-columns": "null"}
    once = {"availableNow": True}
    query = paimon.spark.write_stream(stream, table, str(tmp_path / "c"), trigger=once, options=given)
    query.awaitTermination()
    assert rows(table) == NULL


def test_a_running_stream_may_lack_a_column_that_is_added_later(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path
) -> None:
    table = make_table(catalog, bucket=1)
    source = tmp_path / "source"
    spark.sql("SELECT 1 AS id, 'b' AS v, 2 AS n").write.parquet(str(source))
    stream = spark.readStream.schema("id INT, v STRING, n INT").parquet(str(source))
    query = paimon.spark.write_stream(stream, table.location, str(tmp_path / "c"))
    try:
        query.processAllAvailable()
        table.add_column("x", "INT")
        spark.sql("SELECT 1 AS id, 'c' AS v, 3 AS n").write.mode("append").parquet(str(source))
        query.processAllAvailable()
    finally:
        query.stop()
    assert rows(catalog.table("db.lacking")) == [{"id": 1, "v": "c", "n": 3, "x": None}]  # type: ignore[arg-type]


def test_the_data_source_and_change_events(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = make_table(catalog, bucket=-2)
    writer = spark.sql(LACKING).write.format("paimon").mode("append")
    with pytest.raises(Exception, match=REFUSED):
        writer.save(table.location)
    writer.option("write.missing-columns", "null").save(table.location)
    events = spark.sql("SELECT 'I' AS op, 1 AS id, 2 AS n")
    with pytest.raises(InvalidRequest, match=REFUSED):
        paimon.spark.cdc(events, table, "columns")
    paimon.spark.cdc(spark.sql("SELECT 'D' AS op, 1 AS id"), table, "columns")
    table.compact()
    assert rows(table) == []
