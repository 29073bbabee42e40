"""Files without a merge are read by Spark's own reader: the same rows as by a scan, and the plan names the reader."""

from __future__ import annotations

import math
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.case_lists import mark_nightly, mark_products
from support.drawn_tables import CHANGES, COLUMNS, NOT_SHARED, batches, tables

import paimon
import paimon.spark
from paimon.domain.errors import SnapshotExpired
from paimon.spark.parquet_files import SETTING
from paimon.spark.sql.queries import SparkQueries
from paimon.spark.types import to_batch_schema, to_spark_batch

pytestmark = pytest.mark.spark

PYTHON, PARQUET = "Scan paimon", "FileScan parquet"
CONDITIONS = [
    "size > 1", "size = 0", "size <> 1.5", "size >= double('NaN')", "ratio > 1e30", "ratio = float('NaN')",
    "ratio BETWEEN -1 AND 1", "NOT size > 1", "isnan(size)", "size IS NULL", "word > 'B'", "word LIKE 'a%'",
    "code = 'a'", "raw > X'61'", "day < DATE '2000-01-01'", "at < TIMESTAMP_NTZ '1970-01-01 00:00:00'",
    "zoned >= TIMESTAMP '2026-01-01 00:00:00Z'", "money < 0", "amount = 0.001", "flag", "tiny = 127",
    "id > 3", "part = 'p'", "part = ''", "part <> 'q'", "id = 2 AND size IS NOT NULL", "number IN (0, 5)",
]  # fmt: skip


def readers_of(frame: DataFrame) -> set[str]:
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return {reader for reader in (PYTHON, PARQUET) if reader in plan}


def to_multiset(rows: pa.Table) -> list[str]:
    return sorted(repr(row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True))


def count_filtered(frame: DataFrame, conditions: list[str]) -> dict[int, int]:
    """Return how many rows fulfil each condition; Spark may push it into the scan."""
    parts = [frame.where(text).select(F.lit(at).alias("at")) for at, text in enumerate(conditions)]
    found = Counter(row["at"] for row in reduce(DataFrame.union, parts).collect())
    return {at: found[at] for at in range(len(conditions))}


def check_table(spark: SparkSession, table: paimon.Table, conditions: list[str]) -> None:
    """Compare the rows with those of a scan, and the rows of filters with those of conditions that are not pushed."""
    frame = paimon.spark.read(spark, table)
    names = frame.columns
    found = frame.select("*", *(F.expr(text).alias(f"c{at}") for at, text in enumerate(conditions))).toArrow()
    rows = to_spark_batches(table.scan().to_arrow(), frame)
    assert to_multiset(found.select(names)) == to_multiset(rows)
    expected = {at: found[f"c{at}"].to_pylist().count(True) for at in range(len(conditions))}
    assert count_filtered(frame, conditions) == expected, conditions


def to_spark_batches(rows: pa.Table, frame: DataFrame) -> pa.Table:
    schema = to_batch_schema(frame.schema)
    return pa.Table.from_batches([to_spark_batch(batch, schema) for batch in rows.to_batches()], schema)


def fill_table(tmp_path: Path, drawn: DrawnTable) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    columns = COLUMNS | (NOT_SHARED if drawn["has_other_types"] else {})
    text = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    table = catalog.create_table("db.t", text, **drawn["declared"])
    for rows, change in drawn["writes"]:
        names = table.schema.names
        table.write(
            [{name: value for name, value in row.items() if name in names} for row in rows], missing_columns="null"
        )
        change(table)
        table = catalog.table("db.t")
    return table


DrawnTable = dict[str, Any]
DRAWN = st.fixed_dictionaries(
    {
        "declared": tables(),
        "writes": st.lists(st.tuples(batches(), st.sampled_from(CHANGES)), min_size=1, max_size=3),
        "has_other_types": st.sampled_from([False, False, False, True]),
    }
)
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


@settings(max_examples=5, deadline=None, phases=PHASES)
@given(drawn=DRAWN, conditions=st.lists(st.sampled_from(CONDITIONS), min_size=3, max_size=3, unique=True))
def test_both_readers_return_the_same_rows(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, drawn: DrawnTable, conditions: list[str]
) -> None:
    check_table(spark, fill_table(tmp_path_factory.mktemp("lake"), drawn), conditions)


@pytest.mark.long
@settings(max_examples=150, deadline=None, phases=PHASES)
@given(drawn=DRAWN, conditions=st.lists(st.sampled_from(CONDITIONS), min_size=5, max_size=5, unique=True))
def test_both_readers_return_the_same_rows_of_many_tables(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, drawn: DrawnTable, conditions: list[str]
) -> None:
    check_table(spark, fill_table(tmp_path_factory.mktemp("lake"), drawn), conditions)


ROWS = [
    {"id": i, "p": "a" if i % 2 else "b c", "x": math.nan if i % 5 == 0 else float(i), "w": str(i)} for i in range(20)
]
CREATED = "id BIGINT NOT NULL, p STRING NOT NULL, x DOUBLE, w STRING"
KEYED: dict[str, Any] = {
    "primary_keys": ["id", "p"],
    "partition_keys": ["p"],
    "options": {"bucket": 1, "write-only": True},
}


