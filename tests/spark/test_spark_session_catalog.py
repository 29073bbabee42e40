"""A warehouse as a catalog of the session: statements and data frames of Spark read and change its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import GatewayClient
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    StreamingQueryException,
    UnsupportedOperationException,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.case_lists import mark_nightly

import paimon
import paimon.spark
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, ReadConflict
from paimon.operations.row_level.numbered_rows import plan_numbered_rows
from paimon.spark.session_catalog.predicates import find_literal
from paimon.spark.session_catalog.row_changes import RowChanges

pytestmark = pytest.mark.spark
MODE = "spark.sql.sources.partitionOverwriteMode"


def run(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(text).collect()]


def make_orders(lake: paimon.Catalog, **options: str) -> paimon.Table:
    table = lake.create_table(
        "db.orders",
        "id BIGINT NOT NULL, day STRING NOT NULL, amount INT",
        primary_keys=["id", "day"],
        partition_keys=["day"],
        options={"bucket": "2", **options},
    )
    table.write([{"id": i, "day": f"d{i % 2}", "amount": i * 10} for i in range(6)])
    return table


def read_amounts(table: paimon.Table) -> dict[int, int | None]:
    return {row["id"]: row["amount"] for row in table.scan().to_arrow().to_pylist()}


def test_queries_join_views_and_prune_files_and_columns(spark: SparkSession, lake: paimon.Catalog) -> None:
    make_orders(lake)
    spark.sql("SELECT 3L AS id, 'three' AS name").createOrReplaceTempView("names")
    text = "SELECT n.name, o.amount FROM lake.db.orders o JOIN names n ON o.id = n.id WHERE o.day = 'd1'"
    assert run(spark, text) == [("three", 30)]
    frame = spark.table("lake.db.orders").where("day = 'd1'").select("id")
    plan = frame._jdf.queryExecution().toString()
    assert "where day = 'd1'" in plan
    assert "in 1 split" in plan or "1 file," in plan or "2 files" in plan
    assert "ReadSchema: struct<id:bigint,day:string>" in plan
    assert sorted(frame.toPandas()["id"]) == [1, 3, 5]
    counted = spark.sql("SELECT count(*) + 1 FROM lake.db.orders")
    assert counted.first()[0] == 7  # no predicate of an earlier plan
    assert "counted from metadata" in counted._jdf.queryExecution().toString()


def test_a_query_needs_few_messages_between_processes(
    spark: SparkSession, lake: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    send = GatewayClient.send_command

    def count(client: GatewayClient, command: str, *given: Any, **named: Any) -> Any:
        sent.append(command[0])
        return send(client, command, *given, **named)

    make_orders(lake)
    monkeypatch.setattr(GatewayClient, "send_command", count)
    for _ in range(2):
        sent.clear()
        spark.table("lake.db.orders").where("id < 5 AND day IN ('d1', 'd2')").select("amount").collect()
    assert len(sent) - sent.count("m") < 110  # `m` releases an object of Java


CONDITIONS = (
    "id < 5 AND n IN (1, 2, 3)", "name = 'n\\'\\\\5'", "name LIKE 'n%' AND d > 3.25", "day >= '2026-03-01' OR id = 3",
    "NOT (n = 3)", "ok", "NOT ok", "ok <=> true", "x > 3.5", "b = CAST('7' AS BINARY)", "f > 0.5", "d IN (1.25, 2.5)",
    "at > TIMESTAMP '1970-01-01 00:00:50'", "n IS NULL OR d IS NOT NULL", "id = 5000000000", "name LIKE '%5'",
    "n BETWEEN 2 AND 3 AND NOT (id IN (10, 11))", "name LIKE '%9%'", "day = DATE '2026-01-05'", "n = 3L", "2 > n",
    "day < DATE '+12000-01-01'",
    "(n = 1 AND d > 2) OR (n = 2 AND (x > 1 OR id = 9))", "n <> 2", "d * 2 > 5", "name > '$' AND name <> '\"'",
    "day < DATE '+10000-01-01'",
)  # fmt: skip
ROWS = """SELECT id, CAST(id % 7 AS INT) AS n, concat('n\\'\\\\', id) AS name, CAST(id / 4 AS DECIMAL(10, 2)) AS d,
    date_add(DATE '2026-01-01', CAST(id AS INT)) AS day, id % 2 = 0 AS ok, id / 3 AS x,
    CAST(CAST(id AS STRING) AS BINARY) AS b, CAST(id / 3 AS FLOAT) AS f, timestamp_seconds(id) AS at FROM range(100)"""


def test_dates_that_python_lacks_are_left_to_spark() -> None:
    assert find_literal({"type": '"date"', "value": 3_000_000}) is None


@pytest.mark.nightly
def test_conditions_select_the_rows_that_they_select_from_a_view(spark: SparkSession, lake: paimon.Catalog) -> None:
    run(spark, f"CREATE TABLE lake.db.rows AS {ROWS}")
    run(spark, f"CREATE OR REPLACE TEMPORARY VIEW same_rows AS {ROWS}")
    for condition in CONDITIONS:
        texts = [f"SELECT id FROM {name} WHERE {condition} ORDER BY id" for name in ("lake.db.rows", "same_rows")]
        assert run(spark, texts[0]) == run(spark, texts[1]), condition
    for condition in CONDITIONS[:4]:
        kept = run(spark, f"SELECT count(*) FROM lake.db.rows WHERE NOT ({condition})")
        run(spark, f"DELETE FROM lake.db.rows WHERE {condition}")
        assert run(spark, "SELECT count(*) FROM lake.db.rows") == kept, condition


def test_a_table_reports_its_size(spark: SparkSession, lake: paimon.Catalog) -> None:
    make_orders(lake)
    plan = spark.table("lake.db.orders")._jdf.queryExecution().optimizedPlan()
    assert plan.stats().sizeInBytes() < 100_000


def test_names_and_descriptions(spark: SparkSession, lake: paimon.Catalog) -> None:
    make_orders(lake)
    assert run(spark, "SHOW NAMESPACES IN lake") == [("db",)]
    assert run(spark, "SHOW TABLES IN lake.db") == [("db", "orders", False)]
    described = run(spark, "DESCRIBE lake.db.orders")
    assert described[:3] == [("id", "bigint", None), ("day", "string", None), ("amount", "int", None)]
    assert ("primary-key", "id,day") in run(spark, "SHOW TBLPROPERTIES lake.db.orders")
    assert spark.catalog.tableExists("lake.db.orders")
    assert run(spark, "SELECT snapshot_id FROM lake.db.`orders$snapshots`") == [(1,)]


def test_time_travel(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_orders(lake)
    table.delete("id > 0")
    assert run(spark, "SELECT count(*) FROM lake.db.orders VERSION AS OF 1") == [(6,)]
    assert spark.read.option("versionAsOf", 1).table("lake.db.orders").count() == 6
    assert run(spark, "SELECT count(*) FROM lake.db.orders TIMESTAMP AS OF '2100-01-01'") == [(1,)]
    with pytest.raises(IllegalArgumentException, match="NotFound: Snapshot '9' does not exist"):
        spark.sql("SELECT * FROM lake.db.orders VERSION AS OF 9")


def test_ddl_of_spark(spark: SparkSession, lake: paimon.Catalog) -> None:
    create = "CREATE TABLE IF NOT EXISTS lake.db.made (id BIGINT NOT NULL COMMENT 'key', day STRING, note VARCHAR(3)) "
    for _ in range(2):
        spark.sql(f"{create} PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '1')")
    schema = lake.table("db.made").table_schema
    assert (schema.primary_keys, schema.partition_keys, schema.options) == (("id", "day"), ("day",), {"bucket": "1"})
    assert schema.fields[0].description == "key"
    assert str(lake.table("db.made").schema.field("note").type) == "string"
    spark.sql("ALTER TABLE lake.db.made ADD COLUMN extra INT AFTER id")
    spark.sql("ALTER TABLE lake.db.made ALTER COLUMN extra TYPE BIGINT")
    spark.sql("ALTER TABLE lake.db.made RENAME COLUMN extra TO more")
    assert [f.name for f in spark.table("lake.db.made").schema] == ["id", "more", "day", "note"]
    for wrong, error in (
        ("CREATE TABLE lake.db.made (id INT)", AnalysisException),
        ("CREATE TABLE lake.nodb.t (id INT)", AnalysisException),
        ("CREATE TABLE lake.db.x (id INT) USING csv", IllegalArgumentException),
        ("CREATE TABLE lake.db.x (id INT) TBLPROPERTIES ('bukcet' = '1')", IllegalArgumentException),
        ("CREATE TABLE lake.db.x (id INT) PARTITIONED BY (bucket(2, id))", UnsupportedOperationException),
        ("SELECT * FROM lake.db.nothing", AnalysisException),
        ("DROP TABLE lake.db.nothing", AnalysisException),
        ("DROP DATABASE lake.db", AnalysisException),
    ):
        with pytest.raises(error):
            spark.sql(wrong)
    for name in ("lake.db.other", "db.third", "made"):
        spark.sql(f"ALTER TABLE lake.db.{lake.tables('db')[0]} RENAME TO {name}")
    spark.sql("DROP TABLE lake.db.made")
    spark.sql("DROP TABLE IF EXISTS lake.db.made")
    assert lake.tables("db") == []


def test_inserts_and_overwrites_follow_the_mode_of_the_session(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_orders(lake)
    spark.sql("INSERT INTO lake.db.orders (day, id) VALUES ('d1', 7)")
    assert read_amounts(table)[7] is None
    spark.sql("INSERT OVERWRITE lake.db.orders PARTITION (day = 'd1') SELECT 9L, 9")
    assert read_amounts(table) == {0: 0, 2: 20, 4: 40, 9: 9}
    try:
        spark.conf.set(MODE, "dynamic")
        spark.sql("INSERT OVERWRITE lake.db.orders SELECT id + 1, day, amount FROM lake.db.orders WHERE day = 'd1'")
        assert read_amounts(table) == {0: 0, 2: 20, 4: 40, 10: 9}
        spark.conf.set(MODE, "static")
        spark.sql("INSERT OVERWRITE lake.db.orders VALUES (5, 'd5', 5)")
        assert read_amounts(table) == {5: 5}
    finally:
        spark.conf.unset(MODE)


def test_rows_become_tables(spark: SparkSession, lake: paimon.Catalog) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id BIGINT, day STRING")
    spark.sql("CREATE TABLE lake.db.filled USING paimon PARTITIONED BY (p) AS SELECT 1 AS id, 'x' AS p")
    assert lake.table("db.filled").partition_keys == ("p",)
    keys = {"primary-key": "id,day", "bucket": "1"}
    frame.write.partitionBy("day").options(**keys).saveAsTable("lake.db.saved")
    assert lake.table("db.saved").primary_keys == ("id", "day")
    frame.write.mode("append").saveAsTable("lake.db.saved")
    frame.write.insertInto("lake.db.saved")
    saved = spark.createDataFrame([(3, "b")], "id BIGINT, day STRING")
    saved.writeTo("lake.db.saved").overwritePartitions()
    assert sorted(run(spark, "SELECT * FROM lake.db.saved")) == [(1, "a"), (3, "b")]
    saved.writeTo("lake.db.saved").overwrite(F.col("day") == "b")
    with pytest.raises(IllegalArgumentException):
        frame.selectExpr("id", "raise_error('no')").writeTo("lake.db.saved").createOrReplace()
    assert spark.table("lake.db.saved").count() == 2  # the old table stays


@pytest.mark.parametrize("keyed", [True, False])
def test_rows_are_changed_by_conditions_of_spark(spark: SparkSession, lake: paimon.Catalog, keyed: bool) -> None:
    table = make_orders(lake) if keyed else lake.create_table("db.orders", "id BIGINT, day STRING, amount INT")
    if not keyed:
        table.write([{"id": i, "day": f"d{i % 2}", "amount": i * 10} for i in range(6)])
    spark.sql("SELECT 4L AS id").createOrReplaceTempView("gone")
    spark.sql("DELETE FROM lake.db.orders WHERE id = 5")
    spark.sql("DELETE FROM lake.db.orders WHERE id IN (SELECT id FROM gone) OR amount * 2 = 20")
    spark.sql("UPDATE lake.db.orders SET amount = amount + length(day) WHERE id % 3 = 0")
    assert read_amounts(table) == {0: 2, 2: 20, 3: 32}


def test_a_merge(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_orders(lake)
    rows = [(0, "d0", None), (1, "d1", 7), (8, "d0", 8), (9, "d1", None)]
    spark.createDataFrame(rows, "id BIGINT, day STRING, amount INT").createOrReplaceTempView("changes")
    spark.sql(
        "MERGE INTO lake.db.orders o USING changes c ON o.id = c.id AND o.day = c.day "
        "WHEN MATCHED AND c.amount IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET amount = o.amount + c.amount "
        "WHEN NOT MATCHED AND c.amount > 0 THEN INSERT * WHEN NOT MATCHED BY SOURCE AND o.id > 4 THEN DELETE"
    )
    assert read_amounts(table) == {1: 17, 2: 20, 3: 30, 4: 40, 8: 8}
    with pytest.raises(IllegalArgumentException, match="AmbiguousMerge"):
        spark.sql("MERGE INTO lake.db.orders o USING changes c ON o.day = c.day WHEN MATCHED THEN DELETE")


def test_a_merge_plans_the_files_that_its_condition_allows(
    spark: SparkSession, lake: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = "id INT, p STRING, __source INT, __action INT"  # names that a merge uses, too
    table = lake.create_table("db.t", columns, partition_keys=["p"])
    table.write([{"id": i, "p": f"p{i}", "__source": i, "__action": 0} for i in range(4)])
    planned: list[int] = []

    def plan(*given: Any) -> Any:
        """Plan rows, and note their files."""
        rows = plan_numbered_rows(*given)
        planned.append(len(rows.files))
        return rows

    monkeypatch.setattr("paimon.spark.session_catalog.row_changes.plan_numbered_rows", plan)
    merge = "MERGE INTO lake.db.t t USING (SELECT 2 AS id, 9 AS __ACTION) s ON t.id = s.id AND t.p > 'p1' WHEN MATCHED"
    run(spark, f"{merge} THEN UPDATE SET __action = s.__action")
    run(spark, f"{merge} THEN UPDATE SET __action = 7 WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE")
    assert planned == [2, 4]
    rows = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["__source"], row["__action"]) for row in rows) == [(1, 1, 0), (2, 2, 7), (3, 3, 0)]
    spark.conf.set("spark.paimon.scan.snapshot-id", "1")
    try:
        assert run(spark, "SHOW PARTITIONS lake.db.t") == [(f"p=p{i}",) for i in range(4)]
    finally:
        spark.conf.unset("spark.paimon.scan.snapshot-id")
    assert run(spark, "SHOW PARTITIONS lake.db.t") == [(f"p=p{i}",) for i in range(1, 4)]
    with pytest.raises(IllegalArgumentException, match=r"'scan\.snapshot-id' has no effect in a write"):
        spark.table("lake.db.t").write.option("scan.snapshot-id", 1).insertInto("lake.db.t")


@pytest.mark.parametrize("where", ["WHERE id > 4", pytest.param("LIMIT 2", marks=pytest.mark.nightly)])
def test_a_change_through_a_view_that_selects_rows_is_refused(
    spark: SparkSession, lake: paimon.Catalog, where: str
) -> None:
    table = make_orders(lake)
    view = f"SELECT * FROM lake.db.orders {where}"
    run(spark, f"CREATE OR REPLACE TEMPORARY VIEW few AS {view}")
    for text in (
        "DELETE FROM few WHERE id < 9",
        f"WITH some AS ({view}) DELETE FROM some WHERE id + 0 < 9",
        "UPDATE few SET amount = 1",
        "MERGE INTO few USING (SELECT 3 AS id) s ON few.id = s.id WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(UnsupportedOperationException, match="a view that selects rows"):
            run(spark, text)
    run(spark, "CREATE OR REPLACE TEMPORARY VIEW few AS SELECT * FROM lake.db.orders VERSION AS OF 1")
    with pytest.raises(UnsupportedOperationException, match="delete from a table at a chosen snapshot"):
        run(spark, "DELETE FROM few WHERE id + 0 < 9")
    spark.udf.register("is_small", lambda number: number < 3, "boolean")
    with pytest.raises(
        UnsupportedOperationException, match="delete from a table in a statement that calls a Python function"
    ):
        run(spark, "DELETE FROM lake.db.orders WHERE is_small(id)")
    assert read_amounts(table) == {i: i * 10 for i in range(6)}


def test_a_change_of_rows_that_another_writer_changed_is_refused(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_orders(lake)
    frame = spark.table("lake.db.orders").where("id = 1")
    assert frame.count() == 1
    table.update({"amount": "99"}, "id = 1")
    with pytest.raises(IllegalArgumentException, match=ReadConflict.__name__):
        frame.write.insertInto("lake.db.orders")
    assert read_amounts(table)[1] == 99


@pytest.mark.parametrize("keyed", mark_nightly([True, False], always=[True]))
def test_a_change_computed_from_an_older_snapshot_is_refused(
    spark: SparkSession, lake: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, keyed: bool
) -> None:
    keys = {"primary_keys": ["id"], "options": {"bucket": "1"}} if keyed else {}
    table = lake.create_table("db.t", "id INT NOT NULL, amount INT", **keys)  # type: ignore[arg-type]
    table.write([{"id": 1, "amount": 10}, {"id": 2, "amount": 20}])
    more = iter((11, 12))
    for name in ("update", "merge"):
        run_change = getattr(RowChanges, name)

        def change(changes: RowChanges, *given: Any, run_change: Any = run_change) -> None:
            """Change the rows after another writer changed them, which Spark's plan does not know."""
            table.update({"amount": str(next(more))}, "id = 1")
            run_change(changes, *given)

        monkeypatch.setattr(RowChanges, name, change)
    update = "UPDATE lake.db.t SET amount = (SELECT sum(amount) FROM lake.db.t) WHERE id = 2"
    merge = (
        "MERGE INTO lake.db.t t USING (SELECT id, amount + 5 AS more FROM lake.db.t) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = s.more"
    )
    for text in (update, merge) if keyed else (update,):
        with pytest.raises(IllegalArgumentException, match=ReadConflict.__name__):
            spark.sql(text)
    assert read_amounts(table) == {1: 12 if keyed else 11, 2: 20}
    monkeypatch.undo()
    spark.sql(update)
    assert read_amounts(table)[2] == (32 if keyed else 31)


def test_a_row_that_a_merge_inserts_replaces_that_of_its_key(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_orders(lake)
    spark.sql(
        "MERGE INTO lake.db.orders o USING (SELECT 1L AS id) s ON o.amount = 99 "
        "WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, 'd1')"
    )
    assert read_amounts(table)[1] is None


def test_options_of_a_query(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_orders(lake)
    table.write([{"id": 7, "day": "d1", "amount": 7}])
    assert run(spark, "SELECT id FROM lake.db.orders WITH ('incremental-between' = '1,2') WHERE amount > 0") == [(7,)]
    assert run(spark, "SELECT count(*) FROM lake.db.`orders$audit_log` WHERE rowkind = '+I'") == [(7,)]
    with pytest.raises(IllegalArgumentException, match=r"'incremental-betwen' .* is unknown"):
        run(spark, "SELECT * FROM lake.db.orders WITH ('incremental-betwen' = '1,2')")
    table.alter("ALTER COLUMN amount TYPE BIGINT")
    for name, value in (("storage", "{}"), ("maxFilesPerTrigger", "1"), ("commit-user", "a"), ("snapshot", "1")):
        with pytest.raises(IllegalArgumentException, match=r"no effect|with other columns"):
            spark.read.option(name, value).table("lake.db.orders").collect()
    frame = spark.createDataFrame([(8, "d0", 8)], "id BIGINT, day STRING, amount BIGINT")
    frame.write.mode("overwrite").option("partitionOverwriteMode", "DYNAMIC").insertInto("lake.db.orders")
    assert read_amounts(lake.table("db.orders")) == {1: 10, 3: 30, 5: 50, 7: 7, 8: 8}
    with pytest.raises(IllegalArgumentException, match="no effect"):
        frame.write.option("snapshot", 1).insertInto("lake.db.orders")


@pytest.mark.slow("starts a query several times")
def test_streams_are_committed_once(spark: SparkSession, lake: paimon.Catalog, tmp_path: Path) -> None:
    table = make_orders(lake, **{"changelog-producer": "input"})
    copy = lake.create_table(
        "db.copy", "id BIGINT NOT NULL, day STRING, amount INT", primary_keys=["id"], options={"bucket": "2"}
    )
    changes = spark.readStream.option("maxFilesPerTrigger", 100).table("lake.db.`orders$audit_log`")

    def run_stream(**options: str) -> None:
        writer = changes.writeStream.options(**options).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).toTable("lake.db.copy").awaitTermination()

    run_stream(**{"kind-column": "rowkind"})
    table.delete("id < 4")
    run_stream(**{"kind-column": "rowkind"})
    assert read_amounts(copy) == {4: 40, 5: 50}
    newest = copy.scan().pinned.snapshot
    for note in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        note.unlink()
    run_stream(**{"kind-column": "rowkind"})  # Spark runs the last batch again
    assert copy.scan().pinned.snapshot == newest


@pytest.mark.nightly
def test_streams_that_cannot_run_are_refused(spark: SparkSession, lake: paimon.Catalog, tmp_path: Path) -> None:
    make_orders(lake, **{"changelog-producer": "input"})
    changes = spark.readStream.table("lake.db.`orders$audit_log`")
    lake.create_table("db.copy", "id BIGINT, day STRING, amount INT")

    def run_stream(frame: DataFrame, **options: str) -> None:
        writer = frame.writeStream.options(**options).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).toTable("lake.db.copy").awaitTermination()

    with pytest.raises(StreamingQueryException, match="InvalidRequest: Option 'snapshot' has no effect in writeStream"):
        run_stream(changes, snapshot="1")
    plain = spark.readStream.option("row-kind-column", "kind").table("lake.db.orders")
    with pytest.raises(StreamingQueryException, match="InvalidRequest: Option 'row-kind-column' adds a column"):
        run_stream(plain)
    with pytest.raises(AnalysisException, match="does not support either micro-batch"):
        spark.readStream.table("lake.db.`orders$files`")
    lake.drop_table("db.orders")
    with pytest.raises(StreamingQueryException, match=r"NotFound: Table .* does not exist"):
        run_stream(changes, **{"kind-column": "rowkind"})


def test_procedures(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_orders(lake)
    spark.sql("CALL lake.sys.create_tag(table => 'db.orders', tag => 'first')")
    assert list(table.tags) == ["first"]
    assert run(spark, "SELECT count(*) FROM lake.db.orders VERSION AS OF 'first'") == [(6,)]
    with pytest.raises(IllegalArgumentException, match="NotFound: Procedure 'nothing' does not exist"):
        spark.sql("CALL lake.sys.nothing()")


def test_later_sessions_have_the_catalog(spark: SparkSession, lake: paimon.Catalog, tmp_path: Path) -> None:
    make_orders(lake)
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())  # as each stream has
    new = spark.newSession()
    run(new, "USE lake.db")
    run(new, "INSERT INTO orders VALUES (3, 'd1', 8)")
    assert run(clone, "SELECT amount FROM lake.db.orders WHERE id = 3") == [(8,)]
    run(clone, "DELETE FROM lake.db.orders WHERE id % 2 = 0")
    assert run(new, "SELECT id FROM orders WHERE id < 3") == [(1,)]
    run(new, "USE spark_catalog.default")
    with pytest.raises(AlreadyExists):
        paimon.spark.attach(spark.newSession(), lake, "lake")
    paimon.spark.detach(new, "lake")
    other = paimon.connect(tmp_path / "other")
    other.create_database("elsewhere")
    paimon.spark.attach(new, other, "lake")
    child = SparkSession(new.sparkContext, new._jsparkSession.cloneSession())
    assert run(child, "SHOW NAMESPACES IN lake") == [("elsewhere",)]
    with pytest.raises(AnalysisException):  # two warehouses have the name
        run(spark.newSession(), "SHOW NAMESPACES IN lake")
    assert run(spark, "SHOW NAMESPACES IN lake") == [("db",)]
    paimon.spark.detach(new, "lake")


def test_cached_rows_follow_the_statements_of_the_session(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_orders(lake)
    run(spark, "CACHE TABLE lake.db.orders")
    read = "SELECT amount FROM lake.db.orders WHERE id = 1"
    assert run(spark, read) == [(10,)]
    table.update({"amount": "11"}, "id = 1")
    assert run(spark, read) == [(10,)]  # as Spark defines it, until REFRESH TABLE
    with pytest.raises(IllegalArgumentException, match=ReadConflict.__name__):
        run(spark, "INSERT INTO lake.db.orders SELECT * FROM lake.db.orders WHERE id = 1")
    assert run(spark, read) == [(11,)]
    for text, amount in (
        ("UPDATE lake.db.orders SET amount = amount + 1 WHERE id + 1 = 2", 12),
        ("INSERT INTO lake.db.orders VALUES (1, 'd1', 13)", 13),
        ("CALL lake.sys.rollback(table => 'lake.db.orders', version => '1')", 10),
    ):
        run(spark, text)
        assert run(spark, read) == [(amount,)]
    run(spark, "UNCACHE TABLE lake.db.orders")


def test_metadata_columns(spark: SparkSession, lake: paimon.Catalog) -> None:
    options = {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true"}
    table = lake.create_table("db.t", "id INT, p STRING", partition_keys=["p"], options=options)
    table.write([{"id": i, "p": f"p{i % 2}"} for i in range(20)])
    table.delete("id IN (0, 1, 4)")
    files = lake.table("db.t$files").scan().to_arrow().to_pylist()
    wanted = {row["file_path"]: (row["bucket"], row["partition"]) for row in files}
    text = "SELECT id, __paimon_file_path, __paimon_row_index, __paimon_bucket, __paimon_partition FROM lake.db.t"
    rows = run(spark, f"{text} WHERE id > 2 AND __paimon_row_index >= 0")
    assert sorted(row[0] for row in rows) == [3, *range(5, 20)]
    for number, path, index, bucket, partition in rows:
        assert wanted[path][0] == bucket
        assert wanted[path][1] == f"{{{partition.p}}}"
        assert pq.read_table(path).column("id")[index].as_py() == number
    own = lake.create_table("db.own", "__paimon_bucket STRING")
    own.write([{"__paimon_bucket": "b"}])
    assert run(spark, "SELECT __paimon_bucket, __paimon_row_index FROM lake.db.own") == [("b", 0)]
    keyed = make_orders(lake)
    keyed.write([{"id": 1, "day": "d1", "amount": 7}])
    buckets = dict(run(spark, "SELECT id, __paimon_bucket FROM lake.db.orders"))
    assert len(buckets) == 6
    with pytest.raises(UnsupportedOperationException, match="whose files are merged"):
        run(spark, "SELECT __paimon_row_index FROM lake.db.orders")
    with pytest.raises(IllegalArgumentException, match="Column '__paimon_bucket' does not exist"):
        run(spark, "UPDATE lake.db.t SET id = 1 WHERE __paimon_bucket = 0")


@pytest.mark.nightly
def test_a_stream_has_no_metadata_columns(spark: SparkSession, lake: paimon.Catalog, tmp_path: Path) -> None:
    make_orders(lake)
    frame = spark.readStream.table("lake.db.orders").select("id", "__paimon_bucket")
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match="metadata columns in a stream"):
        writer.trigger(availableNow=True).start().awaitTermination()
    lake.create_table("db.copy", "id BIGINT")
    writer = spark.readStream.table("lake.db.orders").select("id").writeStream.option("scan.snapshot-id", 1)
    writer = writer.option("checkpointLocation", str(tmp_path / "other"))
    with pytest.raises(StreamingQueryException, match=r"'scan.snapshot-id' has no effect in writeStream\.toTable"):
        writer.trigger(availableNow=True).toTable("lake.db.copy").awaitTermination()


@pytest.mark.nightly
def test_a_batch_of_a_stream_has_the_catalog(spark: SparkSession, lake: paimon.Catalog, tmp_path: Path) -> None:
    make_orders(lake)
    copy = lake.create_table("db.copy", "id BIGINT NOT NULL, amount INT", primary_keys=["id"], options={"bucket": "1"})

    def merge(batch: DataFrame, number: int) -> None:
        batch.createOrReplaceTempView("batch")
        run(batch.sparkSession, "MERGE INTO lake.db.copy c USING batch b ON c.id = b.id WHEN NOT MATCHED THEN INSERT *")

    frame = spark.readStream.table("lake.db.orders").select("id", "amount")
    writer = frame.writeStream.foreachBatch(merge).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert read_amounts(copy) == {i: i * 10 for i in range(6)}


def test_names_that_cannot_be_attached(spark: SparkSession, lake: paimon.Catalog, tmp_path: Path) -> None:
    with pytest.raises(AlreadyExists, match="'lake' already exists"):
        paimon.spark.attach(spark, lake, "lake")
    for name in ("spark_catalog", "system", "a.b", ""):
        with pytest.raises(InvalidRequest, match="cannot be named"):
            paimon.spark.attach(spark, lake, name)
    with pytest.raises(NotFound, match="does not exist"):
        paimon.spark.attach(spark, tmp_path / "nothing", "other")
    with pytest.raises(NotFound, match="Attached catalog 'other' does not exist"):
        paimon.spark.detach(spark, "other")
    spark.catalog.setCurrentCatalog("lake")
    try:
        with pytest.raises(InvalidRequest, match="is the current one"):
            paimon.spark.detach(spark, "lake")
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")
