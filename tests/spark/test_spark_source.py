"""Options of the data source: storage, catalog, time travel, columns; others are refused by name."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from attrs import evolve
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from support.case_lists import mark_nightly

import paimon
import paimon.spark
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import IntType
from paimon.spark.options import parse_source_options, to_source_options
from paimon.spark.write import _write_rows, prepare_for_tasks

pytestmark = pytest.mark.spark

SECRET = "s3cr3t-planted-7"
DDL = "id BIGINT NOT NULL, note STRING"


def rows(count: int, start: int = 0) -> pa.Table:
    ids = list(range(start, start + count))
    return pa.table({"id": ids, "note": [f"n{i}" for i in ids]})


def create_keyed_table(catalog: paimon.Catalog, name: str = "db.t") -> paimon.Table:
    return catalog.create_table(name, DDL, primary_keys=["id"], options={"bucket": 2})


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


# --- storage and catalog


@pytest.fixture(params=["single-writer", "jdbc"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> paimon.Catalog:
    """A warehouse on a storage without put-if-absent. It refuses several writers unless the options allow them."""
    root = f"local://{tmp_path}/lake"
    if request.param == "jdbc":
        options = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/catalog.db", "jdbc_password": SECRET}
        made = paimon.connect(root, storage={"secret": SECRET}, **options)
    else:
        made = paimon.connect(root, storage={"single-writer": True, "secret": SECRET})
    made.create_database("db")
    return made


@pytest.mark.slow("the first case starts Spark")
def test_tasks_and_committer_have_the_storage_and_the_catalog(
    spark: SparkSession, guarded: paimon.Catalog, capfd: pytest.CaptureFixture[str]
) -> None:
    table = create_keyed_table(guarded)
    frame = spark.createDataFrame(rows(20))
    done = paimon.spark.write(frame, table)
    assert (done.snapshot_ids, done.rows, done.files) == ((1,), 20, 2)
    read = paimon.spark.read(spark, table, where="id >= 5")
    assert read.count() == 15
    assert paimon.spark.compact(table, full=True, spark=spark).files_before == 2
    plain = guarded.create_table("db.plain", DDL)
    frame.write.format("paimon").mode("append").options(**to_source_options(plain)).save(plain.location)
    assert plain.scan().count() == 20
    for text in (plan_of(read), json.dumps(to_source_options(table)), *capfd.readouterr()):
        assert SECRET not in text
    builder = prepare_for_tasks(table.new_batch_write_builder("me"), 2)
    for sent in (
        cloudpickle.dumps(partial(_write_rows, builder, None)),
        pickle.dumps(parse_source_options(sent_options(table))),
    ):
        assert SECRET.encode() not in sent


def sent_options(table: paimon.Table) -> dict[str, str]:
    return {"path": table.location, **to_source_options(table)}


def test_commits_of_spark_hold_the_lock_of_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    database = tmp_path / "catalog.db"
    options = {"metastore": "jdbc", "uri": f"sqlite:///{database}"}
    catalog = paimon.connect(tmp_path / "lake", **options)
    catalog.create_database("db")
    catalog.create_table("db.t", DDL)
    table = paimon.connect(tmp_path / "lake", lock_acquire_timeout="50 ms", **options).table("db.t")
    with sqlite3.connect(database) as connection:  # another process holds the lock for an hour
        connection.execute(
            "INSERT INTO paimon_distributed_locks (lock_id, acquired_at, expire_time_seconds) "
            "VALUES ('jdbc.db.t', datetime('now'), 3600)"
        )
    frame = spark.createDataFrame(rows(3))
    with pytest.raises(paimon.StorageError, match="lock"):
        paimon.spark.write(frame, table)
    assert table.snapshots() == []


def test_a_storage_that_refuses_several_writers_is_reported(spark: SparkSession, guarded: paimon.Catalog) -> None:
    table = guarded.create_table("db.plain", DDL)
    frame = spark.createDataFrame(rows(3))
    with pytest.raises(paimon.StorageError, match="single-writer"):
        paimon.spark.write(frame, table.location)
    with pytest.raises(PySparkException, match="single-writer"):
        frame.write.format("paimon").mode("append").save(table.location)
    assert table.snapshots() == []


def test_secrets_are_refused_as_options_of_spark() -> None:
    for given in (
        {"secret_access_key": SECRET},
        {"client_kwargs": {"password": SECRET}},
        {"url": f"s3://u:{SECRET}@h"},
    ):
        with pytest.raises(paimon.InvalidRequest, match="is a secret") as refused:
            parse_source_options({"path": "x", "storage": json.dumps(given)})
        assert SECRET not in str(refused.value)
    with pytest.raises(paimon.InvalidRequest, match="must be JSON") as refused:
        parse_source_options({"path": "x", "storage": f"secret={SECRET}"})
    assert SECRET not in str(refused.value)


def test_a_custom_engine_is_refused_and_not_replaced(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_keyed_table(catalog)
    own = table.with_engine(evolve(table.engine, recipe=(len, ("",))))
    with pytest.raises(paimon.Unsupported, match="engine of your own"):
        paimon.spark.read(spark, own)


def test_the_callbacks_of_a_table_are_called(spark: SparkSession, catalog: paimon.Catalog) -> None:
    events: list[object] = []
    table = create_keyed_table(catalog).with_callbacks(events.append)
    paimon.spark.write(spark.createDataFrame(rows(3)), table)
    assert len(events) == 1


# --- options


@pytest.mark.parametrize(
    ("name", "near"),
    [("snaphot", "snapshot"), ("snaphot-id", "snapshot"), ("version-as-of", "versionAsOf"), ("strage", "storage"),
     ("scan.snapshot-idd", "scan.snapshot-id"), ("timestamp-as-of", "timestampAsOf"), ("comit-user", "commit-user")],
)  # fmt: skip
def test_unknown_options_are_refused_with_the_nearest_name(name: str, near: str) -> None:
    with pytest.raises(paimon.InvalidRequest, match=f"Option '{name}' of the data source paimon is unknown.*{near}"):
        parse_source_options({"path": "x", name: "1"})


@pytest.mark.parametrize("text", ["", "seven", "1.0"])
def test_a_commit_identifier_is_a_whole_number(text: str) -> None:
    with pytest.raises(paimon.InvalidRequest, match="commit-identifier"):
        parse_source_options({"path": "x", "commit-identifier": text})


def test_time_travel_by_the_names_of_spark(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_keyed_table(catalog)
    table.write(rows(10))
    table.tags.create("first")
    table.write(rows(10, 10))
    (one, *_), between = table.snapshots(), table.snapshots()[-1].time_millis - 1

    def count(**options: object) -> int:
        return spark.read.format("paimon").options(**options).load(table.location).count()

    for options in (
        {"versionAsOf": 1}, {"VERSIONASOF": "first"}, {"versionasof": "1"}, {"snapshot": one.id}, {"tag": "first"},
        {"Scan.Snapshot-Id": 1}, {"timestampAsOf": pa.scalar(between, pa.timestamp("ms", "UTC")).as_py().isoformat()},
    ):  # fmt: skip
        assert count(**options) == 10, options
    assert count() == 20
    for wrong in ({"snaphot-id": 1}, {"versionAsOf": 1, "tag": "first"}, {"versionAsOf": "none"}, {"versionAsOf": ""},
                  {"timestampAsOf": "yesterday"}, {"snapshot": 0}):  # fmt: skip
        with pytest.raises(PySparkException, match=r"paimon\.domain\.errors"):
            count(**wrong)
    # Regression: any other scan option prevented the pinning of the snapshot, or removed the requested one.
    bounded = table.with_options({"scan.manifest.parallelism": 2})
    assert paimon.spark.read(spark, bounded, snapshot=1).count() == 10
    assert paimon.spark.read(spark, table, tag="first").count() == 10
    frame = paimon.spark.read(spark, bounded)
    table.write(rows(10, 20))
    assert frame.count() == 20


def test_a_tag_of_an_expired_snapshot_and_a_range_of_changes_are_read(
    spark: SparkSession, catalog: paimon.Catalog
) -> None:
    table = create_keyed_table(catalog)
    table.write(rows(10))
    table.tags.create("first")
    table.write(rows(5, 10))
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert paimon.spark.read(spark, table, tag="first").count() == 10
    assert paimon.spark.read(spark, table, options={"incremental-between": "first,first"}).count() == 0


def test_columns_added_after_the_last_write_are_null(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_keyed_table(catalog)
    table.write(rows(1))
    wider = table.alter(AddColumn("extra", IntType()))
    frame = paimon.spark.read(spark, wider)
    wider.alter(AddColumn("later", IntType()))
    assert frame.collect() == [(0, "n0", None)]
    assert paimon.spark.read(spark, wider, columns=[]).count() == 1


# --- columns, results, jobs that fail


def test_wrong_columns_are_refused_before_a_job(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_keyed_table(catalog)
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    wrong = [spark.range(3).withColumnRenamed("id", "other"), spark.createDataFrame(rows(2)).drop("id")]
    for frame in wrong:
        with pytest.raises(paimon.InvalidRequest, match="id"):
            paimon.spark.write(frame, table)
    for where in (None, "id > 0"):
        with pytest.raises(paimon.InvalidRequest, match="'nothing'"):
            paimon.spark.read(spark, table, columns=["nothing"], where=where)
    for given in ({"tasks": 0}, {"commit_user": ""}, {"kind_column": ""}, {"mode": "upsert"}):
        with pytest.raises(paimon.InvalidRequest):
            paimon.spark.write(spark.createDataFrame(rows(2)), table, **given)
    assert len(tracker.getJobIdsForGroup(None)) == before
    plain = catalog.create_table("db.plain", DDL)
    with pytest.raises(PySparkException, match=r"InvalidRequest: The data does not fit table"):
        wrong[0].write.format("paimon").mode("append").save(plain.location)


def test_a_job_that_fails_is_the_error_of_its_task_and_leaves_no_file(
    spark: SparkSession, catalog: paimon.Catalog
) -> None:
    table = create_keyed_table(catalog)
    keys = pa.table({"id": pa.array([1, 2, None], pa.int64()), "note": ["a", "b", "c"]})
    frame = spark.createDataFrame(keys).coalesce(1)

    def late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    with pytest.raises(paimon.InvalidRequest, match="Column 'id' is NOT NULL but contains 1 null"):
        paimon.spark.write(frame.mapInArrow(late, frame.schema), table)
    plain = catalog.create_table("db.plain", DDL)

    def fails_last(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if "n19" in batch["note"].to_pylist():
                time.sleep(3)  # the other tasks succeeded
                raise ValueError("the last task fails")
            yield batch

    many = spark.createDataFrame(rows(20)).repartitionByRange(2, "id").mapInArrow(fails_last, frame.schema)
    expected = "A function of the data frame failed in a task: ValueError: the last task fails. Correct the function"
    with pytest.raises(paimon.InvalidRequest, match=expected):
        paimon.spark.write(many, plain)
    assert plain.snapshots() == []
    assert not list(Path(plain.location).rglob("*.parquet"))


def test_system_tables_are_read_by_name(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_keyed_table(catalog)
    table.write(rows(10))
    for name in ("files", "snapshots", "options", "tags", "audit_log", "ro"):
        wanted = table.system_table(name).scan().to_arrow()
        for frame in (
            paimon.spark.read(spark, f"{table.location}${name}"),
            spark.read.format("paimon").load(f"{table.location}${name}"),
        ):
            assert frame.columns == wanted.column_names
            assert frame.count() == wanted.num_rows
    some = paimon.spark.read(spark, table.system_table("files"), columns=["record_count", "level"], where="level = 0")
    assert some.columns == ["record_count", "level"] and sum(r[0] for r in some.collect()) == 10
    with pytest.raises(paimon.InvalidRequest, match="system table"):
        paimon.spark.write(spark.createDataFrame(rows(1)), f"{table.location}$files")


@pytest.mark.slow("several commits, each read by Spark and embedded")
@pytest.mark.parametrize("producer", mark_nightly(["none", "input", "lookup", "full-compaction"], always=["lookup"]))
def test_changes_with_row_kinds_are_those_of_embedded_reads(
    spark: SparkSession, catalog: paimon.Catalog, producer: str
) -> None:
    options = {"bucket": 1, "changelog-producer": producer}
    table = catalog.create_table("db.t", DDL, primary_keys=["id"], options=options)
    table.write(rows(4))
    table.write(rows(4, 2))
    table.delete("id = 3")
    table.compact(full=True)
    table.write(rows(1, 9))
    between = {"incremental-between": f"1,{table.snapshots()[-1].id}"}
    modes = [{**between, "incremental-between-scan-mode": mode} for mode in ("auto", "delta", "changelog", "diff")]
    kinds: set[str] = set()
    for name in ("$audit_log", "$binlog", "$ro", ""):
        for given in ({}, *modes):
            scan = paimon.open_table(table.location + name, given).scan()
            embedded = scan.without_retracts() if name in ("$ro", "") else scan  # as queries read
            wanted = sorted(map(repr, embedded.to_arrow().to_pylist()))
            for frame in (
                paimon.spark.read(spark, table.location + name, options=given),
                spark.read.format("paimon").options(**given).load(table.location + name),
            ):
                found = [row.asDict(recursive=True) for row in frame.collect()]
                assert sorted(map(repr, found)) == wanted, (name, given)
                kinds |= {row["rowkind"] for row in found if "rowkind" in row}
    assert kinds >= {"+I", "-D"}


# --- what Spark does not support


def made(spark: SparkSession, location: str) -> None:
    spark.sql(f"CREATE TABLE made USING paimon OPTIONS (path '{location}') TBLPROPERTIES ('primary-key' = 'id')")


def used(spark: SparkSession, location: str) -> None:
    spark.sql("CREATE TABLE used (id BIGINT) USING paimon TBLPROPERTIES ('primary-key' = 'id')")
    try:
        spark.sql("SELECT * FROM used").collect()
    finally:
        spark.sql("DROP TABLE used")


@pytest.mark.parametrize("use", [made, used])
def test_tables_in_the_catalog_of_spark_name_the_way(
    spark: SparkSession, catalog: paimon.Catalog, use: Callable[[SparkSession, str], None]
) -> None:
    with pytest.raises(PySparkException, match=r"catalog cannot contain Paimon tables.*create_table.*TEMPORARY"):
        use(spark, create_keyed_table(catalog).location)


LAYOUTS: Mapping[str, Callable[[DataFrameWriter], DataFrameWriter]] = {
    "partitionBy": lambda writer: writer.partitionBy("note"),
    "bucketBy": lambda writer: writer.bucketBy(2, "id"),
    "bucketBy and sortBy": lambda writer: writer.bucketBy(2, "id").sortBy("id"),
    "clusterBy": lambda writer: writer.clusterBy("id"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_given_to_the_batch_writer_is_refused(
    spark: SparkSession, catalog: paimon.Catalog, layout: str
) -> None:
    table = catalog.create_table("db.t", DDL, partition_keys=["note"])
    frame = spark.createDataFrame(rows(1))
    with pytest.raises(PySparkException, match=r"does not support bucketBy|provided partitioning or clust"):
        LAYOUTS[layout](frame.write.format("paimon").mode("append")).save(table.location)
    assert table.snapshots() == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", mark_nightly(["partitionBy", "clusterBy"], always=["partitionBy"]))
def test_spark_does_not_show_the_layout_of_a_stream_writer(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path, name: str
) -> None:
    """Fails when Spark begins to show these columns, or refuses them: then check them, and change the documents."""
    table = catalog.create_table("db.t", DDL, partition_keys=["note"])
    spark.createDataFrame(rows(2)).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id BIGINT, note STRING").parquet(str(tmp_path / "in"))
    writer = stream.writeStream.format("paimon").option("checkpointLocation", str(tmp_path / "checkpoint"))
    shown = getattr(writer.trigger(availableNow=True), name)("id")
    shown.start(table.location).awaitTermination()
    folders = {path.parent.parent.name for path in Path(table.location).rglob("*.parquet")}
    assert folders == {"note=n0", "note=n1"}


def test_a_view_has_the_options(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.plain", DDL)
    table.write(rows(4))
    spark.sql(f"CREATE TEMPORARY VIEW v USING paimon OPTIONS (path '{table.location}', storage '{{}}')")
    try:
        spark.sql("INSERT INTO v VALUES (9, 'sql')")
        assert spark.sql("SELECT count(*) FROM v").collect() == [(5,)]
    finally:
        spark.sql("DROP VIEW v")


SCRIPT = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pyspark.sql import SparkSession
import paimon, paimon.spark
from paimon.results import find_reads
folder = Path(sys.argv[1])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.sparkContext.pythonExec == "python3", spark.sparkContext.pythonExec
paimon.spark.register(spark)
assert spark.sparkContext.pythonExec == sys.executable
catalog = paimon.connect(folder / "lake"); catalog.create_database("db")
table = catalog.create_table("db.t", "id BIGINT"); table.write({"id": [1, 2]})
spark.conf.set("spark.paimon.parquet-reader", "python")
print("rows", spark.read.format("paimon").load(table.location).count())
paimon.spark.register(spark); paimon.spark.session()
with ThreadPoolExecutor(4) as pool:  # all need the same classes in Java
    frames = list(pool.map(lambda _: paimon.spark.read(spark, table, where="id % 2 = 0"), range(4)))
assert [len(list(find_reads(frame).reads)) for frame in frames] == [1] * 4
os.environ["PYSPARK_PYTHON"] = spark.sparkContext.pythonExec = str(folder / "bare")
try:
    paimon.spark.register(spark.newSession())
except paimon.InvalidRequest as error:
    print("refused", error)
paimon.spark.attach(spark, catalog)
assert spark.table("lake.db.t").columns == ["id"]
spark.stop()
del os.environ["PYSPARK_PYTHON"]
fresh = paimon.spark.session()
print("master", fresh.sparkContext.master)
paimon.spark.attach(fresh, catalog)  # Py4J remembers methods of the classes of the first session
assert fresh.table("lake.db.t").columns == ["id"]
fresh.stop()
"""


def test_workers_run_this_python_and_the_source_is_registered_once(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    for name in ("bare", "python3"):  # the python3 of the PATH lacks this package
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    environment = {k: v for k, v in os.environ.items() if k != "PYSPARK_PYTHON"}
    environment["PATH"] = f"{tmp_path}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        [sys.executable, script, tmp_path], capture_output=True, text=True, env=environment, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rows 2" in done.stdout and "master local[*]" in done.stdout
    assert f"refused Spark's workers run {bare}" in done.stdout
    assert "replaced a previously registered" not in done.stderr