def test_the_plan_names_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "_a b%20")
    catalog.create_database("db")
    table = catalog.create_table("db.t", CREATED, **KEYED)
    table.write(ROWS)
    first = paimon.spark.read(spark, table)
    table.write([{**ROWS[0], "w": "new"}])  # only the partition "b c" is merged
    assert readers_of(first) == {PARQUET}
    merged = paimon.spark.read(spark, table)
    assert readers_of(merged) == {PARQUET, PYTHON}
    table.compact(full=True)
    table.alter("RENAME COLUMN w TO v")
    table = catalog.table("db.t")
    table.alter("ADD COLUMN e INT")
    table = catalog.table("db.t")
    table.write([{"id": 99, "p": "a", "x": 1.0, "v": "z", "e": 7}])
    changed = paimon.spark.read(spark, table)
    # A frame reads the snapshot at which it was created.
    counts = first.agg(F.count("*").alias("n"), F.max("w").alias("w"))
    counts = counts.union(merged.agg(F.count("*"), F.max("w")))
    counts = counts.union(changed.where("x > 1e300").agg(F.count("*"), F.max("v")))  # NaN is greater
    counts = counts.union(changed.where("e IS NOT NULL").agg(F.count("*"), F.max("v")))
    assert [tuple(row) for row in counts.collect()] == [(20, "9"), (20, "new"), (4, "new"), (1, "z")]
    connected = paimon.spark.connect(spark, tmp_path / "_a b%20")
    query = connected.sql("SELECT id FROM db.t WHERE id = 3 AND v IS NOT NULL")
    assert readers_of(query) == {PARQUET}
    assert [tuple(row) for row in query.collect()] == [(3,)]
    spark.conf.set(SETTING, "python")
    try:
        assert readers_of(paimon.spark.read(spark, table)) == {PYTHON}
        spark.conf.set(SETTING, "hive")
        with pytest.raises(paimon.InvalidRequest, match="'hive'"):
            paimon.spark.read(spark, table)
    finally:
        spark.conf.unset(SETTING)


@pytest.mark.parametrize("declared", [{}, {"primary_keys": ["id"], "options": {"bucket": 1}}])
def test_columns_are_found_by_their_ids(spark: SparkSession, tmp_path: Path, declared: dict[str, Any]) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    catalog.create_table("db.t", "id BIGINT NOT NULL, a STRING, b STRING, c STRING, n INT", **declared)

    def change(*clauses: str) -> paimon.Table:
        for clause in clauses:
            catalog.table("db.t").alter(clause)
        return catalog.table("db.t")

    def write(table: paimon.Table, row: dict[str, Any]) -> None:
        table.write([row], missing_columns="null")
        table.compact(full=True)

    write(catalog.table("db.t"), {"id": 1, "a": "a1", "b": "b1", "c": "c1", "n": 1})
    swapped = change("RENAME COLUMN a TO x", "RENAME COLUMN b TO a", "RENAME COLUMN x TO b")
    assert readers_of(paimon.spark.read(spark, swapped)) == {PARQUET}
    assert paimon.spark.read(spark, swapped, where="a = 'b1'").collect() == [(1, "a1", "b1", "c1", 1)]
    again = change("DROP COLUMN c", "ADD COLUMN c STRING")
    assert readers_of(paimon.spark.read(spark, again)) == {PARQUET}
    assert paimon.spark.read(spark, again).select("id", "a", "b", "c").collect() == [(1, "b1", "a1", None)]
    assert paimon.spark.read(spark, again).where("c IS NOT NULL").count() == 0
    write(change("ALTER COLUMN n TYPE BIGINT"), {"id": 2, "c": "new", "n": 2**40})
    changed = change("ADD COLUMN d INT", "ALTER COLUMN d SET DEFAULT 7")
    write(changed, {"id": 3})
    rows = paimon.spark.read(spark, changed).select("id", "c", "n", "d").sort("id").collect()
    assert rows == [(1, None, 1, None), (2, "new", 2**40, None), (3, None, None, 7)]
    check_table(spark, changed, ["n = 1", "n > 1099511627775", "c IS NULL", "d = 7", "d IS NULL"])


NOT_READ: dict[str, tuple[str, dict[str, Any]]] = {
    "format": (CREATED, {"options": {"file.format": "orc"}}),
    "codec": (CREATED, {"options": {"file.compression": "lz4"}}),
    "nanoseconds": ("id BIGINT, t TIMESTAMP(9)", {}),
    "milliseconds": ("id BIGINT, t TIMESTAMP(3)", {}),
    "time": ("id BIGINT, t TIME", {}),
    "nested": ("id BIGINT, t ARRAY<INT>", {}),
    "default": (CREATED, {"options": {"fields.w.default-value": "d"}}),
    "lost files": (CREATED, {"options": {"scan.ignore-lost-files": "true"}}),
    "prefix": (CREATED, {"options": {"data-file.prefix": "_data-"}}),
}


