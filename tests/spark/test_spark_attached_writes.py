"""Statements that write in an attached catalog: partitions, changes of tables, and the errors of each."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import IllegalArgumentException, SparkRuntimeException, UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame
from support.case_lists import mark_nightly

import paimon
from paimon.domain.types.data_types import ArrayType, CharType, DataField, IntType, MapType, RowType, VarCharType
from paimon.spark.options import parse_source_options
from paimon.spark.session_catalog import merge_bounds
from paimon.spark.types import pad_texts

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
    frame.writeTo("lake.db.days").overwrite(F.col("HOUR").isNull())
    assert read_ids(table) == [1, 2, 5, 6]


def test_a_partition_column_has_a_space_in_its_name(spark: SparkSession, lake: paimon.Catalog) -> None:
    spark.sql("CREATE TABLE lake.db.t (id INT, `p q` STRING) PARTITIONED BY (`p q`)")
    spark.sql("INSERT OVERWRITE lake.db.t PARTITION (`p q` = 'a/b') SELECT 1")
    assert run(spark, "SELECT * FROM lake.db.t WHERE `p q` = 'a/b'") == [(1, "a/b")]


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
    ("ALTER TABLE {} ADD PARTITION (day = 'n', hour = 3)", "Unsupported: Not supported: ADD PARTITION"),
    ("ALTER TABLE {} ADD COLUMN more INT DEFAULT 4", "Unsupported: Not supported: DEFAULT of the new column 'more'"),
    ("ALTER TABLE {} ADD CONSTRAINT c CHECK (id > 0)", "Unsupported: Not supported: AddConstraint"),
    ("CREATE TABLE lake.db.x (id INT DEFAULT 1 + 1)", "Unsupported: Not supported: DEFAULT 1"),
    ("CREATE TABLE lake.db.x (id BINARY DEFAULT X'FF')", "Unsupported: Not supported: DEFAULT X'FF'"),
    ("CREATE TABLE lake.db.x (id INT, CHECK (id > 0))", "Unsupported: Not supported: CONSTRAINT"),
    ("ANALYZE TABLE {} PARTITION (day = 'a') COMPUTE STATISTICS", "Unsupported: Not supported: ANALYZE of a part"),
    ("ANALYZE TABLE {} COMPUTE STATISTICS FOR COLUMNS nope", "InvalidRequest: Column 'nope' does not exist"),
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
    (
        "ALTER TABLE {} REPLACE COLUMNS (id INT, day STRING)",
        "Unsupported: Not supported: ALTER TABLE … REPLACE COLUMNS",
    ),
    ("UPDATE {} SET id = 5, id = 6", "InvalidRequest: Column 'id' gets two values"),
)


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_refused_statements_name_our_error(spark: SparkSession, lake: paimon.Catalog, every: int) -> None:
    table = make_days(lake)
    for text, error in REFUSED[::every]:
        with pytest.raises((IllegalArgumentException, UnsupportedOperationException), match=f"^{error}"):
            spark.sql(text.format("lake.db.days"))
    assert read_ids(table) == [1, 2, 3, 4]


def test_partitions_are_listed_and_dropped(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_days(lake)
    assert run(spark, "SHOW PARTITIONS lake.db.days PARTITION (day = 'a')") == [("day=a/hour=1",), ("day=a/hour=2",)]
    described = spark.sql("DESCRIBE TABLE EXTENDED lake.db.days PARTITION (day = 'a', hour = 2)").collect()
    assert ("record_count", "1", "") in map(tuple, described)
    spark.sql("ALTER TABLE lake.db.days DROP PARTITION (day = 'a', hour = 2)")
    assert read_ids(table) == [1, 3, 4]
    for day in ("a", "none"):
        spark.sql(f"TRUNCATE TABLE lake.db.days PARTITION (day = '{day}')")
    spark.sql("ANALYZE TABLE lake.db.days COMPUTE STATISTICS FOR COLUMNS id")
    assert read_ids(table) == [3, 4]
    assert table.system_table("statistics").to_arrow().num_rows == 1


def test_defaults_and_primary_keys_are_declared(spark: SparkSession, lake: paimon.Catalog) -> None:
    spark.sql(
        "CREATE TABLE lake.db.t (id INT NOT NULL, a STRING DEFAULT 'it''s', b DATE DEFAULT DATE '2026-01-01', "
        "c DECIMAL(5, 2) DEFAULT -1.5, d INT DEFAULT NULL, PRIMARY KEY (id)) TBLPROPERTIES ('bucket' = '1')"
    )
    schema = lake.table("db.t").table_schema
    assert schema.primary_keys == ("id",)
    assert [field.default_value for field in schema.fields] == [None, "it's", "2026-01-01", "-1.50", None]
    spark.sql("ALTER TABLE lake.db.t ALTER COLUMN d SET DEFAULT 7")
    spark.sql("ALTER TABLE lake.db.t ALTER COLUMN a DROP DEFAULT")
    spark.sql("CREATE TABLE lake.db.copy LIKE lake.db.t TBLPROPERTIES ('bucket' = '2')")
    copied = lake.table("db.copy").table_schema
    assert (copied.primary_keys, copied.options) == (("id",), {"bucket": "2"})
    assert [field.default_value for field in copied.fields] == [None, None, "2026-01-01", "-1.50", "7"]


def make_texts(lake: paimon.Catalog) -> paimon.Table:
    columns = "c CHAR(3) NOT NULL, v VARCHAR(2), s ROW<q CHAR(2), `x y` ARRAY<CHAR(2)>>, n INT"
    table = lake.create_table("db.t", columns, primary_keys=["c"], options={"bucket": "1"})
    table.write([{"c": c, "v": c, "s": {"q": c, "x y": [c]}, "n": 1} for c in ("a", "b", "d")])  # not padded
    return table


def test_texts_are_padded_and_checked_as_spark_does(spark: SparkSession, lake: paimon.Catalog) -> None:
    make_texts(lake)
    assert "CHAR(3)" in spark.sql("SHOW CREATE TABLE lake.db.t").first()[0]  # type: ignore[index]
    with pytest.raises(SparkRuntimeException, match="EXCEED_LIMIT_LENGTH"):
        spark.sql("INSERT INTO lake.db.t SELECT 'x', 'long', NULL, 1")
    assert run(spark, "SELECT c, s.q FROM lake.db.t WHERE c = 'a'") == [("a  ", "a ")]
    assert "__CHAR_VARCHAR_TYPE_STRING" in str(spark.readStream.table("lake.db.t").schema["c"].metadata)


@pytest.mark.nightly
def test_statements_change_padded_texts(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_texts(lake)
    spark.sql("INSERT INTO lake.db.t SELECT 'x', 'x', NULL, 1")
    spark.sql("UPDATE lake.db.t SET s.q = 'z', v = 'w' WHERE c = 'a' AND n = 1")
    spark.sql("DELETE FROM lake.db.t WHERE c = 'b'")
    source = "(SELECT CAST('d' AS CHAR(3)) c, 5 n UNION ALL SELECT 'y', 6) s"
    merge = f"MERGE INTO lake.db.t t USING {source} ON t.c = rpad(s.c, 3, ' ') WHEN MATCHED THEN UPDATE SET n = s.n"
    spark.sql(f"{merge} WHEN NOT MATCHED THEN INSERT (c, n) VALUES (s.c, s.n)")
    assert [(c, s) for c, s in run(spark, "SELECT c, s.q FROM lake.db.t WHERE c = 'a'")] == [("a  ", "z ")]
    stored = {row["c"]: (row["v"], row["n"]) for row in table.scan().to_arrow().to_pylist()}
    assert stored == {"a": ("w", 1), "d": ("d", 5), "x  ": ("x", 1), "y  ": (None, 6)}
    spark.sql("CREATE TABLE lake.db.copy AS SELECT c, v FROM lake.db.t")
    fields = lake.table("db.copy").table_schema.fields
    assert [f.type for f in fields] == [CharType(length=3), VarCharType(length=2)]


@pytest.mark.nightly
def test_streams_compare_padded_texts(spark: SparkSession, lake: paimon.Catalog) -> None:
    make_texts(lake)
    rows = spark.readStream.table("lake.db.t").where("c = 'a'").writeStream.format("memory").queryName("padded")
    rows.trigger(availableNow=True).start().awaitTermination()
    assert run(spark, "SELECT * FROM padded") == [("a  ", "a", ("a ", ["a "]), 1)]


def test_parts_of_a_column_are_padded() -> None:
    char = CharType(length=2)
    kinds = {"q": char, "m": MapType(char, ArrayType(IntType())), "l": ArrayType(char)}
    row = RowType(tuple(DataField(number, name, kind) for number, (name, kind) in enumerate(kinds.items())))
    texts = pa.map_(pa.string(), pa.list_(pa.int32()))
    arrow = pa.struct([("q", pa.string()), ("m", texts), ("l", pa.list_(pa.string()))])
    rows = [{"q": "ä", "m": [("b", [1])], "l": ["long", None, ""]}, None, {"q": None, "m": None, "l": []}]
    padded = [{"q": "ä ", "m": [("b ", [1])], "l": ["long", None, "  "]}, None, {"q": None, "m": None, "l": []}]
    assert pad_texts(pa.array(rows, arrow)[1:], row).to_pylist() == padded[1:]
    assert pad_texts(pa.array(rows, arrow), row).to_pylist() == padded


@pytest.mark.parametrize("keys", [(), pytest.param(("id",), marks=pytest.mark.nightly)])
def test_fields_of_a_column_are_assigned(spark: SparkSession, lake: paimon.Catalog, keys: tuple[str, ...]) -> None:
    kind = "ROW<a INT, b ROW<x INT, y STRING>>"
    table = lake.create_table("db.t", f"id INT NOT NULL, c CHAR(1), s {kind}", primary_keys=keys)
    first = {"a": 1, "b": {"x": 1, "y": "u"}}
    table.write([{"id": id, "c": "c", "s": s} for id, s in ((1, first), (2, None), (3, None))])
    spark.sql("UPDATE lake.db.t SET S.B.y = 'v', s.a = s.a + 1 WHERE id < 3")
    merge = "MERGE INTO lake.db.t t USING (SELECT 1 id, 7 z) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET"
    spark.sql(f"{merge} t.s.b.x = z")
    with pytest.raises(IllegalArgumentException, match="gets two values"):
        spark.sql(f"{merge} t.s = NULL, t.s.a = z")
    found = {row["id"]: row["s"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {1: {"a": 2, "b": {"x": 7, "y": "v"}}, 2: {"a": None, "b": {"x": None, "y": "v"}}, 3: None}


@pytest.mark.parametrize("keys", [(), pytest.param(("Id",), marks=pytest.mark.nightly)])
def test_rows_without_new_values_stay(spark: SparkSession, lake: paimon.Catalog, keys: tuple[str, ...]) -> None:
    options = {"bucket": "1"} if keys else {}
    table = lake.create_table("db.t", "Id INT NOT NULL, V INT", primary_keys=keys, options=options)
    table.write([{"Id": 1, "V": 1}])
    spark.sql("UPDATE lake.db.t SET v = v WHERE id = 1")
    merge = "MERGE INTO lake.db.t t USING (SELECT 1 id, 5 v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v ="
    spark.sql(f"{merge} t.v")
    assert table.scan().to_arrow().to_pylist() == [{"Id": 1, "V": 1}]
    spark.sql(f"{merge} s.v")
    assert table.scan().to_arrow().to_pylist() == [{"Id": 1, "V": 5}]


MERGE = (
    "MERGE INTO lake.db.t t USING changes c ON t.id = c.id AND c.id > -1 "
    "WHEN MATCHED AND c.amount IS NULL THEN DELETE "
    "WHEN MATCHED AND c.amount = 0 THEN UPDATE SET note = concat(c.note, length(t.note)) "
    "WHEN MATCHED THEN UPDATE SET amount = t.amount + c.amount, day = 'moved' "
    "WHEN NOT MATCHED AND c.amount > 8 THEN INSERT (id, amount) VALUES (c.id, c.amount * 2) "
    "WHEN NOT MATCHED AND c.amount > 0 THEN INSERT (id, day, amount, note) VALUES (c.id, 'new', c.amount, c.note) "
    "WHEN NOT MATCHED BY SOURCE AND t.id > 4 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = 'left'"
)
MERGED = [
    (1, "d1", 10, "zero3"), (2, "moved", 27, "old"), (3, "d1", 30, "left"), (4, "d0", 40, "left"), (7, "new", 7, "n"),
    (9, "none", 18, None),
]  # fmt: skip
LAYOUTS: tuple[dict[str, str], ...] = ({}, {"deletion-vectors.enabled": "true"}, {"bucket": "2", "bucket-key": "id"})
NIGHTLY_LAYOUTS = (
    {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true"},
    {"bucket": "2", "bucket-key": "amount"},
    {"file.format": "avro", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"},
)


def make_notes(spark: SparkSession, lake: paimon.Catalog, partitioned: bool, options: dict[str, str]) -> paimon.Table:
    keys = ["day"] if partitioned else []
    table = lake.create_table(
        "db.t", "id INT, day STRING DEFAULT 'none', amount INT, note STRING", partition_keys=keys, options=options
    )
    for part in (range(3), range(3, 7)):
        table.write([{"id": i, "day": f"d{i % 2}", "amount": i * 10, "note": "old"} for i in part])
    rows = [(0, None, ""), (1, 0, "zero"), (2, 7, "x"), (7, 7, "n"), (8, -1, ""), (9, 9, "")]
    spark.createDataFrame(rows, "id INT, amount INT, note STRING").createOrReplaceTempView("changes")
    return table


@pytest.mark.parametrize(
    ("partitioned", "options"),
    [
        (True, LAYOUTS[1]),
        *(
            pytest.param(partitioned, options, marks=pytest.mark.nightly)
            for partitioned in (False, True)
            for options in (*LAYOUTS, *NIGHTLY_LAYOUTS)
        ),
    ],
)
def test_a_merge_into_a_table_without_a_key(
    spark: SparkSession, lake: paimon.Catalog, partitioned: bool, options: dict[str, str]
) -> None:
    table = make_notes(spark, lake, partitioned, options)
    spark.sql(MERGE)
    assert run(spark, "SELECT * FROM lake.db.t") == MERGED
    assert len(table.snapshots()) == 3
    assert table.maintain.check(deep=True).is_whole
    with pytest.raises(IllegalArgumentException, match=r"^AmbiguousMerge: Two rows of the source match the same row"):
        spark.sql("MERGE INTO lake.db.t t USING changes c ON t.day = 'new' WHEN MATCHED THEN UPDATE SET amount = 1")
    assert len(table.snapshots()) == 3


@pytest.mark.nightly
def test_merges_of_single_clauses(spark: SparkSession, lake: paimon.Catalog) -> None:
    lake.create_table("db.t", "id INT NOT NULL, amount INT NOT NULL")
    source = "USING (SELECT * FROM VALUES (1, 10), (2, 20) s(id, amount)) s"
    table = lake.table("db.t")
    merge = f"MERGE INTO lake.db.t t {source} ON t.id = s.id"
    spark.sql(f"{merge} WHEN MATCHED THEN DELETE")  # an empty table
    assert table.snapshots() == []
    spark.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *")
    spark.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *")  # no row
    assert run(spark, "SELECT * FROM lake.db.t") == [(1, 10), (2, 20)]
    with pytest.raises(IllegalArgumentException, match="amount"):
        spark.sql(f"MERGE INTO lake.db.t t {source} ON t.id = s.id + 5 WHEN NOT MATCHED THEN INSERT (id) VALUES (7)")
    source_of_itself = "USING (SELECT id + 1 AS id, amount FROM lake.db.t) s"
    spark.sql(f"MERGE INTO lake.db.t t {source_of_itself} ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    assert run(spark, "SELECT * FROM lake.db.t") == [(1, 10), (2, 10)]
    spark.sql(f"{merge} AND s.id = 1 WHEN MATCHED THEN DELETE")
    spark.sql(f"{merge} AND s.id = 3 WHEN NOT MATCHED BY SOURCE THEN UPDATE SET amount = 99")
    assert run(spark, "SELECT * FROM lake.db.t") == [(2, 99)]
    table.branches.create("b")
    spark.sql("INSERT INTO lake.db.`t$branch_b` VALUES (1, 1)")
    spark.sql(f"{merge.replace('lake.db.t ', 'lake.db.`t$branch_b` ')} WHEN MATCHED THEN UPDATE SET amount = 5")
    assert run(spark, "SELECT * FROM lake.db.`t$branch_b`") == [(1, 5)]
    assert run(spark, "SELECT * FROM lake.db.t") == [(2, 99)]


@pytest.mark.nightly
def test_a_merge_with_schema_evolution(spark: SparkSession, lake: paimon.Catalog) -> None:
    lake.create_table("db.t", "id INT, amount INT")
    spark.sql("INSERT INTO lake.db.t VALUES (1, 10)")
    spark.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO lake.db.t t "
        "USING (SELECT * FROM VALUES (1, 11, 'a'), (2, 20, 'b') s(id, amount, more)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert run(spark, "SELECT * FROM lake.db.t") == [(1, 11, "a"), (2, 20, "b")]


MERGE_PARTS = (
    "MERGE INTO lake.db.t t USING parts s ON t.p = s.p AND t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED AND s.v <> 'none' THEN INSERT (p, id, v) VALUES (CAST(s.p AS INT), s.id, s.v)"
)


@pytest.mark.parametrize("layout", mark_nightly(["keyed", "append", "ranges"], always=["keyed", "append"]))
def test_a_merge_reads_what_its_source_can_match(
    spark: SparkSession, lake: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    keys = {"primary_keys": ["p", "id"], "options": {"bucket": "1"}} if layout == "keyed" else {}
    partitions = [] if layout == "ranges" else ["p"]
    table = lake.create_table("db.t", "p INT NOT NULL, id INT NOT NULL, v STRING", partition_keys=partitions, **keys)
    monkeypatch.setattr(merge_bounds, "_LARGE_BYTES", 0 if layout == "ranges" else 2**40)
    for p in (1, 2, 3):
        table.write([{"p": p, "id": p * 10 + i, "v": "old"} for i in range(2)])
    (hidden,) = (Path(path) for split in table.scan(where="p = 2").plan().splits for path in split.file_paths)
    rows = [(1, 10, "new"), (1, 15, "in"), (1, 11, None), (None, 12, "none"), (2**40, 12, "none"), (1, None, "none")]
    rows = rows if layout == "ranges" else [*rows[:4], (3, 30, "new")]  # a range of all files is no bound
    spark.createDataFrame(rows, "p BIGINT, id INT, v STRING").createOrReplaceTempView("parts")
    hidden.rename(hidden.with_suffix(".away"))
    unpersist = DataFrame.unpersist

    def end_session(frame: DataFrame) -> None:
        unpersist(frame)
        raise Py4JNetworkError("the Java process ended")

    with monkeypatch.context() as patch:
        patch.setattr(DataFrame, "unpersist", end_session)
        spark.sql(MERGE_PARTS)  # the statement is committed
    with pytest.raises(Exception, match=hidden.name):  # planted: other rows of the table matter, too
        spark.sql(f"{MERGE_PARTS} WHEN NOT MATCHED BY SOURCE THEN DELETE")
    with pytest.raises(Exception, match=hidden.name):  # planted: the rows may be others when they are computed again
        spark.sql(MERGE_PARTS.replace("parts s", "(SELECT *, rand() FROM parts) s"))
    hidden.with_suffix(".away").rename(hidden)
    last = "old" if layout == "ranges" else "new"
    wanted = [(10, "new"), (11, None), (15, "in"), (20, "old"), (21, "old"), (30, last), (31, "old")]
    assert run(spark, "SELECT id, v FROM lake.db.t") == wanted
    assert not spark.sparkContext._jsc.getPersistentRDDs()


def test_the_largest_partition_is_a_constant_of_a_plan(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = lake.create_table("db.days", "id INT, day DATE, n INT", partition_keys=["day", "n"])
    days = [datetime.date(2026, 1, number) for number in (2, 10, 9)]
    table.write([{"id": i, "day": day, "n": 1} for i, day in enumerate([*days, None])])
    frame = spark.sql("SELECT id FROM lake.db.days WHERE day = lake.sys.max_pt('db.days')")
    assert [row.id for row in frame.collect()] == [1]
    assert "PushedFilters: [day IS NOT NULL, day = 20463]" in frame._jdf.queryExecution().toString()
    spark.sql("USE lake.db")
    try:
        assert run(spark, "SELECT sys.MAX_PT('lake.db.days'), sys.max_pt('days')") == [("2026-01-10", "2026-01-10")]
        for call, error in (("max_pt('nope')", "nope"), ("max_pt('days$files')", "system"), ("other(1)", "other")):
            with pytest.raises(Exception, match=error):
                spark.sql(f"SELECT sys.{call}").collect()
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")


def test_settings_of_the_session_are_options_of_tables(spark: SparkSession, lake: paimon.Catalog) -> None:
    table = make_days(lake)
    table.write([{"id": 5, "day": "b", "hour": 1}])
    count, settings = (
        "SELECT count(*) FROM lake.db.days",
        {"scan.snapshot-id": "1", "lake.*.days.scan.snapshot-id": "2"},
    )
    try:
        for number, (name, value) in enumerate(settings.items()):
            spark.conf.set(f"spark.paimon.{name}", value)
            assert run(spark, count) == [(4 + number,)]
        assert run(spark, f"{count} VERSION AS OF 1") == [(4,)]
        spark.sql("UPDATE lake.db.days SET id = 6 WHERE id = 5")  # a change reads the newest snapshot
        assert read_ids(table) == [1, 2, 3, 4, 6]
        for name in ("write.merge-schema", "read.stream.maxFilesPerTrigger", "scan.snapshot-idd"):
            spark.conf.set(f"spark.paimon.{name}", "1")
            with pytest.raises(IllegalArgumentException, match=rf"^InvalidRequest: .*{name}"):
                spark.sql(count)
            spark.conf.unset(f"spark.paimon.{name}")
    finally:
        for name in settings:
            spark.conf.unset(f"spark.paimon.{name}")
    with pytest.raises(IllegalArgumentException, match=r"^InvalidRequest: Option 'write.merge-schema' of Java's"):
        spark.range(1).selectExpr("1 id", "'a' day", "1 hour").write.option("write.merge-schema", "true").insertInto(
            "lake.db.days"
        )


def test_limits_of_streams_have_the_names_of_java_too() -> None:
    for prefix in ("", "read.stream."):
        assert parse_source_options({"path": "t", f"{prefix}maxFilesPerTrigger": "5"}).limits.files == 5
