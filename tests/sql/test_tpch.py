"""The 22 queries of TPC-H over tables of Paimon return what DuckDB returns over the plain Parquet files.

The tables have primary keys and several runs, `orders` has partitions, and `lineitem` has deletion vectors. The queries
run before and after refreshes. Here the scale is tiny, and Spark evaluates some queries. The tests that are marked long
run all of them on both engines at the scale of `PAIMON_TPCH_SCALE`, which is 0.1 by default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from support.tpch import APPEND, KEYED, QUERIES, Layout, Run, compare, generate, refresh, write_tables

import paimon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = "0.002"
LONG_SCALE = os.environ.get("PAIMON_TPCH_SCALE", "0.1")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The plain tables."""
    with generate(tmp_path_factory.mktemp("tpch"), SCALE) as connection:
        yield connection


@pytest.fixture(scope="module")
def catalog(plain: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> paimon.Catalog:
    """A warehouse in which each table was written in several commits, some rows more than once."""
    catalog = paimon.connect(tmp_path_factory.mktemp("lake"))
    write_tables(catalog, plain, open_embedded(catalog))
    return catalog


def open_embedded(catalog: paimon.Catalog) -> Run:
    """Return a function that runs statements in this process."""
    session = catalog.sql_session()

    def run(text: str, **frames: Any) -> pa.Table:
        return session.sql(text, **frames).to_arrow()

    return run


def open_on_spark(catalog: paimon.Catalog, spark: SparkSession) -> Run:
    """Return a function that runs statements on Spark."""
    from paimon.spark import connect

    session = connect(spark, catalog)

    def run(text: str, **frames: Any) -> pa.Table:
        return session.sql(text, **frames).toArrow()

    return run


def use(run: Run) -> Run:
    """Return the same session, with the database of the tables as the current one."""
    run("USE tpch")
    return run


@pytest.mark.nightly
def test_queries_return_the_same_rows(catalog: paimon.Catalog, plain: duckdb.DuckDBPyConnection) -> None:
    assert len(QUERIES) == 22
    assert compare(use(open_embedded(catalog)), plain) > 100


QUICK_ON_SPARK = (6, 13, 15, 22)
"""Pushed conditions, an outer join, a common table expression, and subqueries."""
GROUPED = (1,)
"""A grouped scan of the largest table."""


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.slow("compares queries of joins on Spark")
def test_spark_returns_the_same_rows(
    spark: SparkSession, catalog: paimon.Catalog, plain: duckdb.DuckDBPyConnection
) -> None:
    assert compare(use(open_on_spark(catalog, spark)), plain, QUICK_ON_SPARK) > 5


@pytest.mark.spark
@pytest.mark.nightly
def test_spark_returns_the_same_rows_of_large_groups(
    spark: SparkSession, catalog: paimon.Catalog, plain: duckdb.DuckDBPyConnection
) -> None:
    assert compare(use(open_on_spark(catalog, spark)), plain, (1, 18)) > 2


def test_queries_return_the_same_rows_after_refreshes(
    catalog: paimon.Catalog, plain: duckdb.DuckDBPyConnection
) -> None:
    embedded = use(open_embedded(catalog))
    changed = refresh(embedded, plain)
    assert min(changed["inserted"], changed["updated"], changed["deleted"]) > 10
    assert compare(embedded, plain) > 100


@pytest.mark.spark
@pytest.mark.slow("compares queries of joins on Spark")
def test_spark_returns_the_same_rows_after_refreshes(
    spark: SparkSession, catalog: paimon.Catalog, plain: duckdb.DuckDBPyConnection
) -> None:
    assert compare(use(open_on_spark(catalog, spark)), plain, GROUPED) > 2


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("writer", ["embedded", "spark"])
@pytest.mark.parametrize("layout", [KEYED, APPEND], ids=["keyed", "append"])
def test_both_engines_return_the_same_rows(spark: SparkSession, tmp_path: Path, layout: Layout, writer: str) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    sessions = {"embedded": open_embedded(catalog), "spark": open_on_spark(catalog, spark)}
    with generate(tmp_path / "plain", LONG_SCALE) as plain:
        write_tables(catalog, plain, sessions[writer], layout)
        for run in sessions.values():
            assert compare(use(run), plain) > 100
        changed = refresh(sessions[writer], plain)
        assert min(changed["inserted"], changed["updated"], changed["deleted"]) > 10
        for run in sessions.values():
            assert compare(run, plain) > 100