@pytest.mark.parametrize("case", mark_nightly(NOT_READ, always=["format", "nanoseconds", "default"]))
def test_other_files_are_read_by_tasks(spark: SparkSession, tmp_path: Path, case: str) -> None:
    columns, declared = NOT_READ[case]
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", columns, **declared)
    table.write([{name: value for name, value in ROWS[1].items() if name in table.schema.names}])
    assert readers_of(paimon.spark.read(spark, table)) == {PYTHON}
    assert readers_of(paimon.spark.read(spark, table, columns=["id"])) == (
        {PARQUET} if "id BIGINT," in columns else {PYTHON}
    )


def test_nested_fields_and_system_columns_are_read_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True}
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT, r ROW<x INT, y STRING>", options=options)
    table.write([{"id": 1, "r": {"x": 7, "y": "a"}}])
    frame = paimon.spark.read(spark, table, columns=["r.x", "_ROW_ID"])
    assert readers_of(frame) == {PYTHON}
    assert frame.collect() == [(7, 0)]


def test_files_outside_of_the_storage_rules_are_not_given_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake{a}")  # a wildcard
    catalog.create_database("db")
    table = catalog.create_table("db.t", CREATED)
    table.write(ROWS)
    assert readers_of(paimon.spark.read(spark, table)) == {PYTHON}
    catalog = paimon.connect(f"local://{tmp_path}/store", storage={"single-writer": True})  # not a local path
    catalog.create_database("db")
    table = catalog.create_table("db.t", CREATED)
    table.write(ROWS)
    assert readers_of(paimon.spark.read(spark, table)) == {PYTHON}


def test_links_and_damage_are_reported_when_a_frame_is_created(spark: SparkSession, tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    table = catalog.create_table("db.t", CREATED)
    table.write(ROWS)
    frame = paimon.spark.read(spark, table)
    (path,) = (tmp_path / "lake").rglob("data-*.parquet")
    moved = tmp_path / "elsewhere.parquet"
    path.rename(moved)
    with pytest.raises(paimon.CorruptTable, match="does not exist"):
        paimon.spark.read(spark, table)
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises((PySparkException, Py4JError), match=path.name):  # the rows are not lost
            frame.collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    path.symlink_to(moved)
    with pytest.raises(paimon.CorruptTable, match="outside the allowed roots"):
        paimon.spark.read(spark, table)
    path.unlink()
    content = bytearray(moved.read_bytes())
    content[60] ^= 1  # a byte of a page
    path.write_bytes(bytes(content))
    with pytest.raises((PySparkException, Py4JError), match="FAILED_READ_FILE"):
        paimon.spark.read(spark, table).collect()


def expire_all(table: paimon.Table) -> None:
    """Replace the rows of a table by a process of its own, and let all older snapshots expire."""
    other = paimon.open_table(table.definition.location)
    other.overwrite([{"id": 9, "word": "x"}])
    other.compact(full=True)
    other.maintain.expire_snapshots(retain_min=1, retain_max=1)


@pytest.mark.parametrize(("keys", "reader"), mark_products([[], ["id"]], ["spark", "python"]))
def test_a_snapshot_that_expires_before_the_job_is_named(
    spark: SparkSession, tmp_path: Path, keys: list[str], reader: str
) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    bucket = {"bucket": "1"} if keys else {}
    table = catalog.create_table("db.t", "id BIGINT NOT NULL, word STRING", primary_keys=keys, options=bucket)
    table.write([{"id": 1, "word": "a"}])
    table.write([{"id": 2, "word": "b"}])
    target = catalog.create_table("db.copy", "id BIGINT NOT NULL, word STRING")
    spark.conf.set(SETTING, reader)
    try:
        newest, older = paimon.spark.read(spark, table), paimon.spark.read(spark, table, snapshot=1)
    finally:
        spark.conf.unset(SETTING)
    expire_all(table)
    expired = r"Snapshot \d of table 'db\.t' expired while it was read"
    for frame in (newest, older):
        with pytest.raises(SnapshotExpired if reader == "spark" else (PySparkException, Py4JError), match=expired):
            frame.collect()
    with pytest.raises(SnapshotExpired, match=expired):
        paimon.spark.write(older.where("id > 0").select("id", F.upper("word").alias("word")), target)
    session = paimon.spark.connect(spark, tmp_path / "lake")
    with pytest.raises(SnapshotExpired, match=expired):
        session.sql("INSERT INTO db.copy SELECT * FROM f WHERE id > 0", f=newest)
    with pytest.raises(SnapshotExpired, match=expired):
        SparkQueries(spark).run('SELECT word FROM "f"', {"f": SparkQueries(spark).adopt(newest)}).read_all()
    assert not target.scan().count()


def test_a_file_that_is_lost_is_not_called_expired(spark: SparkSession, tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    table = catalog.create_table("db.t", CREATED)
    table.write(ROWS)
    frame = paimon.spark.read(spark, table)
    for path in (tmp_path / "lake").rglob("data-*.parquet"):
        path.unlink()
    with pytest.raises(paimon.StorageError, match="does not exist"):
        paimon.spark.write(frame, catalog.create_table("db.copy", CREATED))
