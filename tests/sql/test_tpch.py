"""The 22 queries of TPC-H over tables of Paimon return what DuckDB returns over the plain Parquet files.

Spark evaluates some of them here, and all 22 in the test that is marked long.

The tables have primary keys and several runs, `orders` has partitions, and `lineitem` has deletion vectors. The scale
is tiny; `PAIMON_TPCH_SCALE` sets another one.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

import paimon
from paimon.sql.lexer import split_statements
from paimon.sql.run import SqlSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = os.environ.get("PAIMON_TPCH_SCALE", "0.002")
QUERIES = [
    reader.text for reader in split_statements((Path(__file__).parent / "tpch" / "queries.sql").read_text("utf8"))
]
KEYS = {
    "region": ["r_regionkey"],
    "nation": ["n_nationkey"],
    "supplier": ["s_suppkey"],
    "customer": ["c_custkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
}
OPTIONS = {"lineitem": {"deletion-vectors.enabled": True}, "part": {"merge-engine": "partial-update"}}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the tables; at tiny scales the generator repeats keys of partsupp, which are removed."""
    folder = tmp_path_factory.mktemp("tpch")
    tool = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([tool, "parquet", "-s", SCALE, f"--output-dir={folder}"], check=True, capture_output=True)
    connection = duckdb.connect()
    for name, keys in KEYS.items():
        rows = f"SELECT DISTINCT ON ({', '.join(keys)}) * FROM read_parquet('{folder / name}.parquet')"
        connection.execute(f"CREATE TABLE {name} AS {rows}")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def session(plain: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> SqlSession:
    """A warehouse in which each table was written in several commits, some rows more than once."""
    catalog = paimon.connect(tmp_path_factory.mktemp("lake"))
    session = catalog.sql_session()
    session.sql("CREATE DATABASE tpch; USE tpch")
    for name, keys in KEYS.items():
        partition_keys = ["o_part"] if name == "orders" else []
        more = ", year(o_orderdate)::INTEGER AS o_part" if name == "orders" else ""
        rows = plain.sql(f"SELECT *{more} FROM {name}").to_arrow_table()
        options = {"bucket": 1, "num-sorted-run.compaction-trigger": 10, **OPTIONS.get(name, {})}
        catalog.create_table(
            f"tpch.{name}", rows.schema, primary_keys=keys + partition_keys, partition_keys=partition_keys,
            options=options,
        )  # fmt: skip
        third = rows.num_rows // 3 + 1
        for part in (rows.slice(0, 2 * third), rows.slice(third), rows.slice(0, third)):
            if part.num_rows:
                session.sql(f"INSERT INTO {name} SELECT * FROM df", df=part)
    return session


def assert_same_rows(found: pa.Table, expected: pa.Table, query: str) -> None:
    assert found.column_names == expected.column_names, query
    assert found.num_rows == expected.num_rows, query
    for name in found.column_names:
        for got, wanted in zip(found[name].to_pylist(), expected[name].to_pylist(), strict=True):
            if isinstance(wanted, float | Decimal):
                assert math.isclose(got, wanted, rel_tol=1e-9), (query, name)
            else:
                assert got == wanted, (query, name)


def compare_all(session: SqlSession, plain: duckdb.DuckDBPyConnection) -> int:
    rows = 0
    for query in QUERIES:
        expected = plain.sql(query).to_arrow_table()
        assert_same_rows(session.sql(query).to_arrow(), expected, query)
        rows += expected.num_rows
    return rows


def test_queries_return_the_same_rows(session: SqlSession, plain: duckdb.DuckDBPyConnection) -> None:
    assert len(QUERIES) == 22
    assert compare_all(session, plain) > 100


QUICK_ON_SPARK = (1, 6, 13, 15, 22)
"""A grouped scan, pushed conditions, an outer join, a common table expression, and subqueries."""


def compare_on_spark(
    spark: SparkSession, session: SqlSession, plain: duckdb.DuckDBPyConnection, numbers: Sequence[int]
) -> None:
    from paimon.spark import connect

    on_spark = connect(spark, session.state.catalogs["paimon"])
    on_spark.sql("USE tpch")
    for number in numbers:
        query = QUERIES[number - 1]
        assert_same_rows(on_spark.sql(query).toArrow(), plain.sql(query).to_arrow_table(), query)


@pytest.mark.spark
def test_spark_returns_the_same_rows(
    spark: SparkSession, session: SqlSession, plain: duckdb.DuckDBPyConnection
) -> None:
    compare_on_spark(spark, session, plain, QUICK_ON_SPARK)


@pytest.mark.spark
@pytest.mark.long
def test_spark_returns_the_same_rows_of_all_queries(
    spark: SparkSession, session: SqlSession, plain: duckdb.DuckDBPyConnection
) -> None:
    compare_on_spark(spark, session, plain, range(1, 23))


MERGE = """
MERGE INTO partsupp AS t
USING (
    SELECT ps_partkey + n AS ps_partkey, ps_suppkey, ps_availqty + 100 AS quantity, ps_supplycost, ps_comment
    FROM partsupp, (VALUES (0), (100000)) AS copies(n) WHERE ps_partkey < 100
) AS s
ON t.ps_partkey = s.ps_partkey AND t.ps_suppkey = s.ps_suppkey
WHEN MATCHED AND s.ps_partkey < 20 THEN DELETE
WHEN MATCHED THEN UPDATE SET ps_availqty = s.quantity, ps_supplycost = t.ps_supplycost * 2
WHEN NOT MATCHED THEN INSERT (ps_partkey, ps_suppkey, ps_availqty, ps_supplycost, ps_comment)
    VALUES (s.ps_partkey, s.ps_suppkey, s.quantity, s.ps_supplycost, s.ps_comment)
WHEN NOT MATCHED BY SOURCE AND t.ps_partkey > 300 THEN UPDATE SET ps_comment = upper(t.ps_comment)
"""


def test_queries_return_the_same_rows_after_changes(session: SqlSession, plain: duckdb.DuckDBPyConnection) -> None:
    # RF1 and RF2: new orders with their lines, and orders that are deleted with their lines.
    ((shift,),) = plain.sql("SELECT max(o_orderkey) FROM orders").fetchall()
    for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        rows = plain.sql(f"SELECT * REPLACE ({key} + {shift} AS {key}) FROM {name} WHERE {key} < 200").to_arrow_table()
        year = ", year(o_orderdate)" if name == "orders" else ""
        session.sql(f"INSERT INTO {name} SELECT *{year} FROM df", df=rows)
        session.sql(f"DELETE FROM {name} WHERE {key} BETWEEN 300 AND 600")
        plain.register("df", rows)
        plain.execute(f"INSERT INTO {name} SELECT * FROM df")
        plain.execute(f"DELETE FROM {name} WHERE {key} BETWEEN 300 AND 600")
    session.sql("UPDATE customer SET c_mktsegment = 'BUILDING' WHERE c_custkey < 50")
    plain.execute("UPDATE customer SET c_mktsegment = 'BUILDING' WHERE c_custkey < 50")
    (changed,) = session.sql(MERGE).to_arrow().to_pylist()
    assert min(changed["inserted"], changed["updated"], changed["deleted"]) > 10
    plain.execute(MERGE)
    every_row = "SELECT * FROM partsupp ORDER BY ps_partkey, ps_suppkey"
    assert_same_rows(session.sql(every_row).to_arrow(), plain.sql(every_row).to_arrow_table(), MERGE)
    assert compare_all(session, plain) > 100
