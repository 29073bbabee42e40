"""Writes of data frames cast values and fill in static partitions as INSERT of Spark does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from support.case_lists import mark_nightly, mark_products

import paimon
import paimon.spark
from paimon.domain.assignment.store_casts import can_store
from paimon.domain.types.type_text import parse_type
from paimon.spark.types import to_batch_schema

pytestmark = pytest.mark.spark
ZONE = "America/New_York"
SPARK_NAMES = {"TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMP_LTZ": "TIMESTAMP", "ROW<a INT>": "STRUCT<a: INT>",
               "ROW<a STRING>": "STRUCT<a: STRING>", "BYTES": "BINARY", "TIME": "TIME(6)"}  # fmt: skip
TYPES = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "STRING", "BYTES",
         "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIME", "ARRAY<INT>", "ARRAY<STRING>", "MAP<INT, INT>",
         "MAP<STRING, STRING>", "ROW<a INT>", "ROW<a STRING>")  # fmt: skip
NOT_IN_SPARK = {("TIME", "DATE"), ("TIME", "TIMESTAMP"), ("TIME", "TIMESTAMP_LTZ"), ("DATE", "TIME")}
"""Pairs whose store assignment is allowed, but whose cast does not exist, or depends on the current date."""


@pytest.fixture
def zoned(spark: SparkSession) -> Iterator[SparkSession]:
    """The session in a time zone with gaps and repeated hours."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def name_in_spark(text: str) -> str:
    return SPARK_NAMES.get(text, text)


def test_the_allowed_pairs_of_types_are_those_of_spark(spark: SparkSession) -> None:
    frames = {text: spark.sql(f"SELECT CAST(NULL AS {name_in_spark(text)}) AS c") for text in TYPES}
    catalyst = spark._jvm.org.apache.spark.sql.catalyst.expressions.Cast
    java = {text: frame._jdf.schema().apply(0).dataType() for text, frame in frames.items()}
    for given_type, frame in frames.items():
        arrow = to_batch_schema(frame.schema).field(0).type
        for target in TYPES:
            allowed = catalyst.canANSIStoreAssign(java[given_type], java[target])
            expected = allowed and (given_type, target) not in NOT_IN_SPARK
            assert can_store(parse_type(target), arrow) == expected, (given_type, target)


CASES = {
    "INT": ["2.9D", "-2.9D", "CAST(2.5 AS DECIMAL(3, 1))", "7L", "CAST(NULL AS DOUBLE)", "float(1.5)"],
    "BIGINT": ["1e15D", "CAST(-123456789012.99 AS DECIMAL(20, 2))", "3Y"],
    "FLOAT": ["0.1D", "16777217", "9007199254740993L", "CAST(0.1 AS DECIMAL(5, 1))"],
    "DOUBLE": ["float(0.1)", "9007199254740993L", "CAST(0.3 AS DECIMAL(20, 10))"],
    "DECIMAL(10, 2)": ["0.125D", "-0.125D", "1e-9D", "float(0.1)", "12345L", "CAST(1.005 AS DECIMAL(6, 3))"],
    "STRING": ["1", "true", "1.0D", "1e10D", "1e-9D", "float(0.1)", "double('NaN')", "double('-Infinity')",
               "CAST(0.0000001 AS DECIMAL(20, 10))", "DATE'2026-01-02'", "DATE'+12026-01-02'", "X'6162'",
               "TIMESTAMP'2026-01-02 03:04:05Z'", "TIMESTAMP'2026-01-02 03:04:05.1200Z'",
               "TIMESTAMP_NTZ'2026-01-02 03:04:05.000001'", "TIMESTAMP_NTZ'2026-01-02 00:00:00'",
               "TIMESTAMP_NTZ'+12026-01-02 00:00:10'", "TIME'10:20:30.5'"],
    "DATE": ["TIMESTAMP'2026-01-02 03:04:05Z'", "TIMESTAMP_NTZ'2026-01-02 23:59:59.9'",
             "TIMESTAMP_NTZ'1969-12-31 23:59:59.9'"],
    "TIMESTAMP": ["DATE'2026-01-02'", "TIMESTAMP'2026-01-02 03:04:05Z'", "DATE'0001-01-01'"],
    "TIMESTAMP_LTZ": ["DATE'2026-01-02'", "TIMESTAMP_NTZ'2026-03-08 02:30:00'", "TIMESTAMP_NTZ'2026-11-01 01:30:00'",
                      "DATE'1883-01-01'"],
    "TIME": ["TIMESTAMP'2026-01-02 03:04:05Z'", "TIMESTAMP_NTZ'2026-01-02 23:59:59'"],
    "ARRAY<STRING>": ["array(1, NULL)", "CAST(NULL AS ARRAY<INT>)"],
    "MAP<STRING, STRING>": ["map(1, 2.5D)"],
    "ROW<a STRING>": ["named_struct('a', 1)"],
}  # fmt: skip


