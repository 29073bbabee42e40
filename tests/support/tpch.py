"""TPC-H as tests use it: data of the generator, tables of Paimon in two layouts, refreshes, and comparisons."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from attrs import frozen

import paimon
from paimon.domain.types.sql_tokens import split_statements

Run = Callable[..., pa.Table]
"""Run a statement, and return its rows. Keyword arguments are tables that the statement reads."""

QUERIES = [
    reader.text
    for reader in split_statements((Path(__file__).parents[1] / "sql" / "tpch" / "queries.sql").read_text("utf8"))
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
ORDER_TABLES = (("orders", "o_orderkey"), ("lineitem", "l_orderkey"))

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


@frozen
class Layout:
    """How the tables are stored.

    Parameters
    ----------
    keyed : bool
        Each table has its primary key, and rows are written more than once. Otherwise `orders` and `lineitem` have no
        primary key, and each row is written once.
    """

    keyed: bool

    def keys(self, name: str) -> list[str]:
        """Return the primary key of a table, without the partition column."""
        return KEYS[name] if self.keyed or name not in ("orders", "lineitem") else []

    def options(self, name: str) -> dict[str, Any]:
        """Return the options of a table; several runs stay."""
        options: dict[str, Any] = {"num-sorted-run.compaction-trigger": 10} if self.keys(name) else {}
        if self.keys(name):
            options["bucket"] = 1
        if name == "lineitem":
            options["deletion-vectors.enabled"] = True
        if name == "part":
            options["merge-engine"] = "partial-update"
        return options

    def commits(self, name: str, rows: pa.Table) -> list[pa.Table]:
        """Return the rows of each commit."""
        third = rows.num_rows // 3 + 1
        slices = [(0, 2 * third), (third, None), (0, third)] if self.keys(name) else [(0, third), (third, None)]
        return [part for start, length in slices if (part := rows.slice(start, length)).num_rows]


KEYED = Layout(keyed=True)
APPEND = Layout(keyed=False)


def generate(folder: Path, scale: str) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with the tables; at tiny scales the generator repeats keys of partsupp, which are removed."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([tool, "parquet", "-s", scale, f"--output-dir={folder}"], check=True, capture_output=True)
    connection = duckdb.connect()
    for name, keys in KEYS.items():
        rows = f"SELECT DISTINCT ON ({', '.join(keys)}) * FROM read_parquet('{folder / name}.parquet')"
        connection.execute(f"CREATE TABLE {name} AS {rows}")
    return connection


def write_tables(catalog: paimon.Catalog, plain: duckdb.DuckDBPyConnection, run: Run, layout: Layout = KEYED) -> None:
    """Create the tables in the database `tpch`, and fill each by several INSERT statements.

    Parameters
    ----------
    catalog : Catalog
        The warehouse.
    plain : DuckDBPyConnection
        The plain rows.
    run : callable
        The session that inserts; its database becomes `tpch`.
    layout : Layout
        Keys, options and commits. `orders` has partitions in each layout.
    """
    run("CREATE DATABASE tpch; USE tpch")
    for name in KEYS:
        partition_keys = ["o_part"] if name == "orders" else []
        more = ", year(o_orderdate)::INTEGER AS o_part" if name == "orders" else ""
        rows = plain.sql(f"SELECT *{more} FROM {name}").to_arrow_table()
        keys = layout.keys(name)
        catalog.create_table(
            f"tpch.{name}", rows.schema, primary_keys=[*keys, *partition_keys] if keys else [],
            partition_keys=partition_keys, options=layout.options(name),
        )  # fmt: skip
        for part in layout.commits(name, rows):
            run(f"INSERT INTO {name} SELECT * FROM df", df=part)


def refresh(run: Run, plain: duckdb.DuckDBPyConnection) -> Mapping[str, int]:
    """Run the refreshes of TPC-H, an update and a merge on both sides, and compare the tables that changed.

    The generator uses eight of 32 order keys. New orders get keys between them, as in refresh function 1, and another
    price, because query 18 orders by it. Refresh function 2 deletes other orders.

    Returns
    -------
    mapping of str to int
        The report of MERGE.
    """
    for name, key in ORDER_TABLES:
        changes = f"{key} + 8 AS {key}" + (", o_totalprice + 1 AS o_totalprice" if name == "orders" else "")
        chosen = f"SELECT * REPLACE ({changes}) FROM {name} WHERE {key} % 640 BETWEEN 96 AND 127"
        rows = plain.sql(chosen).to_arrow_table()
        year = ", year(o_orderdate)" if name == "orders" else ""
        run(f"INSERT INTO {name} SELECT *{year} FROM df", df=rows)
        plain.register("df", rows)
        plain.execute(f"INSERT INTO {name} SELECT * FROM df")
        plain.unregister("df")
    for statement in (
        "DELETE FROM lineitem WHERE l_orderkey IN (SELECT o_orderkey FROM orders WHERE o_orderkey % 640 > 607)",
        "DELETE FROM orders WHERE o_orderkey % 640 > 607",
        "UPDATE customer SET c_mktsegment = 'BUILDING' WHERE c_custkey < 50",
    ):
        run(statement)
        plain.execute(statement)
    (changed,) = run(MERGE).to_pylist()
    plain.execute(MERGE)
    for name in ("orders", "lineitem", "customer", "partsupp"):
        columns = ", ".join(row[0] for row in plain.sql(f"DESCRIBE {name}").fetchall())
        every_row = f"SELECT {columns} FROM {name} ORDER BY {', '.join(KEYS[name])}"
        found, expected = run(every_row), plain.sql(every_row).to_arrow_table()
        assert found.column_names == expected.column_names, name
        assert found.cast(expected.schema).equals(expected), name
    return changed


def assert_same_rows(found: pa.Table, expected: pa.Table, query: str) -> None:
    """Compare the results of a query; numbers with fractions may differ in their last digits."""
    assert found.column_names == expected.column_names, query
    assert found.num_rows == expected.num_rows, query
    for name in found.column_names:
        for got, wanted in zip(found[name].to_pylist(), expected[name].to_pylist(), strict=True):
            if isinstance(wanted, float | Decimal):
                assert math.isclose(got, wanted, rel_tol=1e-9), (query, name)
            else:
                assert got == wanted, (query, name)


def compare(run: Run, plain: duckdb.DuckDBPyConnection, numbers: Iterable[int] = range(1, 23)) -> int:
    """Compare queries with DuckDB over the plain rows.

    Parameters
    ----------
    run : callable
        The session; its database is `tpch`.
    plain : DuckDBPyConnection
        The plain rows.
    numbers : iterable of int
        The queries, numbered from 1.

    Returns
    -------
    int
        The number of rows that all queries returned.
    """
    rows = 0
    for number in numbers:
        query = QUERIES[number - 1]
        expected = plain.sql(query).to_arrow_table()
        assert_same_rows(run(query), expected, query)
        rows += expected.num_rows
    return rows
