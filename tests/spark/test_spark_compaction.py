"""Compaction on Spark equals embedded compaction, bucket by bucket: the same rows and files, also when tasks fail."""

from __future__ import annotations

import gc
import os
import pickle
import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

import paimon
import paimon.spark
from paimon.domain.errors import StorageError, Unsupported
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.engines import spark_executor
from paimon.ports.executor import Executor
from paimon.testing.contracts import ExecutorContract

pytestmark = pytest.mark.spark  # workers of Spark import this module, and have no `support`


def orders(catalog: paimon.Catalog, name: str = "db.orders", **options: object) -> paimon.Table:
    table = catalog.create_table(
        name, "id BIGINT NOT NULL, day STRING NOT NULL, v INT", primary_keys=["id", "day"], partition_keys=["day"],
        options={"bucket": 2, "write-only": True, **options},
    )  # fmt: skip
    for step in range(3):
        ids = range(step, 90, step + 1)
        days = [f"2026-01-0{1 + i % 3}" for i in ids]
        table.write({"id": list(ids), "day": days, "v": pa.array([step] * len(days), pa.int32())})
    return table


def rows(table: paimon.Table) -> list[dict[str, object]]:
    return table.scan().to_arrow().sort_by("id").to_pylist()


def describe_layout(table: paimon.Table) -> list[tuple[object, ...]]:
    """The state after a compaction, without names and times of files."""
    files = table.system_table("files").scan().to_arrow().to_pylist()
    columns = ("partition", "bucket", "level", "record_count", "min_key", "max_key")
    return sorted(tuple(f[name] for name in columns) for f in files)


def test_one_task_per_bucket_equals_the_embedded_compaction(spark: SparkSession, catalog: paimon.Catalog) -> None:
    here, there = orders(catalog), orders(catalog, "db.copy")
    before = rows(there)
    embedded = here.compact(full=True)
    done = paimon.spark.compact(there, full=True, spark=spark)
    assert (done.buckets, done.files_before, done.files_after, done.rows) == (
        embedded.buckets, embedded.files_before, embedded.files_after, embedded.rows,
    )  # fmt: skip
    assert rows(there) == before and describe_layout(there) == describe_layout(here)
    snapshot = there.snapshot()
    assert snapshot is not None and snapshot.commit_kind is CommitKind.COMPACT and done.snapshot_ids == (snapshot.id,)
    assert paimon.spark.compact(there.location, full=True).snapshot_ids == (), "nothing is left to do"