def number_columns(cases: Mapping[str, Sequence[str]]) -> tuple[list[str], dict[str, str]]:
    """Return all expressions as columns of a query, and the type that each column is assigned to."""
    pairs = [(expression, target) for target, expressions in cases.items() for expression in expressions]
    selected = [f"{expression} AS c{i}" for i, (expression, _) in enumerate(pairs)]
    return selected, {f"c{i}": target for i, (_, target) in enumerate(pairs)}


def create_pair(catalog: paimon.Catalog, columns: Mapping[str, str]) -> tuple[paimon.Table, paimon.Table]:
    ddl = ", ".join(f"{name} {target}" for name, target in columns.items())
    return catalog.create_table("db.function", ddl), catalog.create_table("db.other", ddl)


def test_values_are_those_of_insert(zoned: SparkSession, catalog: paimon.Catalog, tmp_path: Path) -> None:
    selected, columns = number_columns(CASES)
    query = f"SELECT {', '.join(selected)}"
    expected = insert_with_spark(zoned, query, columns, tmp_path)
    by_function, by_source = create_pair(catalog, columns)
    paimon.spark.write(zoned.sql(query), by_function)
    zoned.sql(query).write.format("paimon").mode("append").save(by_source.location)
    for table in (by_function, by_source):
        assert paimon.spark.read(zoned, table).collect() == expected


def insert_with_spark(spark: SparkSession, query: str, columns: dict[str, str], folder: Path) -> list[Row]:
    ddl = ", ".join(f"{name} {name_in_spark(target)}" for name, target in columns.items())
    spark.sql(f"CREATE TABLE inserted ({ddl}) USING parquet LOCATION '{folder / 'inserted'}'")
    try:
        spark.sql(f"INSERT INTO inserted {query}")
        return spark.sql("SELECT * FROM inserted").collect()
    finally:
        spark.sql("DROP TABLE inserted")


INTERVALS_AND_VARIANTS = {
    "STRING": ["INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '-5' HOUR", "INTERVAL '1-2' YEAR TO MONTH",
               "CAST(NULL AS INTERVAL DAY)",
               "parse_json('{\"a\":1.50,\"b\":[true,null,\"x\"]}')", "parse_json('\"x\"')"],
    "ARRAY<STRING>": ["array(INTERVAL '5' DAY, NULL)", "array(parse_json('1'))"],
    "MAP<STRING, STRING>": ["map('a', INTERVAL '2' MONTH)"],
    "ROW<a STRING>": ["named_struct('a', parse_json('[1]'))"],
}  # fmt: skip


def test_intervals_and_variants_become_the_texts_of_insert(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path
) -> None:
    selected, columns = number_columns(INTERVALS_AND_VARIANTS)
    query = f"SELECT {', '.join(selected)}"
    expected = insert_with_spark(spark, query, columns, tmp_path)
    written, streamed = create_pair(catalog, columns)
    paimon.spark.write(spark.sql(query), written)
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "one.json").write_text('{"id": 1}')
    stream = spark.readStream.schema("id INT").json(str(tmp_path / "incoming"))
    stream = stream.selectExpr(*selected)
    once = {"availableNow": True}
    paimon.spark.write_stream(stream, streamed, str(tmp_path / "checkpoint"), trigger=once).awaitTermination()
    assert paimon.spark.read(spark, written).collect() == expected == paimon.spark.read(spark, streamed).collect()


