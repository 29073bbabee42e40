"""Postponed buckets on Spark: tasks append and move rows as embedded code does, each in one commit."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.commit_tables import data_file

import paimon
import paimon.spark
from paimon.operations.commit.base import CommitBase
from paimon.operations.write.compact_table import PartitionWork
from paimon.spark.maintenance.postponed import _share_files

pytestmark = pytest.mark.spark


def orders(catalog: paimon.Catalog, name: str = "db.orders", **options: object) -> paimon.Table:
    return catalog.create_table(
        name, "id BIGINT NOT NULL, day STRING NOT NULL, v INT", primary_keys=["id", "day"], partition_keys=["day"],
        options={"bucket": -2, "postpone.default-bucket-num": 3, **options},
    )  # fmt: skip


def data(start: int, stop: int, value: int) -> pa.Table:
    ids = range(start, stop)
    days = [f"2026-01-0{1 + i % 3}" for i in ids]
    return pa.table({"id": list(ids), "day": days, "v": pa.array([value] * len(days), pa.int32())})


def rows(table: paimon.Table) -> list[dict[str, object]]:
    return table.scan().to_arrow().sort_by("id").to_pylist()


def buckets(table: paimon.Table) -> list[tuple[object, ...]]:
    live = CommitBase(table.context, table.snapshot()).read_live_files(lambda _: True)
    return sorted((e.partition, e.bucket, e.total_buckets, e.file.level, e.file.row_count) for e in live)


def test_tasks_move_rows_of_other_tasks(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table, embedded = orders(catalog), orders(catalog, "db.embedded")
    for number, (start, stop) in enumerate([(0, 60), (30, 90)]):
        paimon.spark.write(spark.createDataFrame(data(start, stop, number)).repartition(4), table)
        embedded.write(data(start, stop, number))
    assert rows(table) == [] and {bucket for _, bucket, *_ in buckets(table)} == {-2}
    done, here = paimon.spark.compact(table, spark=spark), embedded.compact()
    assert (done.buckets, done.rows) == (here.buckets, here.rows) == (9, 90)
    assert rows(table) == rows(embedded) and buckets(table) == buckets(embedded)
    assert [s.commit_kind.value for s in table.snapshots()] == ["APPEND", "APPEND", "COMPACT"]
    spark.createDataFrame(data(0, 3, 7)).write.format("paimon").mode("append").save(table.location)
    assert paimon.spark.compact(table, full=True, where="day = '2026-01-01'", spark=spark).buckets == 3
    assert [row["v"] for row in rows(table)][:4] == [7, 0, 0, 0] and table.maintain.check(deep=True).is_whole


def test_one_partition_is_split_among_tasks(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table(
        "db.one",
        "id BIGINT NOT NULL, v INT",
        primary_keys=["id"],
        options={"bucket": -2, "changelog-producer": "lookup"},
    )
    table.write({"id": range(100), "v": [1] * 100})
    chosen = {"postpone.default-bucket-num": 5}
    assert paimon.spark.compact(table, options=chosen, spark=spark).buckets == 5
    assert len(rows(table)) == 100 and table.changes().to_arrow().num_rows == 100


@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_each_postponed_file_is_read_by_one_task(tasks: int) -> None:
    files = [data_file(name) for name in "abcdefg"]
    counts = [3, 0, 4]
    partitions = [
        PartitionWork(bytes([n]), 2, f"p{n}", tuple(files[sum(counts[:n]) : sum(counts[: n + 1])]), (), False)
        for n in range(3)
    ]
    shares = _share_files(partitions, [0, 3, 3], tasks)
    assert [file for share in shares for file in share.files] == files
    assert [share.first + i for share in shares for i in range(len(share.files))] == list(range(7))
    assert {share.work.partition for share in shares} == {bytes([n]) for n in range(3)}
    assert max(Counter(share.work.partition for share in shares).values()) == min(tasks, 4)


def test_batch_writes_to_real_buckets_are_routed(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    table.write(data(0, 3, 0))
    table.with_options({"postpone.default-bucket-num": 2}).compact()
    direct = {"postpone.batch-write-fixed-bucket": "true"}
    paimon.spark.write(spark.createDataFrame(data(1, 90, 1)).repartition(4), table, options=direct)
    found = buckets(table)
    assert rows(table) == [*data(0, 1, 0).to_pylist(), *data(1, 90, 1).to_pylist()]
    assert {total for _, _, total, *_ in found} == {2} and sum(row[-1] for row in found) == 92
    before = rows(table)
    done = paimon.spark.compact(table, full=True, spark=spark)
    assert done.buckets == len({row[:2] for row in found}) == len(buckets(table)), "no postponed file, but buckets"
    assert rows(table) == before
    with pytest.raises(Exception, match="does not route rows"):
        frame = spark.createDataFrame(data(0, 3, 7)).write.format("paimon").mode("append")
        frame.option("postpone.batch-write-fixed-bucket", "true").save(table.location)


@pytest.mark.parametrize(
    ("options", "total"),
    [({}, 3), pytest.param({"max-parallelism": 2}, 2, marks=pytest.mark.nightly), ({"default": 5}, 5)],
)
def test_tasks_get_a_bucket_each_up_to_a_limit(
    spark: SparkSession, catalog: paimon.Catalog, options: dict[str, int], total: int
) -> None:
    names = {
        "max-parallelism": "postpone.batch-write-fixed-bucket.max-parallelism",
        "default": "postpone.default-bucket-num",
    }
    table = catalog.create_table(
        "db.limited", "id BIGINT NOT NULL, v INT", primary_keys=["id"],
        options={"bucket": -2, "postpone.batch-write-fixed-bucket": "true"} | {names[k]: v for k, v in options.items()},
    )  # fmt: skip
    frame = spark.range(30).selectExpr("id", "CAST(id AS INT) AS v").coalesce(1)
    paimon.spark.write(frame, table, tasks=3)
    assert {count for _, _, count, *_ in buckets(table)} == {total} and table.scan().count() == 30
