"""`paimon.spark.connect`: lazy frames, distributed inserts, the settings of sessions, types and bad input."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, types
from pyspark.sql.pandas.types import to_arrow_schema
from support.case_lists import mark_nightly

import paimon
import paimon.spark
from paimon.domain.errors import PaimonWarning, Unsupported
from paimon.operations.data_files import read_data_file
from paimon.spark import SparkCatalog
from paimon.spark.types import to_batch_schema

pytestmark = pytest.mark.spark

VARIANT = types.VariantType()


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> SparkCatalog:
    made = paimon.spark.connect(spark, tmp_path / "lake")
    made.sql("CREATE TABLE t (id BIGINT, word STRING); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return made


def test_a_query_is_a_lazy_frame_of_its_snapshot(session: SparkCatalog, spark: SparkSession) -> None:
    frame = session.sql("SELECT word, count(*) AS n FROM t WHERE id > 1 GROUP BY word ORDER BY word")
    audit = session.sql("SELECT id FROM t$audit_log ORDER BY id")
    session.sql("INSERT INTO t VALUES (4, 'd')")
    assert [tuple(row) for row in frame.collect()] == [("b", 1), ("c", 1)]
    assert frame.where("word = 'c'").count() == 1
    assert [row.id for row in audit.collect()] == [1, 2, 3]
    assert session.sql("SELECT count(word) AS n FROM t").first().n == 4
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("paimon_query")]


def test_frames_of_spark_are_tables(session: SparkCatalog, spark: SparkSession) -> None:
    frame = spark.range(0, 100, numPartitions=4).selectExpr("id", "CAST(id AS STRING) AS word")
    joined = session.sql("SELECT f.word FROM f JOIN t ON t.id = f.id ORDER BY f.word", f=frame)
    assert [row.word for row in joined.collect()] == ["1", "2", "3"]
    (done,) = session.sql("INSERT INTO t SELECT id + 10 AS id, word FROM f WHERE id >= 50", f=frame).collect()
    assert (done.rows, done.snapshot) == (50, 2)
    assert len(session.catalog.table("default.t").scan(snapshot=2).plan().splits) > 0
    again = session.sql("INSERT INTO t SELECT t.id, upper(a.word) FROM t JOIN arrow AS a ON t.id = a.id",
                        arrow=pa.table({"id": [1, 1], "word": ["x", "y"]}))  # fmt: skip
    assert again.first().rows == 2


def test_temporary_views_of_the_session_are_tables(session: SparkCatalog, spark: SparkSession) -> None:
    spark.range(0, 100).selectExpr("id", "CAST(id AS STRING) AS word").createOrReplaceTempView("Numbers")
    joined = "SELECT n.word FROM numbers AS n JOIN t ON t.id = n.id"
    assert sorted(row.word for row in session.sql(joined).collect()) == ["1", "2", "3"]
    session.sql(f"CREATE TEMPORARY VIEW mine AS {joined} WHERE n.id > 1; CREATE DATABASE db; USE db")
    session.sql("INSERT INTO paimon.default.t SELECT id + 10, word FROM numbers WHERE id IN (SELECT word FROM mine)")
    session.sql("DELETE FROM paimon.default.t WHERE id IN (SELECT id FROM numbers WHERE id < 3)")
    assert session.sql("SELECT sum(id) AS s FROM default.t").first().s == 3 + 12 + 13
    spark.catalog.dropTempView("numbers")
    with pytest.raises(paimon.NotFound, match="'numbers'"):
        session.sql("SELECT * FROM mine")


def test_a_name_of_a_table_and_of_a_temporary_view_is_refused(session: SparkCatalog, spark: SparkSession) -> None:
    rows = spark.range(7)
    rows.createOrReplaceTempView("t")
    with pytest.raises(paimon.InvalidRequest, match="'t' is the name of table"):
        session.sql("SELECT * FROM t")
    assert session.sql("SELECT count(*) AS n FROM default.t").first().n == 3
    assert session.sql("SELECT count(*) AS n FROM t", t=rows).first().n == 7
    spark.catalog.dropTempView("t")
    rows.createOrReplaceTempView("only_here")
    with pytest.raises(paimon.InvalidRequest, match="Temporary view 'only_here' cannot be read with time travel"):
        session.sql("SELECT * FROM only_here VERSION AS OF 1")
    spark.catalog.dropTempView("only_here")


def test_tasks_write_the_rows_of_an_insert(session: SparkCatalog, spark: SparkSession) -> None:
    frame = spark.range(0, 40, numPartitions=4)
    session.sql("CREATE TABLE made AS SELECT id, id % 3 AS part FROM f", f=frame)
    assert session.sql("SELECT count(*) AS n FROM made$files").first().n == 4
    keyed = "CREATE TABLE k (id BIGINT PRIMARY KEY NOT ENFORCED, n INT) WITH ('bucket' = '2')"
    session.sql(f"{keyed}; INSERT INTO k SELECT id % 10, id FROM made WHERE id < 10")
    assert session.sql("SELECT sum(n) AS s, count(*) AS c FROM k WHERE id > 0").first().asDict() == {"s": 45, "c": 9}


def test_tasks_run_compactions_and_rescales(session: SparkCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql(
        "CREATE TABLE k (id BIGINT PRIMARY KEY NOT ENFORCED, n INT) WITH ('bucket' = '2', 'write-only' = 'true')"
    )
    session.sql("INSERT INTO k VALUES (1, 1), (2, 2); INSERT INTO k VALUES (1, 3), (9, 9)")

    def refuse(*_: object) -> None:
        raise AssertionError("rows passed through the driver")

    with monkeypatch.context() as patched:
        patched.setattr(read_data_file, "_read_tolerant_batches", refuse)
        session.sql("CALL sys.compact(table => 'k', compact_strategy => 'full')")
        assert session.sql("SELECT count(file_path) AS n FROM k$files WHERE level > 0").first().n == 2
        session.sql("CALL sys.rescale(table => 'k', bucket_num => 3)")
    assert session.catalog.table("default.k").options["bucket"] == "3"
    assert session.sql("SELECT sum(n) AS n FROM k").first().n == 14


def test_tasks_find_files_that_do_not_exist(session: SparkCatalog) -> None:
    table = session.catalog.create_table("default.lost", "id INT")
    table.write([{"id": 1}])
    (lost,) = Path(table.location).glob("bucket-0/*.parquet")
    lost.unlink()
    with pytest.warns(PaimonWarning, match="1 row of 1 file is lost"):
        found = session.sql("CALL sys.remove_unexisting_files('lost')").collect()
    assert [row.path for row in found] == [str(lost)]


def test_tasks_read_what_the_query_needs(session: SparkCatalog) -> None:
    options = "TBLPROPERTIES ('source.split.target-size' = '1 b')"
    session.sql(f"CREATE TABLE p (id BIGINT, day STRING, t TIMESTAMP) PARTITIONED BY (day) {options}")
    rows = [{"id": i, "day": f"d{i % 3}", "t": datetime.datetime(2026, 1, 1 + i % 3)} for i in range(30)]
    session.catalog.table("default.p").write(rows)
    assert session.sql("SELECT id FROM p WHERE day LIKE 'd1%'").rdd.getNumPartitions() == 1
    frame = session.sql("SELECT id FROM p WHERE t = TIMESTAMP '2026-01-02 00:00:00'")
    assert (frame.rdd.getNumPartitions(), frame.count()) == (1, 10)
    limited = session.sql("SELECT id FROM p LIMIT 4")
    assert (limited.count(), limited.where("id < 0").count()) == (4, 0)


def test_an_overwrite_replaces_partitions(session: SparkCatalog) -> None:
    session.sql("CREATE TABLE p (id BIGINT, day STRING) PARTITIONED BY (day)")
    session.sql("INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    session.sql("INSERT OVERWRITE p PARTITION (day = 'a') SELECT id FROM t WHERE id > 2")
    session.sql("INSERT OVERWRITE p SELECT id * 10, 'b' FROM t WHERE id = 2")
    rows = session.sql("SELECT * FROM p ORDER BY day").collect()
    assert [tuple(row) for row in rows] == [(3, "a"), (20, "b"), (3, "c")]
    session.sql("INSERT OVERWRITE p PARTITION (day = 'a') SELECT id FROM t WHERE id > 99")
    assert session.sql("SELECT count(id) AS n FROM p WHERE day = 'a'").first().n == 0


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[dict[str, str]]:
    """Unusual settings of the session, which are restored."""
    chosen = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.ansi.enabled": "false",
              "spark.sql.caseSensitive": "true", "spark.sql.timestampType": "TIMESTAMP_NTZ"}  # fmt: skip
    before = {key: spark.conf.get(key) for key in chosen}
    for key, value in chosen.items():
        spark.conf.set(key, value)
    yield chosen
    for key, earlier in before.items():
        spark.conf.set(key, earlier or "")


def test_settings_but_the_time_zone_do_not_change_the_meaning(
    tmp_path: Path, spark: SparkSession, settings: dict[str, str]
) -> None:
    session = paimon.spark.connect(spark, tmp_path)
    query = """SELECT CAST('2026-01-01 00:00:00+00' AS TIMESTAMPTZ) = TIMESTAMP '2026-01-01 09:00:00' AS same,
        A AS a, '${spark.app.name}' AS text, TIMESTAMP '2026-01-01 00:00:00' AS t FROM (VALUES (1)) AS v(a)"""
    (row,) = session.sql(query).collect()
    assert row.asDict() == {"same": True, "a": 1, "text": "${spark.app.name}", "t": datetime.datetime(2026, 1, 1)}
    session.sql("CREATE TABLE z (n TINYINT, t TIMESTAMP_LTZ(6)); INSERT INTO z VALUES (1, '2026-01-01 09:00:00')")
    with pytest.raises(paimon.InvalidRequest, match="300"):
        session.sql("INSERT INTO z (n) VALUES (300)")
    assert str(session.catalog.table("default.z").scan().to_arrow()["t"][0]) == "2026-01-01 00:00:00+00:00"
    assert {key: spark.conf.get(key) for key in settings} == settings


EVERY_TYPE = """CREATE TABLE y (a TINYINT, b SMALLINT, c FLOAT, d DECIMAL(10, 2), e BOOLEAN, f CHAR(3), g BYTES,
    h DATE, i TIME(3), j TIMESTAMP(0), k TIMESTAMP(3), l TIMESTAMP(6), n TIMESTAMP_LTZ(3),
    o ARRAY<INT>, p MAP<STRING, INT>, q MULTISET<STRING>, r ROW<x INT, y STRING>);
    INSERT INTO y VALUES (1.5, 2, 1.5, '3.456', true, 'abc', 'xy', '2026-01-01', '10:11:12.123',
    '2026-01-01 10:11:12.5', '2026-01-01 10:11:12.1239', '2026-01-01 10:11:12.123456',
    '2026-01-01 10:11:12+02:00', [1, NULL], MAP {'a': 1}, MAP {'z': 2}, {'x': 1, 'y': 'q'})"""


@pytest.mark.parametrize("layout", mark_nightly(["keyed", "append", "evolution"], always=["append"]))
def test_changes_and_queries_have_the_time_zone_of_the_session(
    session: SparkCatalog, spark: SparkSession, layout: str
) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        _change_times(session, layout)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def _change_times(session: SparkCatalog, layout: str) -> None:
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"} if layout == "evolution" else {}
    table = session.catalog.create_table(
        "default.times", "id BIGINT NOT NULL, at TIMESTAMP_LTZ(6), local TIMESTAMP(6), n INT",
        primary_keys=["id"] if layout == "keyed" else [], options=options,
    )  # fmt: skip
    hours = ", ".join(f"({hour}, '2026-11-01 0{hour}:30:00', NULL, 0)" for hour in range(4))
    session.sql(f"INSERT INTO times VALUES {hours}")  # 01:30 occurs twice: the instant is the earlier one
    found = table.scan().to_arrow().sort_by("id")["at"].to_pylist()
    assert [at.hour for at in found] == [4, 5, 7, 8]
    change = "UPDATE times SET local = at, n = hour(at) WHERE at = '2026-11-01 01:30:00' OR hour(at) = 3"
    if layout == "evolution":
        with pytest.raises(Unsupported, match="times in America/New_York in a change of table"):
            session.sql(change)
        assert session.sql("UPDATE times SET n = abs(n - 1) WHERE sqrt(n) = 0").first().rows == 4
        return
    assert session.sql(change).first().rows == 2
    merge = session.sql(
        "MERGE INTO times t USING (SELECT 0 AS id, TIMESTAMP '2026-07-01 12:00:00' AS l) s ON t.id = s.id "
        "WHEN MATCHED AND t.at < '2026-11-01 01:00:00' AND hour(t.at) = 0 THEN UPDATE SET at = s.l, local = t.at"
    )
    assert merge.first().updated == 1
    condition = "at >= '2026-11-01 02:00:00' AND CAST(at AS DATE) = DATE '2026-11-01'"
    shown = session.sql(f"SELECT id FROM times WHERE {condition} ORDER BY id").collect()
    assert [row.id for row in shown] == [2, 3]
    assert session.sql(f"DELETE FROM times WHERE {condition}").first().rows == 2
    noon, local = datetime.datetime(2026, 7, 1, 16, tzinfo=datetime.UTC), datetime.datetime(2026, 11, 1, 1, 30)
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["local"], row["n"]) for row in rows] == [(datetime.datetime(2026, 11, 1, 0, 30), 0), (local, 1)]
    assert rows[0]["at"] == noon


def test_every_type_is_inserted_as_embedded(session: SparkCatalog, tmp_path: Path) -> None:
    embedded = paimon.connect(tmp_path / "other")
    embedded.sql(EVERY_TYPE)
    session.sql(EVERY_TYPE)
    expected = embedded.table("default.y").scan().to_arrow()
    assert session.catalog.table("default.y").scan().to_arrow() == expected
    session.sql("INSERT INTO y SELECT * FROM y")  # written by tasks
    assert session.catalog.table("default.y").scan().to_arrow() == pa.concat_tables([expected, expected])
    (row,) = session.sql("SELECT DISTINCT a, d, g, i, k, n, o FROM y").collect()
    assert (row.a, row.d, row.g, row.i, row.o) == (
        2,
        Decimal("3.46"),
        b"xy",
        datetime.time(10, 11, 12, 123000),
        [1, None],
    )


ERRORS = {
    "SELECT wrod FROM t": "Column 'wrod' does not exist in this part of the query. Did you mean 'word'",
    "SELECT * FROM tt": "Table 'tt' does not exist. Did you mean 't'",
    "SELECT uper(word) FROM t": "Function 'uper' does not exist. Did you mean 'upper'",
    "SELECT id word text FROM t": "line 1, column 16: expected ',', an operator or FROM, not 'text'",
    "SELECT id, count(*) FROM t": "The query failed",
    "INSERT INTO t SELECT word, word FROM t": "Could not convert a value: The value 'a'",
    "INSERT INTO t SELECT id, word FROM t UNION ALL SELECT 1": "The query failed: UNION",
    "EXPLAIN SELECT nope FROM t": "Column 'nope' does not exist",
    "UPDATE t SET word = (SELECT word FROM t) WHERE id = 1": "more than one row",
}


@pytest.mark.parametrize(
    "statement", mark_nightly(ERRORS, always=["SELECT wrod FROM t", "INSERT INTO t SELECT word, word FROM t"])
)
def test_errors_are_those_of_the_library(
    session: SparkCatalog, statement: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(paimon.PaimonError) as caught:
        session.sql(statement)
    assert ERRORS[statement] in str(caught.value)
    assert "SQLQueryContextLogger" not in capfd.readouterr().err
    assert session.sql("SELECT max(snapshot_id) AS n FROM t$snapshots").first().n == 1


def test_explain_shows_scans_and_the_plan_of_spark(session: SparkCatalog) -> None:
    lines = [row.plan for row in session.sql("EXPLAIN SELECT word FROM t WHERE id = 2").collect()]
    assert lines[1] == "scan of default.t at snapshot 1, schema 0"
    assert "== Physical Plan ==" in lines


def test_small_tables_are_broadcast_in_joins(session: SparkCatalog, spark: SparkSession) -> None:
    query, threshold = "SELECT a.word FROM t AS a JOIN t AS b ON a.id = b.id", "spark.sql.autoBroadcastJoinThreshold"

    def explain() -> str:
        return "\n".join(row.plan for row in session.sql(f"EXPLAIN {query}").collect())

    assert "BroadcastHashJoin" in explain()
    before = spark.conf.get(threshold)
    spark.conf.set(threshold, "10b")
    try:
        assert "BroadcastHashJoin" not in explain()
    finally:
        spark.conf.set(threshold, before)
    assert sorted(row.word for row in session.sql(query).collect()) == ["a", "b", "c"]


def test_connections_that_cannot_work_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(paimon.Unsupported, match="Spark Connect"):
        paimon.spark.attach(object(), tmp_path)  # type: ignore[arg-type]
    with pytest.raises(paimon.InvalidRequest, match="no options here"):
        paimon.spark.connect(spark, paimon.connect(tmp_path), threads=1)
    memory = paimon.spark.connect(spark, "memory://spark-sql")
    memory.sql("CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (1)")
    for statement in ("SELECT * FROM t", "INSERT INTO t SELECT id + 1 FROM f"):
        with pytest.raises(paimon.Unsupported, match="other processes"):
            memory.sql(statement, f=pa.table({"id": [1]}))
    with pytest.raises(paimon.InvalidRequest, match="no statement"):
        paimon.spark.connect(spark, paimon.connect(tmp_path)).sql(" ")


def test_batch_schemas_are_those_of_pyspark() -> None:
    """PySpark converts all types but the parts of ``[]`` and ``MAP {}``, which have no type and are never null."""
    inner = types.StructType([types.StructField("x", types.StringType(), False), types.StructField("v", VARIANT)])
    kinds = [
        *(types.TimestampType(), types.TimestampNTZType(), types.DecimalType(10, 2), types.BinaryType(), VARIANT),
        *(types.DateType(), types.TimeType(), types.NullType(), types.DayTimeIntervalType(), types.FloatType()),
        *(types.ArrayType(types.IntegerType(), False), types.ArrayType(inner), inner),
        types.MapType(types.StringType(), types.ArrayType(types.TimestampType()), False),
    ]
    schema = types.StructType([types.StructField(f"c{i}", kind, i % 2 == 0) for i, kind in enumerate(kinds)])
    schema["c7"].nullable = True  # a column of nulls
    assert to_batch_schema(schema).equals(to_arrow_schema(schema, timezone="UTC"), check_metadata=True)
    empty = types.StructType([types.StructField("l", types.ArrayType(types.NullType(), False), False)])
    empty.add("m", types.MapType(types.NullType(), types.NullType(), False))
    assert to_batch_schema(empty).field("l").type.value_type == pa.null()
    assert to_batch_schema(empty).field("m").type.key_type == pa.null()