@pytest.mark.parametrize(
    "value", mark_nightly(["INTERVAL '1' DAY", "INTERVAL '1' MONTH", "parse_json('1')"], always=["INTERVAL '1' DAY"])
)
def test_intervals_and_variants_are_refused_where_no_frame_can_be_cast(
    spark: SparkSession, catalog: paimon.Catalog, value: str
) -> None:
    text, number = catalog.create_table("db.texts", "c STRING"), catalog.create_table("db.numbers", "c INT")
    frame = spark.sql(f"SELECT {value} AS c")
    with pytest.raises(PySparkException, match=r"InvalidRequest: (.|\n)*[Cc]ast (it to STRING|these columns)"):
        frame.write.format("paimon").mode("append").save(text.location)
    with pytest.raises(paimon.InvalidRequest, match=r"[Cc]ast (it to STRING|these columns)"):
        paimon.spark.write(frame, number)
    assert text.snapshots() == number.snapshots() == []


MICROS = ["1969-12-31 23:59:58.999999", "2026-01-02 03:04:05.678901"]


FRACTIONS = {0: ["59.0", "5.0"], 2: ["59.0", "5.67"], 3: ["58.999", "5.678"], 5: ["58.99999", "5.67890"]}


def test_digits_that_a_column_lacks_are_cut_off(spark: SparkSession, catalog: paimon.Catalog) -> None:
    kinds = {"TIMESTAMP": "n", "TIMESTAMP_LTZ": "z"}
    columns = {f"{name}{digits}": f"{kind}({digits})" for kind, name in kinds.items() for digits in FRACTIONS}
    by_function, by_source = create_pair(catalog, columns)
    values = ", ".join(f"(TIMESTAMP_NTZ'{micros}', TIMESTAMP'{micros}Z')" for micros in MICROS)
    frame = spark.sql(f"SELECT {', '.join(f'{name[0]} AS {name}' for name in columns)} FROM VALUES {values} AS t(n, z)")
    paimon.spark.write(frame, by_function)
    frame.write.format("paimon").mode("append").save(by_source.location)
    for table in (by_function, by_source):
        for name, values in table.scan().to_arrow().to_pydict().items():
            found = sorted(value.second + value.microsecond / 1e6 for value in values)
            assert found == sorted(map(float, FRACTIONS[int(name[1])])), name


@pytest.mark.parametrize(
    ("target", "value", "message"),
    mark_nightly(
        [
            ("INT", "'1'", r"c INT +\| c string +\| another type(.|\n)*cast these columns"),
            ("DATE", "'2026-01-01'", "c DATE +. c string"),
            ("BOOLEAN", "1", "c BOOLEAN +. c int32"),
            ("BYTES", "'a'", "c BYTES +. c string"),
            ("BIGINT", "TIMESTAMP'2026-01-02 03:04:05Z'", "c BIGINT +. c timestamp"),
            ("STRING", "array(1)", "c STRING +. c list"),
            ("ARRAY<INT>", "array('1')", "c ARRAY<INT> +. c list"),
        ],
        always=["INT", "ARRAY<INT>"],
    ),
)
def test_other_types_are_refused_by_name_before_a_job(
    spark: SparkSession, catalog: paimon.Catalog, target: str, value: str, message: str
) -> None:
    table = catalog.create_table("db.t", f"c {target}")
    frame = spark.sql(f"SELECT {value} AS c")
    with pytest.raises(paimon.InvalidRequest, match=message):
        paimon.spark.write(frame, table)
    with pytest.raises(PySparkException, match=message):
        frame.write.format("paimon").mode("append").save(table.location)


