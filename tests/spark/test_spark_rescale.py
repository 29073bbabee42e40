"""Rescale on Spark equals the embedded rescale, bucket by bucket: the same rows in the same buckets, one commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.case_lists import mark_products

import paimon
import paimon.spark
from paimon.domain.errors import InvalidRequest, StorageError
from paimon.domain.snapshot.snapshot import CommitKind

pytestmark = pytest.mark.spark


def create_table_of_buckets(catalog: paimon.Catalog, name: str, keyed: bool, **options: str) -> paimon.Table:
    table = catalog.create_table(
        name, "id BIGINT NOT NULL, day STRING NOT NULL, v INT, at TIMESTAMP(9)",
        primary_keys=["id", "day"] if keyed else [], partition_keys=["day"],
        options={"bucket": "3", "bucket-key": "id", "write-only": "true"} | options,
    )  # fmt: skip
    for step in range(3):
        ids = list(range(step, 90, step + 1))
        at = pa.array([1_700_000_000_123_456_789 + i for i in ids], pa.timestamp("ns"))
        table.write(
            {"id": ids, "day": [f"d{i % 2}" for i in ids], "v": pa.array([step] * len(ids), pa.int32()), "at": at}
        )
    return table


def list_rows_by_bucket(table: paimon.Table) -> dict[tuple[bytes, int, int], list[dict[str, object]]]:
    """Return the rows of each bucket in the order of a read, by partition, bucket and number of buckets."""
    read = table.new_read_builder()
    return {
        (s.partition, s.bucket, s.total_buckets): read.new_read().to_arrow([s]).to_pylist()
        for s in read.new_scan().plan().splits()
    }


@pytest.mark.parametrize(("keyed", "new"), mark_products([True, False], [2, 7]))
def test_tasks_write_the_same_files_as_the_embedded_rescale(
    spark: SparkSession, catalog: paimon.Catalog, keyed: bool, new: int
) -> None:
    here, there = (
        create_table_of_buckets(catalog, "db.here", keyed),
        create_table_of_buckets(catalog, "db.there", keyed),
    )
    embedded = here.rescale(new)
    done = paimon.spark.rescale(there, new, spark=spark)
    assert (done.partitions, done.rows, len(done.snapshot_ids)) == (embedded.partitions, embedded.rows, 1)
    assert list_rows_by_bucket(there) == list_rows_by_bucket(here)
    assert {total for _, _, total in list_rows_by_bucket(there)} == {new}
    snapshot = there.snapshot()
    assert snapshot is not None and snapshot.commit_kind is CommitKind.OVERWRITE
    report = there.maintain.check(deep=True)
    assert report.is_whole, str(report)
    assert paimon.spark.rescale(there.location, new, spark=spark).snapshot_ids == (), "nothing is left to do"


def test_a_failed_task_leaves_the_table_and_its_option(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_table_of_buckets(catalog, "db.damaged", keyed=True)
    files = sorted(Path(table.location).rglob("bucket-*/*.parquet"))
    files[0].write_bytes(b"damaged")
    with pytest.raises(StorageError, match="a task failed"):
        paimon.spark.rescale(table, 5, spark=spark)
    opened = paimon.open_table(table.location)
    assert opened.options["bucket"] == "3" and len(table.snapshots()) == 3
    assert sorted(Path(table.location).rglob("bucket-*/*.parquet")) == files


def test_partitions_are_selected_and_system_tables_refused(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_table_of_buckets(catalog, "db.selected", keyed=True)
    assert paimon.spark.rescale(table, 4, where="day = 'd1'", spark=spark).partitions == 1
    with pytest.raises(InvalidRequest, match="system table"):
        paimon.spark.rescale(f"{table.location}$files", 4, spark=spark)
