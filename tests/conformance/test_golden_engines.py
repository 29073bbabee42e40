"""Every engine returns the rows of every golden table that Java returns: SQL on DuckDB, and Spark."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from support.canonical_rows import rows_of, types_of
from support.case_lists import check_each
from support.golden_tables import GoldenRead, golden_directory, golden_reads
from support.known_differences import find_known_difference, find_missing_feature

import paimon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATEST = [
    read
    for read in golden_reads(golden_directory())
    if read.name == "latest" and find_missing_feature(read) is None and find_known_difference(read) is None
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> paimon.Catalog:
    """A warehouse with a copy of each table, named after its case."""
    catalog = paimon.connect(tmp_path_factory.mktemp("lake"))
    catalog.create_database("golden")
    for read in LATEST:
        shutil.copytree(read.table, Path(catalog.warehouse) / "golden.db" / read.case)
    return catalog


def store_times(rows: pa.Table) -> pa.Table:
    """Return the rows with times in milliseconds, as tables store them; engines have microseconds."""
    kinds = [pa.time32("ms") if pa.types.is_time(field.type) else field.type for field in rows.schema]
    return pa.table([column.cast(kind) for column, kind in zip(rows.columns, kinds, strict=True)], rows.column_names)


def cut_nanoseconds(rows: list[str]) -> list[str]:
    """Return the rows without the digits that Spark does not have."""
    return sorted(re.sub(r"(:\d\d\.\d{6})\d+", r"\1", row) for row in rows)


@pytest.mark.nightly
def test_sql_returns_the_rows_of_java(lake: paimon.Catalog) -> None:
    def check(read: GoldenRead) -> None:
        table = lake.table(f"golden.{read.case}")
        found = lake.sql(f"SELECT * FROM golden.`{read.case}`").to_arrow()
        assert rows_of(store_times(found), types_of(table.table_schema.fields)) == read.rows()

    assert len(LATEST) > 180
    check_each(LATEST, check)


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_returns_the_rows_of_java(spark: SparkSession, lake: paimon.Catalog) -> None:
    import paimon.spark  # loaded where a test uses Spark

    def check(read: GoldenRead) -> None:
        table = lake.table(f"golden.{read.case}")
        found = paimon.spark.read(spark, table).toArrow()
        rows = rows_of(store_times(found), types_of(table.table_schema.fields))
        assert cut_nanoseconds(rows) == cut_nanoseconds(read.rows())

    check_each(LATEST, check)