@pytest.mark.parametrize(
    ("target", "value", "message"),
    [("INT", "3e9D", "'c' of type INT cannot be set"), ("VARCHAR(2)", "123", "'c' contains a value of 3 characters"),
     *(pytest.param(*case, marks=pytest.mark.nightly) for case in [
         ("DECIMAL(3, 1)", "100D", r"100.0 does not fit"), ("INT", "double('NaN')", "'c' of type INT"),
         ("TINYINT", "128", "'c' contains a value that does not fit TINYINT"),
     ])],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused_in_tasks(
    spark: SparkSession, catalog: paimon.Catalog, target: str, value: str, message: str
) -> None:
    table = catalog.create_table("db.t", f"c {target}")
    frame = spark.range(1).selectExpr(f"{value} AS c")
    with pytest.raises(paimon.InvalidRequest, match=message):
        paimon.spark.write(frame, table)
    assert table.snapshots() == []


def test_streams_cast_in_the_time_zone_of_the_session(
    zoned: SparkSession, catalog: paimon.Catalog, tmp_path: Path
) -> None:
    tables = [catalog.create_table(f"db.{name}", "at TIMESTAMP_LTZ, s STRING") for name in ("function", "source")]
    zoned.sql("SELECT DATE'2026-01-02' AS at, 1.5D AS s").write.json(str(tmp_path / "incoming"))
    stream = zoned.readStream.schema("at DATE, s DOUBLE").json(str(tmp_path / "incoming"))
    once = {"availableNow": True}
    paimon.spark.write_stream(stream, tables[0], str(tmp_path / "a"), trigger=once).awaitTermination()
    writer = stream.writeStream.format("paimon").option("checkpointLocation", str(tmp_path / "b"))
    writer.trigger(availableNow=True).start(tables[1].location).awaitTermination()
    for table in tables:
        (row,) = table.scan().to_arrow().to_pylist()
        assert row == {"at": datetime(2026, 1, 2, 5, tzinfo=UTC), "s": "1.5"}


@pytest.mark.parametrize(("mode", "keyed"), mark_products(["append", "overwrite"], [False, True]))
def test_a_static_partition_fills_in_its_columns(
    spark: SparkSession, catalog: paimon.Catalog, mode: str, keyed: bool
) -> None:
    keys = {"primary_keys": ["id", "day", "hour"], "options": {"bucket": 2}} if keyed else {}
    ddl = "id BIGINT NOT NULL, day DATE NOT NULL, hour INT NOT NULL"
    table = catalog.create_table("db.t", ddl, partition_keys=["day", "hour"], **keys)
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    table.write([{"id": 1, "day": day, "hour": 1} for day in days])
    result = paimon.spark.write(spark.sql("SELECT 2L AS id, 2Y AS hour"), table, mode, partition={"day": "2026-01-01"})
    assert result.rows == 1
    paimon.spark.write(spark.sql("SELECT 3 AS id"), table, mode, partition={"hour": 3, "day": days[1]})
    rows = {(row["id"], row["day"], row["hour"]) for row in table.scan().to_arrow().to_pylist()}
    kept = {(1, days[1], 1)} | ({(1, days[0], 1)} if mode == "append" else set())
    assert rows == kept | {(2, days[0], 2), (3, days[1], 3)}
    paimon.spark.write(spark.sql("SELECT 4L AS id"), table, "overwrite", partition={"hour": 3, "day": days[1]})
    assert (4, days[1], 3) in {tuple(row.values()) for row in table.scan().to_arrow().to_pylist()}
    assert table.scan(where="hour = 3").count() == 1


@pytest.mark.parametrize("mode", mark_nightly(["append", "overwrite"], always=["overwrite"]))
def test_columns_that_contradict_the_static_partition_are_refused_by_name(
    spark: SparkSession, catalog: paimon.Catalog, mode: str
) -> None:
    table = catalog.create_table("db.t", "id BIGINT, day STRING", partition_keys=["day"])
    same = spark.sql("SELECT 1L AS id, 'a' AS day")
    assert paimon.spark.write(same, table, mode, partition={"day": "a"}).rows == 1
    before = len(table.snapshots())
    other = spark.sql("SELECT 1L AS id, 'b' AS day")
    with pytest.raises(paimon.InvalidRequest, match=r"Column 'day' contains 'b'.*the partition with 'a'"):
        paimon.spark.write(other, table, mode, partition={"day": "a"})
    with pytest.raises(paimon.InvalidRequest, match=r"Column 'di' is not a partition column.*day"):
        paimon.spark.write(same, table, mode, partition={"di": "a"})
    assert len(table.snapshots()) == before
