"""Cross-partition tables on Spark: parallel tasks place each key in one partition, in one commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.case_lists import mark_nightly

import paimon
import paimon.spark

pytestmark = pytest.mark.spark
COLUMNS = "part STRING, id BIGINT NOT NULL, note STRING"


def create_cross_partition_table(catalog: paimon.Catalog, name: str = "db.across", **options: object) -> paimon.Table:
    return catalog.create_table(name, COLUMNS, primary_keys=["id"], partition_keys=["part"], options=options)


def draw_rows(start: int, stop: int, step: int, partitions: int, note: str) -> pa.Table:
    ids = list(range(start, stop, step))
    parts = [f"p{(i // 3 + step) % partitions}" for i in ids]
    return pa.table({"part": parts, "id": ids, "note": [f"{note}{i}" for i in ids]})


def list_rows(table: paimon.Table) -> list[dict[str, object]]:
    return table.scan().to_arrow().sort_by("id").to_pylist()


def list_buckets(table: paimon.Table) -> set[tuple[bytes, int]]:
    return {(s.partition, s.bucket) for s in table.new_read_builder().new_scan().plan().splits()}


@pytest.mark.slow("each write is two jobs")
@pytest.mark.parametrize("engine", mark_nightly(["deduplicate", "partial-update"], always=["partial-update"]))
def test_tasks_write_the_same_rows_as_the_embedded_writer(
    spark: SparkSession, catalog: paimon.Catalog, engine: str
) -> None:
    options = {"merge-engine": engine, "dynamic-bucket.assigner-parallelism": 3}
    here = create_cross_partition_table(catalog, "db.here", **options)
    there = create_cross_partition_table(catalog, "db.there", **options)
    for step, note in enumerate(["first", "second"], 1):
        rows = draw_rows(0, 60, step, 1 + step, note)
        here.write(rows)
        paimon.spark.write(spark.createDataFrame(rows).coalesce(1), there)
    assert [s.commit_kind.value for s in there.snapshots()].count("APPEND") == 2
    assert list_rows(there) == list_rows(here) and len(list_rows(there)) == 60
    assert {bucket % 3 for _, bucket in list_buckets(there)} == {0, 1, 2}, "each assigner placed keys"
    report = there.maintain.check(deep=True)
    assert report.is_whole, str(report)


def test_tasks_place_deletes_and_keys_of_several_types(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table(
        "db.typed", "at TIMESTAMP(3) NOT NULL, code DECIMAL(9, 2) NOT NULL, part INT, v INT",
        primary_keys=["at", "code"], partition_keys=["part"], options={"deletion-vectors.enabled": "true"},
    )  # fmt: skip
    rows = spark.sql(
        "SELECT timestamp_ntz '2026-01-01 00:00:00.123' + make_interval(0, 0, 0, 0, 0, id % 7) AS at, "
        "CAST(id AS DECIMAL(9, 2)) AS code, CAST(id % 2 AS INT) AS part, CAST(id AS INT) AS v FROM range(60)"
    )
    paimon.spark.write(rows, table, tasks=2)
    moved = rows.selectExpr("at", "code", "part + 1 AS part", "v + 100 AS v", "if(v < 10, '-D', '+I') AS kind")
    paimon.spark.write(moved, table, kind_column="kind", tasks=2)
    found = {row["code"]: (row["part"], row["v"]) for row in table.scan().to_arrow().to_pylist()}
    assert table.scan().count() == len(found)
    assert found == {i: (i % 2 + 1, i + 100) for i in range(10, 60)}


def test_an_overwrite_of_all_partitions_starts_with_no_keys(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_cross_partition_table(catalog)
    table.write(draw_rows(0, 100, 1, 3, "old"))
    new = draw_rows(50, 150, 1, 5, "new")
    whole = {"dynamic-partition-overwrite": "false"}
    paimon.spark.write(spark.createDataFrame(new), table, mode="overwrite", tasks=3, options=whole)
    assert list_rows(table) == new.to_pylist()
    with pytest.raises(paimon.Unsupported, match="keys may be in any partition"):
        paimon.spark.write(spark.createDataFrame(new), table, mode="overwrite")


def test_tasks_place_rows_again_after_another_commit(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path
) -> None:
    table = create_cross_partition_table(catalog)
    table.write(draw_rows(0, 50, 1, 3, "old"))
    location, marker = table.location, tmp_path / "written"

    def write_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not marker.exists():
            marker.touch()
            paimon.open_table(location).write({"part": ["x"] * 60, "id": range(60), "note": ["other"] * 60})
        yield from batches

    rows = draw_rows(40, 70, 1, 4, "mine")
    frame = spark.createDataFrame(rows).coalesce(1)
    paimon.spark.write(frame.mapInArrow(write_first, frame.schema), table, tasks=2)
    expected = [{"part": "x", "id": i, "note": "other"} for i in range(40)] + rows.to_pylist()
    assert list_rows(table) == expected and table.maintain.check(deep=True).is_whole
