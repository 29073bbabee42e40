"""Every engine returns the rows of every golden table that Java returns: query engines, SQL, and Spark.

`PAIMON_GOLDEN` names a folder of other golden tables for the nightly runs.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from support.canonical_rows import rows_of, types_of
from support.case_lists import check_each
from support.golden_tables import GoldenRead, golden_directory, golden_reads
from support.known_differences import find_known_difference, find_missing_feature

import paimon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOME = Path(os.environ.get("PAIMON_GOLDEN") or golden_directory())
READS = [
    read
    for read in golden_reads(HOME)
    if read.kind != "changes" and find_missing_feature(read) is None and find_known_difference(read) is None
]
LATEST = [read for read in READS if read.name == "latest"]
BY_DAY = {
    "append_unaware_parquet", "branches", "cl_churn_lookup_dv", "dv_append_compacted", "evo_cast_orc",
    "first_row_lookup", "pk_dedup_avro", "postpone_compacted", "pu_sequence_group", "types_flat_orc",
    "types_pk_parquet",
}  # fmt: skip
"""The cases whose newest rows each engine reads by day."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> paimon.Catalog:
    """A warehouse with a copy of each table, named after its case."""
    return copy_tables(tmp_path_factory.mktemp("lake"), LATEST)


def copy_tables(warehouse: Path, reads: list[GoldenRead]) -> paimon.Catalog:
    catalog = paimon.connect(warehouse)
    catalog.create_database("golden")
    for read in reads:
        shutil.copytree(read.table, Path(catalog.warehouse) / "golden.db" / read.case)
    return catalog


def store_times(rows: pa.Table) -> pa.Table:
    """Return the rows with times in milliseconds, as tables store them; engines have microseconds."""
    kinds = [pa.time32("ms") if pa.types.is_time(field.type) else field.type for field in rows.schema]
    return pa.table([column.cast(kind) for column, kind in zip(rows.columns, kinds, strict=True)], rows.column_names)


def cut_nanoseconds(rows: list[str]) -> list[str]:
    """Return the rows without the digits that Spark does not have."""
    return sorted(re.sub(r"(:\d\d\.\d{6})\d+", r"\1", row) for row in rows)


def open_scan(read: GoldenRead) -> Any:
    """Return the scan of a golden read; its condition is part of it."""
    arguments = dict(read.arguments)
    options = dict(arguments.pop("options", {}))
    options |= {"branch": arguments.pop("branch")} if "branch" in arguments else {}
    system = read.kind.partition(":")[2]
    return paimon.open_table(f"{read.table}${system}" if system else read.table, options).scan(**arguments)


def read_in_duckdb(scan: Any) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", scan.to_dataset())
        return connection.sql("SELECT * FROM rows").to_arrow_table()


def read_fragments(scan: Any) -> pa.Table:
    dataset = scan.to_dataset()
    return pa.concat_tables([dataset.schema.empty_table(), *(part.to_table() for part in dataset.get_fragments())])


ENGINES: Mapping[str, Callable[[Any], pa.Table]] = {
    "duckdb": read_in_duckdb,
    "pyarrow": lambda scan: scan.to_dataset().scanner().to_table(),
    "fragments": read_fragments,
    "polars": lambda scan: pl.scan_pyarrow_dataset(scan.to_dataset()).collect().to_arrow(),
    "lazy frame": lambda scan: paimon.scan_polars(scan).collect().to_arrow(),
}


def check_engine(engine: str, reads: list[GoldenRead]) -> None:
    def check(read: GoldenRead) -> None:
        scan = open_scan(read)
        found, types = ENGINES[engine](scan), {f.name: f.type for f in scan.arrow_schema}
        stored = pa.table({name: found[name].cast(types[name]) for name in found.column_names})
        assert rows_of(stored, types_of(scan.fields)) == read.rows()

    check_each(reads, check)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_return_the_rows_of_java(engine: str) -> None:
    check_engine(engine, [read for read in LATEST if read.case in BY_DAY])


@pytest.mark.nightly
@pytest.mark.slow("1,200 reads")
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_return_the_rows_of_java_of_all_tables(engine: str) -> None:
    assert READS
    check_engine(engine, READS)


def check_attached(catalog: paimon.Catalog, cases: list[GoldenRead]) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        paimon.attach_duckdb(connection, "lake", catalog)

        def check(read: GoldenRead) -> None:
            found = connection.sql(f'SELECT * FROM lake.golden."{read.case}"').to_arrow_table()
            types = types_of(catalog.table(f"golden.{read.case}").table_schema.fields)
            assert rows_of(store_times(found), types) == read.rows()

        check_each(cases, check)


def test_attached_tables_have_the_rows_of_java(tmp_path: Path) -> None:
    some = [read for read in LATEST if read.case in BY_DAY]
    check_attached(copy_tables(tmp_path, some), some)


@pytest.mark.nightly
@pytest.mark.slow("copies all tables")
def test_attached_tables_have_the_rows_of_java_of_all_tables(lake: paimon.Catalog) -> None:
    check_attached(lake, LATEST)


@pytest.mark.nightly
def test_sql_returns_the_rows_of_java(lake: paimon.Catalog) -> None:
    def check(read: GoldenRead) -> None:
        table = lake.table(f"golden.{read.case}")
        found = lake.sql(f"SELECT * FROM golden.`{read.case}`").to_arrow()
        assert rows_of(store_times(found), types_of(table.table_schema.fields)) == read.rows()

    assert LATEST
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
