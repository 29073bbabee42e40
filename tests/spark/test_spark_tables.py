"""Spark reads and writes the same tables as embedded code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.case_lists import mark_nightly

import paimon
import paimon.spark
from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.builders import direct_writes
from paimon.domain.commit.message_codec import decode
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import IntType
from paimon.operations.table_context import TableContext
from paimon.ports.snapshots import PublishOutcome
from paimon.spark.options import parse_source_options
from paimon.spark.tasks.routing import DISTRIBUTION, check_one_writer_per_bucket, gather_rows
from paimon.spark.types import to_spark_batch, to_spark_schema
from paimon.spark.writer import OVERWRITE_MODE, EncodedMessages, PaimonWriter, write_rows

pytestmark = pytest.mark.spark
SINGLE = 0.10000000149011612
"""0.1 in single precision."""


def test_names_of_columns_may_have_dots_and_quotes(spark: SparkSession, catalog: paimon.Catalog) -> None:
    columns = "`a.b` INT NOT NULL, `c``d` STRING, `l.m` ARRAY<INT>, `s.t` ROW<X INT>"
    table = catalog.create_table("db.named", columns, primary_keys=["a.b"], options={"bucket": "2"})
    rows = "SELECT id AS `A.B`, INTERVAL '1' DAY AS `c``d`, array() AS `l.m`, named_struct('x', 5) AS `s.t`"
    paimon.spark.write(spark.sql(f"{rows} FROM VALUES (1), (2) v(id)"), table)
    source = spark.sql("SELECT 2 AS `a.b`, 'new' AS `c``d`")
    merged = paimon.spark.merge(source, table, ["a.b"]).when_matched_update({"c`d": "'new'"}).execute()
    assert merged.updated == 1
    frame = paimon.spark.read(spark, table, where="`a.b` > 0")
    assert sorted(tuple(row) for row in frame.collect()) == [
        (1, "INTERVAL '1' DAY", [], (5,)), (2, "new", [], (5,)),
    ]  # fmt: skip


def test_an_overwrite_of_named_partitions(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.named", "id BIGINT, day STRING", partition_keys=["day"])
    table.write([{"id": 1, "day": "a"}, {"id": 2, "day": "b"}])
    frame = spark.createDataFrame([(3, "a")], "id BIGINT, day STRING")
    paimon.spark.write(frame.where("id > 5"), table, "overwrite", partition={"day": "a"})
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "day": "b"}]
    paimon.spark.write(frame, table, "overwrite", partition={})
    assert table.scan().to_arrow().to_pylist() == [{"id": 3, "day": "a"}]


DDL = "id BIGINT NOT NULL, day STRING NOT NULL, amount INT, note STRING"


def orders(catalog: paimon.Catalog, **options: object) -> paimon.Table:
    return catalog.create_table(
        "db.orders", DDL, primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": 3, **options}
    )


def rows(start: int, stop: int, note: str) -> pa.Table:
    ids = list(range(start, stop))
    days = [f"2026-01-0{1 + i % 3}" for i in ids]
    return pa.table({"id": ids, "day": days, "amount": pa.array(ids, pa.int32()), "note": [note] * len(ids)})


def by_id(table: pa.Table) -> list[dict[str, object]]:
    return table.sort_by("id").to_pylist()


def test_upserts_routed_through_spark_read_the_same_everywhere(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    paimon.spark.write(spark.createDataFrame(rows(0, 200, "a")).repartition(5), table)
    paimon.spark.write(spark.createDataFrame(rows(100, 300, "b")).repartition(4), table, tasks=3)
    wanted = by_id(pa.concat_tables([rows(0, 100, "a"), rows(100, 300, "b")]))
    assert by_id(table.scan().to_arrow()) == wanted
    assert by_id(paimon.spark.read(spark, table).toArrow()) == wanted
    assert [s.commit_kind.value for s in table.snapshots()] == ["APPEND", "APPEND"]
    files = [(s.partition, s.bucket, len(s.files)) for s in table.scan(snapshot=1).plan().splits]
    assert all(count == 1 for _, _, count in files), "each bucket is written by one task"


def test_tasks_compact_the_buckets_that_they_write(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = orders(catalog, **{"num-sorted-run.compaction-trigger": 2})
    for step in range(3):
        paimon.spark.write(spark.createDataFrame(rows(0, 100, str(step))).repartition(3), table, tasks=2)
    assert by_id(table.scan().to_arrow()) == by_id(rows(0, 100, "2"))
    kinds = [s.commit_kind.value for s in table.snapshots()]
    assert kinds.count("APPEND") == 3 and "COMPACT" in kinds
    levels = [f.level for s in table.scan().plan().splits for f in s.files]
    assert len(levels) < 27 and max(levels) > 0, "nine buckets were written three times"


def test_columns_filters_and_time_travel(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    table.write(rows(0, 50, "old"))
    table.write(rows(0, 50, "new"))
    frame = paimon.spark.read(spark, table, columns=["note", "id"], where="id >= 10 AND note LIKE 'n%'")
    assert frame.columns == ["note", "id"]
    assert by_id(frame.toArrow()) == [{"note": "new", "id": i} for i in range(10, 50)]
    plain = spark.read.format("paimon").option("scan.snapshot-id", "1").load(table.location)
    assert plain.where("day = '2026-01-01' AND amount < 9").select("note").distinct().collect() == [("old",)]
    assert paimon.spark.read(spark, table, snapshot=1).where("id = 7").toArrow().num_rows == 1


def test_a_data_frame_pins_its_snapshot(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    table.write(rows(0, 10, "a"))
    frame = paimon.spark.read(spark, table)
    table.write(rows(10, 20, "b"))
    assert frame.count() == 10


def test_every_type_survives(spark: SparkSession, catalog: paimon.Catalog) -> None:
    ddl = """
        id INT NOT NULL, b BOOLEAN, ti TINYINT, si SMALLINT, l BIGINT, f FLOAT, d DOUBLE, dec DECIMAL(20, 4),
        c CHAR(3), v VARCHAR(5), s STRING, bin BYTES, dt DATE, t TIME(3), ts TIMESTAMP(6),
        tz TIMESTAMP(3) WITH LOCAL TIME ZONE, a ARRAY<INT>, m MAP<STRING, BIGINT>, r ROW<x INT, y ARRAY<STRING>>
    """
    table = catalog.create_table("db.types", ddl)
    row = {
        "id": 1, "b": True, "ti": -1, "si": 300, "l": 2**40, "f": 0.5, "d": 1e300, "c": "abc", "v": "hello", "s": "λ",
        "dec": Decimal("12345678901234.5678"), "bin": b"\x00\xff", "t": time(23, 59, 59, 123000),
        "ts": datetime(2026, 1, 1, 1, 2, 3, 456789), "tz": datetime(2026, 1, 1, tzinfo=UTC), "a": [1, None],
        "m": [("k", 9)], "dt": date(2026, 1, 31),
        "r": {"x": 5, "y": ["z"]},
    }  # fmt: skip
    table.write([row, {"id": 2}])
    back = paimon.spark.read(spark, table)
    assert back.schema == to_spark_schema(table.arrow_schema)
    copy = catalog.create_table("db.copy", ddl)
    paimon.spark.write(back, copy)
    assert copy.scan().to_arrow().sort_by("id").to_pylist() == table.scan().to_arrow().sort_by("id").to_pylist()


def test_nanoseconds_are_cut_downwards_also_before_1970() -> None:
    for zone in (None, "UTC"):
        rows = pa.record_batch({"at": pa.array([-1_001, -1_000, -1, 0, 999, 1_001, None], pa.timestamp("ns", zone))})
        found = to_spark_batch(rows, pa.schema([("at", pa.timestamp("us", zone))]))
        assert found["at"].cast(pa.int64()).to_pylist() == [-2, -1, -1, 0, 0, 1, None]

        def in_each_type(at: pa.DataType, *values: int) -> pa.RecordBatch:
            times = [*values, None]
            kinds = {"a": pa.list_(at), "m": pa.map_(at, at), "r": pa.struct([("x", pa.list_(at)), ("id", pa.int32())])}
            nested = {"a": times, "m": list(zip(values, values, strict=True)), "r": {"x": times, "id": 1}}
            columns = [pa.array([None, nested[name], None], kind) for name, kind in kinds.items()]
            return pa.record_batch(columns, list(kinds))

        expected = in_each_type(pa.timestamp("us", zone), -1, -2, 0, 1)
        found = to_spark_batch(in_each_type(pa.timestamp("ns", zone), -1, -1_001, 0, 1_001).slice(1), expected.schema)
        assert found.equals(expected.slice(1))


def test_empty_tables_and_empty_frames(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    assert paimon.spark.read(spark, table).count() == 0
    paimon.spark.write(spark.createDataFrame(rows(0, 0, "")), table)
    assert table.snapshots() == []


def test_append_tables_take_the_standard_way_and_keyed_ones_refuse_it(
    spark: SparkSession, catalog: paimon.Catalog
) -> None:
    plain = catalog.create_table("db.plain", DDL)
    frame = spark.createDataFrame(rows(0, 30, "x"))
    frame.write.format("paimon").mode("append").save(plain.location)
    assert plain.scan().count() == 30
    with pytest.raises(PySparkException, match=r"paimon\.spark\.write"):
        frame.write.format("paimon").mode("append").save(orders(catalog).location)


def test_overwrite_replaces_the_partitions_that_are_written(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    table.write(rows(0, 30, "old"))
    fresh = rows(0, 3, "new").filter(pa.array([True, False, False]))
    paimon.spark.write(spark.createDataFrame(fresh), table, mode="overwrite")
    assert {(r["day"], r["note"]) for r in table.scan().to_arrow().to_pylist()} == {
        ("2026-01-01", "new"), ("2026-01-02", "old"), ("2026-01-03", "old"),
    }  # fmt: skip


def test_rows_are_gathered_by_partition_before_a_write(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.gathered", "id BIGINT, p INT", partition_keys=["p"])
    frame = spark.range(0, 60, 1, 3).selectExpr("id", "CAST(id % 4 AS INT) AS p")
    assert paimon.spark.write(frame, table).files == 4
    assert paimon.spark.write(frame, table, tasks=2).files == 4
    spark.conf.set(DISTRIBUTION, "none")
    try:
        assert paimon.spark.write(frame, table).files == 12
        spark.conf.set(DISTRIBUTION, "all")
        with pytest.raises(paimon.InvalidRequest, match=r"write-distribution' is 'all'\. Set it to partition"):
            paimon.spark.write(frame, table)
    finally:
        spark.conf.unset(DISTRIBUTION)
    assert table.scan().count() == 180


def test_variants_are_those_of_spark(spark: SparkSession, catalog: paimon.Catalog) -> None:
    ddl = "id INT NOT NULL, v VARIANT, a ARRAY<VARIANT>"
    table = catalog.create_table("db.v", ddl, primary_keys=["id"], options={"bucket": 1})
    values = (
        "SELECT 1 AS id, parse_json('{\"a\": 5}') AS v, array(parse_json('true')) AS a UNION ALL SELECT 2, NULL, NULL"
    )
    paimon.spark.write(spark.sql(values), table)
    session = paimon.spark.connect(spark, catalog)
    frames = [
        paimon.spark.read(spark, table),
        paimon.spark.read(spark, table, where="id IN (1, 2)"),  # read by this process
        spark.read.format("paimon").load(table.location),
        session.sql("SELECT * FROM db.v"),
    ]
    for frame in frames:
        assert frame.schema.simpleString() == "struct<id:int,v:variant,a:array<variant>>"
    read = frames[0].unionAll(frames[1]).unionAll(frames[2]).unionAll(frames[3])
    found = read.selectExpr("variant_get(v, '$.a', 'int') AS x", "to_json(a[0]) AS y").collect()
    assert sorted((r.x or 0, r.y) for r in found if r.x) == [(5, "true")] * 4 and len(found) == 8
    session.sql("CREATE TABLE db.w AS SELECT * FROM db.v; INSERT INTO db.w SELECT id, v, NULL FROM db.v WHERE id = 1")
    assert session.sql("SELECT sum(variant_get(v, '$.a', 'int')) AS s FROM db.w").first().s == 10
    assert session.catalog.table("db.w").arrow_schema.types == table.arrow_schema.types


@pytest.mark.parametrize("mode", mark_nightly([None, "static", "dynamic"], always=[None, "dynamic"]))
def test_overwrites_follow_the_mode_of_the_session(
    spark: SparkSession, catalog: paimon.Catalog, mode: str | None
) -> None:
    table = catalog.create_table("db.modes", "id INT, p STRING", partition_keys=["p"])
    frame = spark.sql("SELECT 9 AS id, 'a' AS p").coalesce(1)
    source = frame.write.format("paimon").mode("overwrite")
    session = paimon.spark.connect(spark, catalog)
    by_session = {
        "source": lambda: source.save(table.location),
        "write": lambda: paimon.spark.write(frame, table, "overwrite"),
        "statement": lambda: session.sql("INSERT OVERWRITE db.modes SELECT 9, 'a'"),
    }
    by_option = {
        "static": lambda: paimon.spark.write(
            frame, table, "overwrite", options={"dynamic-partition-overwrite": "false"}
        ),
        "dynamic": lambda: source.option("partitionOverwriteMode", "dynamic").save(table.location),
    }

    def is_static(overwrite: Callable[[], object]) -> bool:
        table.overwrite([{"id": 1, "p": "a"}, {"id": 2, "p": "b"}], {})
        overwrite()
        found = sorted(r["id"] for r in table.scan().to_arrow().to_pylist())
        assert found in ([9], [2, 9])
        return found == [9]

    if mode is not None:
        spark.conf.set(OVERWRITE_MODE, mode)
    try:
        found = {name: is_static(overwrite) for name, overwrite in (by_session | by_option).items()}
    finally:
        spark.conf.unset(OVERWRITE_MODE)
    # Without a mode of the session, Spark's own default applies to its writer, and the option of the table elsewhere.
    wanted = {"source": mode != "dynamic", "write": mode == "static", "statement": mode == "static"}
    assert found == {**wanted, "static": True, "dynamic": False}


def test_an_unknown_overwrite_mode_is_refused(catalog: paimon.Catalog) -> None:
    with pytest.raises(paimon.InvalidRequest, match=r"'partitionOverwriteMode' is 'all'\. Use static or dynamic"):
        parse_source_options({"path": "a/b", "partitionOverwriteMode": "all"})


def test_a_worker_that_dies_is_named(spark: SparkSession, catalog: paimon.Catalog) -> None:
    def die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os._exit(9)

    frame = spark.range(1).mapInArrow(die, "id BIGINT")
    with pytest.raises(paimon.StorageError, match=r"a process of a task died \(.*Read the logs of the executors"):
        paimon.spark.write(frame, catalog.create_table("db.plain", "id BIGINT"))
    with pytest.raises(paimon.InvalidRequest, match="Spark cannot compute the data frame: DIVIDE_BY_ZERO: Division"):
        paimon.spark.write(spark.range(1).selectExpr("id div id AS id"), catalog.table("db.plain"))


def test_new_columns_are_added_and_numbers_are_rounded_as_insert_does(
    spark: SparkSession, catalog: paimon.Catalog
) -> None:
    ddl = "id BIGINT NOT NULL, ratio FLOAT"
    keyed = catalog.create_table("db.keyed", ddl, primary_keys=["id"], options={"bucket": 2})
    plain = catalog.create_table("db.plain", ddl)
    frame = spark.sql("SELECT 1L AS id, 0.1D AS ratio, 'a' AS note, '+I' AS op")
    with pytest.raises(paimon.InvalidRequest, match="no such column"):
        paimon.spark.write(frame, keyed, kind_column="op")
    paimon.spark.write(frame, keyed, kind_column="op", merge_schema=True)
    frame.select("id", "ratio").write.format("paimon").mode("append").save(plain.location)
    assert catalog.table("db.keyed").scan().to_arrow().to_pylist() == [{"id": 1, "ratio": SINGLE, "note": "a"}]
    assert plain.scan().to_arrow().to_pylist() == [{"id": 1, "ratio": SINGLE}]
    wrong = spark.sql("SELECT 'x' AS id, 1 AS size")
    with pytest.raises(paimon.InvalidRequest, match="another type"):
        paimon.spark.write(wrong, keyed, merge_schema=True)
    with pytest.raises(paimon.InvalidRequest, match=r"'ratio' cannot be set: 1e\+39 does not fit FLOAT"):
        paimon.spark.write(spark.sql("SELECT 1L AS id, 1e39D AS ratio"), keyed)
    assert catalog.table("db.keyed").table_schema.names == ("id", "ratio", "note")


TABLES_THAT_COMPACT: dict[str, dict[str, Any]] = {
    "append": {},
    "fixed": {"bucket": 1, "num-sorted-run.compaction-trigger": 2},
    "dynamic": {"bucket": -1, "num-sorted-run.compaction-trigger": 2},
    "vectors": {"bucket": 1, "deletion-vectors.enabled": True},
    "lookup": {"bucket": 1, "changelog-producer": "lookup", "num-sorted-run.compaction-trigger": 1},
    "first": {"bucket": 1, "merge-engine": "first-row"},
    "expiring": {"bucket": 1, "record-level.expire-time": "100000 d", "record-level.time-field": "seconds"},
}


@pytest.mark.parametrize("kind", mark_nightly(TABLES_THAT_COMPACT, always=["lookup"]))
def test_new_columns_are_published_with_the_rows_or_not_at_all(
    spark: SparkSession, catalog: paimon.Catalog, kind: str
) -> None:
    """Tasks write and compact under the planned schema, before it is published."""
    keys = {} if kind == "append" else {"primary_keys": ["id"]}
    ddl = "id BIGINT NOT NULL, seconds INT"
    table = catalog.create_table("db.t", ddl, options=TABLES_THAT_COMPACT[kind], **keys)  # type: ignore[arg-type]
    schemas = Path(table.location) / "schema"
    for start in (0, 10):
        paimon.spark.write(spark.range(start, start + 5).selectExpr("id", "2000000000 seconds"), table)
    snapshots, files = len(table.snapshots()), len(list(Path(table.location).rglob("data-*")))
    for failing in (
        "CAST(NULL AS BIGINT) AS id, 1 AS seconds, 2 AS extra",
        "1L AS id, CAST(raise_error('no') AS INT) AS seconds, 2 AS extra",
    ):
        with pytest.raises(paimon.PaimonError):
            paimon.spark.write(spark.sql(f"SELECT {failing}"), table, merge_schema=True)
    assert [path.name for path in schemas.iterdir()] == ["schema-0"]
    assert (len(table.snapshots()), len(list(Path(table.location).rglob("data-*")))) == (snapshots, files)
    added = spark.range(3, 12).selectExpr("id", "2000000000 seconds", "CAST(id AS STRING) extra")
    assert paimon.spark.write(added, table, merge_schema=True).rows == 9
    changed = catalog.table("db.t")
    assert changed.table_schema.names == ("id", "seconds", "extra") and not changed.maintain.check(deep=True).faults
    found = {row["id"]: row["extra"] for row in changed.scan().to_arrow().to_pylist()}
    assert set(found) == {*range(15)}
    assert found[7] == "7" and found[0] is None
    if kind != "append":
        assert found[4] == (None if kind == "first" else "4")


def test_new_columns_are_planned_again_if_another_schema_is_published_first(
    spark: SparkSession, catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("db.t", "id BIGINT NOT NULL", primary_keys=["id"], options={"bucket": 1})
    publish = direct_writes.publish_schema

    def publish_after_another(context: TableContext) -> bool:
        monkeypatch.setattr(direct_writes, "publish_schema", publish)
        catalog.table("db.t").alter(AddColumn("other", IntType()))
        return publish(context)

    monkeypatch.setattr(direct_writes, "publish_schema", publish_after_another)
    paimon.spark.write(spark.sql("SELECT 1L AS id, 2 AS extra"), table, merge_schema=True)
    assert catalog.table("db.t").scan().to_arrow().to_pylist() == [{"id": 1, "other": None, "extra": 2}]
    assert len(list(Path(table.location).rglob("data-*"))) == 1


def test_names_match_as_the_session_compares_them(spark: SparkSession, catalog: paimon.Catalog) -> None:
    ddl = "Id BIGINT, Amount BIGINT, part ROW<Size INT, kinds ARRAY<ROW<Name STRING>>>"
    table = catalog.create_table("db.t", ddl)
    sql = (
        "SELECT {0}L AS ID, 10L AS {1}, "
        "named_struct('SIZE', 1, 'Kinds', array(named_struct('NAME', 'x'))) AS Part, '+I' AS op"
    )
    for number, merges in enumerate((True, False)):
        frame = spark.sql(sql.format(number, "amount"))
        paimon.spark.write(frame, table, kind_column="op", merge_schema=merges)
    both = spark.sql("SELECT 1L AS Id, 1 AS note, 2 AS NOTE")
    with pytest.raises(paimon.InvalidRequest, match="Columns 'note', 'NOTE' are the same one in this session"):
        paimon.spark.write(both, table, merge_schema=True)
    with pytest.raises(paimon.InvalidRequest, match="Columns 'amount', 'Amount' are the same one"):
        paimon.spark.write(spark.sql("SELECT 1L AS amount, 2L AS Amount"), table)
    assert catalog.table("db.t").table_schema.names == ("Id", "Amount", "part")
    part = {"Size": 1, "kinds": [{"Name": "x"}]}
    found = catalog.table("db.t").scan().to_arrow().sort_by("Id").to_pylist()
    assert found == [{"Id": n, "Amount": 10, "part": part} for n in (0, 1)]
    assert paimon.spark.read(spark, table).select("amount").collect() == [(10,), (10,)]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(paimon.InvalidRequest, match="no such column"):
            paimon.spark.write(spark.sql("SELECT 1L AS Id, 1L AS amount"), table)
        paimon.spark.write(spark.sql("SELECT 5L AS Id, 1L AS amount"), table, merge_schema=True)
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
    assert catalog.table("db.t").table_schema.names == ("Id", "Amount", "part", "amount")
    with pytest.raises(paimon.InvalidRequest, match="Column 'AMOUNT' can be 'Amount' or 'amount' of the table"):
        paimon.spark.write(spark.sql("SELECT 1L AS Id, 1L AS AMOUNT"), catalog.table("db.t"))


def test_deletes_are_sent_as_row_kinds(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    table.write(rows(0, 10, "a"))
    changes = rows(0, 5, "gone").append_column("op", pa.array(["-D"] * 5))
    paimon.spark.write(spark.createDataFrame(changes), table, kind_column="op")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(5, 10))


@pytest.mark.parametrize("identifier", mark_nightly([0, 7], always=[0]))
def test_a_repeated_job_commits_once(spark: SparkSession, catalog: paimon.Catalog, identifier: int) -> None:
    table = append_table(catalog)
    frame = spark.createDataFrame(rows(0, 9, "x"))
    job = {"commit_user": "job", "commit_identifier": identifier}
    results = [paimon.spark.write(frame, table, **job) for _ in range(2)]
    assert [result.snapshot_ids for result in results] == [(1,), ()]
    assert results[0].rows == 9 and results[0].files == len(list(Path(table.location).rglob("*.parquet")))
    text = {"commit-user": "job", "commit-identifier": str(identifier)}
    frame.write.format("paimon").mode("append").options(**text).save(table.location)
    assert table.scan().count() == 9
    assert len(table.snapshots()) == 1


def test_failed_tasks_are_retried_and_never_duplicate_rows(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path
) -> None:
    table = orders(catalog)
    frame = spark.createDataFrame(rows(0, 300, "once"))
    tripped = str(tmp_path / "tripped")

    def trip_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            Path(f"{tripped}-{context.partitionId()}").touch()
            raise RuntimeError("this task fails at its first attempt")

    # The failure comes after the writer read all rows. The files of that attempt must not be committed.
    routed = frame.repartition(2).sortWithinPartitions("id").mapInArrow(trip_once, frame.schema)
    paimon.spark.write(routed, table)
    assert list(tmp_path.glob("tripped-*"))
    assert table.scan().count() == 300
    assert len(table.snapshots()) == 1


def append_table(catalog: paimon.Catalog) -> paimon.Table:
    return catalog.create_table("db.plain", DDL)


def writer_of(table: paimon.Table) -> PaimonWriter:
    return PaimonWriter(table, parse_source_options({"path": table.location}), False)


def test_an_abort_after_the_publish_deletes_no_files(catalog: paimon.Catalog) -> None:
    table = append_table(catalog)
    writer = writer_of(table)
    message = writer.write(iter(rows(0, 20, "kept").to_batches()))
    writer.commit([message])
    writer.abort([message, None])
    assert table.scan().count() == 20


def test_an_abort_without_a_publish_removes_the_files(catalog: paimon.Catalog) -> None:
    table = append_table(catalog)
    writer = writer_of(table)
    message = writer.write(iter(rows(0, 20, "dropped").to_batches()))
    assert list(Path(table.location).rglob("*.parquet"))
    writer.abort([message, None])
    assert not list(Path(table.location).rglob("*.parquet"))
    assert isinstance(message, EncodedMessages)


def test_blob_columns_are_written_and_read(spark: SparkSession, catalog: paimon.Catalog) -> None:
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True}
    table = catalog.create_table("db.blobs", "id INT, pic BLOB", options=options)
    frame = spark.createDataFrame([(1, b"x"), (2, None), (3, b"")], "id INT, pic BINARY")
    paimon.spark.write(frame, table)
    expected = [{"id": 1, "pic": b"x"}, {"id": 2, "pic": None}, {"id": 3, "pic": b""}]
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
    read = paimon.spark.read(spark, table).orderBy("id").collect()
    assert [(row.id, None if row.pic is None else bytes(row.pic)) for row in read] == [(1, b"x"), (2, None), (3, b"")]


def test_a_table_that_takes_no_rows_is_refused_before_any_task_runs(catalog: paimon.Catalog) -> None:
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True}
    table = catalog.create_table("db.nested", "id INT, r ROW<pic BLOB>", options=options)
    with pytest.raises(paimon.Unsupported, match="nested BLOB values"):
        writer_of(table)


def test_a_commit_in_doubt_that_spark_aborts_deletes_no_files(catalog: paimon.Catalog) -> None:
    """Spark calls `abort` after every failure of `commit`, in a process that does not know what failed."""
    table = orders(catalog)

    class Doubtful(PutIfAbsentSnapshotCommit):
        def publish(self, *given: object) -> PublishOutcome:
            raise paimon.CommitUncertain("u", 1, "the connection broke")

    doubtful = table.with_engine(evolve(table.engine, snapshots=Doubtful(table.engine.files)))
    message = writer_of(table).write(iter(rows(0, 20, "kept").to_batches()))
    with pytest.raises(paimon.CommitUncertain) as doubt:
        writer_of(doubtful).commit([message])
    writer_of(table).abort([message])
    assert list(Path(table.location).rglob("*.parquet"))
    table.resolve(doubt.value)
    assert table.scan().count() == 20


def test_a_refused_commit_removes_its_files_itself(catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    refusing = table.with_options({"commit.callbacks": "org.example.NotBound"})
    message = writer_of(table).write(iter(rows(0, 20, "dropped").to_batches()))
    with pytest.raises(paimon.Unsupported, match=r"org\.example\.NotBound"):
        writer_of(refusing).commit([message])
    assert not list(Path(table.location).rglob("*.parquet"))


def test_two_tasks_for_one_bucket_are_refused(catalog: paimon.Catalog) -> None:
    table = orders(catalog)
    builder = table.new_batch_write_builder("me")
    messages = [m for _ in range(2) for m in decode(write_rows(builder, iter(rows(0, 20, "x").to_batches()), None))]
    with pytest.raises(paimon.InvalidRequest, match="was written by two tasks"):
        check_one_writer_per_bucket(messages)
    check_one_writer_per_bucket(messages[: len(messages) // 2])


def create_dynamic_table(catalog: paimon.Catalog, **options: object) -> paimon.Table:
    schema = "part STRING NOT NULL, id BIGINT NOT NULL, note STRING"
    named = {f"dynamic-bucket.{key.replace('_', '-')}": value for key, value in options.items()}
    return catalog.create_table(
        "db.dynamic", schema, primary_keys=["part", "id"], partition_keys=["part"], options=named
    )


def keyed_rows(start: int, stop: int, note: str) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"part": ["ab"[i % 2] for i in ids], "id": ids, "note": [f"{note}{i}" for i in ids]})


def dynamic_buckets(table: paimon.Table) -> dict[tuple[str, int], set[int]]:
    """The buckets of each key; each must be one."""
    builder, found = table.new_read_builder(), {}
    for split in builder.new_scan().plan().splits():
        for row in builder.new_read().to_arrow([split]).to_pylist():
            found.setdefault((row["part"], row["id"]), set()).add(split.bucket)
    return found


def test_dynamic_buckets_are_shared_by_tasks(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_dynamic_table(catalog, target_row_num=30)
    table.write(keyed_rows(0, 100, "embedded"))
    for step, tasks in enumerate((2, 3, 4)):
        fresh = keyed_rows(step * 100 + 50, step * 100 + 250, f"spark{step}-")
        paimon.spark.write(spark.createDataFrame(fresh).repartition(3), table, tasks=tasks)
        assert all(len(buckets) == 1 for buckets in dynamic_buckets(table).values())
    table.write(keyed_rows(440, 460, "last"))
    notes = {row["id"]: row["note"] for row in table.scan().to_arrow().to_pylist()}
    assert len(notes) == 460 and notes[0] == "embedded0" and notes[100] == "spark0-100" and notes[455] == "last455"
    index = table.system_table("table_indexes").scan().to_arrow().to_pylist()
    assert sum(row["row_count"] for row in index) == 460 and max(row["row_count"] for row in index) <= 30
    assert all(len(buckets) == 1 for buckets in dynamic_buckets(table).values())


def test_an_overwrite_of_dynamic_buckets_starts_again(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_dynamic_table(catalog, target_row_num=30, assigner_parallelism=2)
    table.write(keyed_rows(0, 100, "first"))
    frame = spark.createDataFrame(keyed_rows(0, 20, "new")).where("part = 'a'")
    result = paimon.spark.write(frame, table, mode="overwrite")
    assert len(result.snapshot_ids) == 1
    index = table.system_table("table_indexes").scan().to_arrow().to_pylist()
    assert {row["bucket"]: row["row_count"] for row in index if row["partition"] == "{a}"}.keys() == {0, 1}
    assert sum(row["row_count"] for row in index) == 10 + 50
    assert table.scan().count() == 60


def test_small_batches_are_sent_together() -> None:
    parts = [pa.table({"a": [n]}) for n in range(5)] + [pa.table({"b": [5]}), pa.table({"b": [6, 7]})]
    assert [rows.to_pydict() for rows in gather_rows(parts, 16)] == [
        {"a": [0, 1]}, {"a": [2, 3]}, {"a": [4]}, {"b": [5, 6, 7]}
    ]  # fmt: skip
    assert list(gather_rows([], 16)) == []