def test_partitions_and_options_select(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    assert paimon.spark.compact(table).snapshot_ids == (), "three runs are too few"
    chosen = {"num-sorted-run.compaction-trigger": 1}
    assert paimon.spark.compact(table, where="day = '2026-01-02'", options=chosen, spark=spark).buckets == 2
    levels = {(f[0], f[2]) for f in describe_layout(table)}
    assert {level for day, level in levels if "01-02" in str(day)}.isdisjoint({0})
    with pytest.raises(paimon.InvalidRequest, match="'v'"):
        paimon.spark.compact(table, where="v = 1")


def first_try() -> bool:
    context = TaskContext.get()
    assert context is not None
    return context.attemptNumber() == 0


def double_after_failure(marks: str, fails: Callable[[], None], task: int) -> int:
    Path(marks, f"{task}-{os.getpid()}-{os.urandom(3).hex()}").touch()
    if task == 1 and first_try():
        fails()
    return 2 * task


def raises() -> None:
    raise RuntimeError("the first try fails")


def exit_process() -> None:
    os._exit(9)


@pytest.mark.parametrize("fails", [raises, exit_process])
def test_failed_and_killed_tasks_are_retried(spark: SparkSession, tmp_path: Path, fails: Callable[[], None]) -> None:
    executor = spark_executor(spark, pickle.dumps, pickle.loads)
    assert list(executor.map(partial(double_after_failure, str(tmp_path), fails), range(4))) == [0, 2, 4, 6]
    assert len(list(tmp_path.iterdir())) >= 5
    assert list(executor.map(partial(double_after_failure, str(tmp_path), fails), [])) == []


class TestSparkExecutor(ExecutorContract):
    runs_in_this_process = False

    @pytest.fixture(autouse=True)
    def _use_session(self, spark: SparkSession) -> None:
        self.spark = spark

    def make_executor(self) -> Executor:
        return spark_executor(self.spark, pickle.dumps, pickle.loads)


def count_frozen(task: bytes) -> tuple[int, int]:
    return len(task), gc.get_freeze_count()


@pytest.mark.parametrize("size", [1, 400_000])
def test_tasks_travel_with_the_function_or_as_rows(spark: SparkSession, size: int) -> None:
    """The second job finds the modules of the first one frozen in the processes of Spark, which are used again."""
    executor = spark_executor(spark, pickle.dumps, pickle.loads)
    sizes = [size, 0, size + 1, 2]
    for _ in range(2):
        found = list(executor.map(count_frozen, [bytes(n) for n in sizes]))
        assert [n for n, _ in found] == sizes
    assert max(frozen for _, frozen in found) > 10_000


def fail_task(task: int) -> int:
    raise ValueError(f"task {task} cannot be done")


def test_a_task_that_spark_aborts_commits_no_rows(spark: SparkSession, catalog: paimon.Catalog) -> None:
    with pytest.raises(StorageError, match="cannot be done"):
        list(spark_executor(spark, pickle.dumps, pickle.loads).map(fail_task, range(2)))
    table = orders(catalog)
    before = rows(table)
    bucket = next(iter(Path(table.location).glob("*/bucket-0")))
    hidden = next(iter(bucket.glob("data-*")))
    hidden.rename(hidden.with_suffix(".away"))
    with pytest.raises(StorageError, match="Spark"):
        paimon.spark.compact(table, full=True, spark=spark)
    hidden.with_suffix(".away").rename(hidden)
    snapshot = table.snapshot()
    assert snapshot is not None and snapshot.id == 3
    assert rows(table) == before
    assert paimon.spark.compact(table, full=True, spark=spark).snapshot_ids == (4,), "leftover files have no effect"
    assert rows(table) == before


@pytest.mark.parametrize("strategy", [pytest.param("order", marks=pytest.mark.nightly), "zorder"])
def test_tasks_sort_ranges_of_keys(spark: SparkSession, catalog: paimon.Catalog, strategy: str) -> None:
    """The files of all tasks have the rows before; in key order, they are one sorted table."""
    table = catalog.create_table(
        "db.clicks", "a INT, b STRING, day STRING", partition_keys=["day"],
        options={"target-file-size": "1 kb", "deletion-vectors.enabled": "true"},
    )  # fmt: skip
    for part in range(3):
        numbers = [(i * 7919 + part) % 1000 for i in range(400)]
        days = [("x", "y", "y")[n % 3] for n in numbers]
        table.write({"a": pa.array(numbers, pa.int32()), "b": [f"t{n % 7}" for n in numbers], "day": days})
    table.delete(where="a < 10")
    before = table.scan().to_arrow().sort_by([("a", "ascending"), ("b", "ascending")])
    done = paimon.spark.compact(table, order_strategy=strategy, order_by=["a", "b"], spark=spark)
    assert (done.buckets, done.files_before, done.rows) == (2, 6, before.num_rows)
    assert done.files_after > 2, "the larger partition has two ranges"
    assert table.scan().to_arrow().sort_by([("a", "ascending"), ("b", "ascending")]) == before
    assert table.system_table("table_indexes").scan().count() == 0, "the vectors are removed"
    if strategy == "order":
        files = table.system_table("files").scan().to_arrow().to_pylist()
        for day in "xy":
            bounds = sorted(read_range_of_a(f) for f in files if day in str(f["partition"]))
            assert all(low[1] <= high[0] for low, high in pairwise(bounds))


def read_range_of_a(file: dict[str, str]) -> tuple[int, int]:
    low, high = (int(re.findall(r"a=(\d+)", file[name])[0]) for name in ("min_value_stats", "max_value_stats"))
    return low, high


def test_buckets_are_sorted_by_one_task_each(spark: SparkSession, catalog: paimon.Catalog) -> None:
    options = {"bucket": 2, "bucket-key": "b", "write-only": True}
    table = catalog.create_table("db.clicks", "a INT, b INT", options=options)
    for part in range(2):
        numbers = pa.array([(i * 7 + part) % 50 for i in range(50)], pa.int32())
        table.write({"a": numbers, "b": numbers})
    done = paimon.spark.compact(table, order_strategy="hilbert", order_by=["a", "b"], spark=spark)
    assert (done.buckets, done.files_after, done.rows) == (2, 2, 100)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_sort_of_dynamic_buckets_is_refused_also_by_a_dry_run(
    spark: SparkSession, catalog: paimon.Catalog, dry_run: bool
) -> None:
    table = catalog.create_table("db.clicks", "a INT, b INT", primary_keys=["a"])
    with pytest.raises(Unsupported, match="dynamic buckets on Spark"):
        paimon.spark.compact(table, order_strategy="order", order_by="b", dry_run=dry_run, spark=spark)


def test_tasks_cluster_new_files(spark: SparkSession, catalog: paimon.Catalog) -> None:
    """The new files of all ranges are on the level that the embedded compaction gives them, and are sorted."""
    options = {"clustering.incremental": True, "clustering.columns": "a", "num-sorted-run.compaction-trigger": 2}
    here, there = (
        catalog.create_table(f"db.{name}", "a INT", options={"target-file-size": "1 kb", **options})
        for name in ("here", "there")
    )
    for table in (here, there):
        for part in range(2):
            table.write({"a": pa.array([(i * 7919 + part) % 1000 for i in range(400)], pa.int32())})
    embedded, done = here.compact(), paimon.spark.compact(there, spark=spark)
    assert (done.files_before, done.rows) == (embedded.files_before, embedded.rows) == (2, 800)
    files = there.system_table("files").scan().to_arrow().to_pylist()
    assert {f["level"] for f in files} == {f[2] for f in describe_layout(here)} != {0}
    bounds = sorted(map(read_range_of_a, files))
    assert len(bounds) > 1 and all(low[1] <= high[0] for low, high in pairwise(bounds))


def test_tasks_write_read_and_compact_files_outside_a_table(spark: SparkSession, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    catalog = paimon.connect(tmp_path / "lake", allowed_roots=[outside])
    catalog.create_database("db")
    external = "data-file.external-paths"
    options = {"bucket": "1", external: f"file://{outside}", f"{external}.strategy": "entropy-inject"}
    table = catalog.create_table("db.t", "k BIGINT NOT NULL", primary_keys=["k"], options=options)
    table.write([{"k": 1}])
    paimon.spark.write(spark.createDataFrame([(2,)], "k BIGINT"), table)
    paimon.spark.compact(table, full=True, spark=spark)
    assert paimon.spark.read(spark, table).count() == 2
    assert list(Path(table.location).rglob("bucket-*")) == []
    with pytest.raises(paimon.CorruptTable, match="allowed_roots"):
        paimon.spark.read(spark, table.location).count()
