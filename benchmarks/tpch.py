"""Measure the queries of TPC-H: this library embedded, and DuckDB over plain Parquet files and over our data files.

`append` are tables without keys. `compacted` are tables with primary keys, one bucket and one run. `3 runs` and
`10 runs` have runs with overlapping keys, each with every third or tenth row, so DuckDB finds the same rows in the
same files. CPU time is that of the process with all its threads. The smallest of several repetitions counts, and the
sides take turns. Results are checked by their numbers of rows.

Run ``python benchmarks/tpch.py --scale 0.1``. For another benchmark, such as the TPC-DS of DuckDB (`CALL dsdgen`), name
its Parquet files, one a table, and its queries: ``--plain FOLDER --queries FILE``.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import paimon
from paimon.domain.types.sql_tokens import split_statements
from paimon.sql.run.run_statements import SqlSession

QUERIES = Path(__file__).parents[1] / "tests" / "sql" / "tpch" / "queries.sql"
KEYS = {
    "region": ["r_regionkey"],
    "nation": ["n_nationkey"],
    "supplier": ["s_suppkey"],
    "customer": ["c_custkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
    # TPC-DS; each other table of it has its first column as key
    "store_sales": ["ss_item_sk", "ss_ticket_number"],
    "store_returns": ["sr_item_sk", "sr_ticket_number"],
    "catalog_sales": ["cs_item_sk", "cs_order_number"],
    "catalog_returns": ["cr_item_sk", "cr_order_number"],
    "web_sales": ["ws_item_sk", "ws_order_number"],
    "web_returns": ["wr_item_sk", "wr_order_number"],
    "inventory": ["inv_date_sk", "inv_item_sk", "inv_warehouse_sk"],
}
RUNS = {"append": 1, "compacted": 1, "3 runs": 3, "10 runs": 10}
THREADS = 2


def generate(folder: Path, scale: str) -> None:
    """Write the plain Parquet files."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([tool, "parquet", "-s", scale, f"--output-dir={folder}"], check=True, capture_output=True)


def write_tables(catalog: paimon.Catalog, plain: dict[str, Path], layout: str) -> None:
    """Write all tables in a layout, as a database of its name."""
    catalog.create_database(layout)
    for name, path in plain.items():
        stored = pq.read_table(path)
        views = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in stored.schema]
        rows = stored.cast(pa.schema(views))  # Arrow selects no rows of string views
        options = {"bucket": 1, "write-only": RUNS[layout] > 1} if layout != "append" else {}
        keys = [key for key in KEYS.get(name, ()) if key in rows.column_names] or rows.column_names[:1]
        table = catalog.create_table(
            f"{layout}.{name}", rows.schema, primary_keys=keys if layout != "append" else (), options=options
        )
        for run in range(RUNS[layout]):
            positions = pa.array(range(run, rows.num_rows, RUNS[layout]), pa.int64())
            if len(positions):
                table.write(rows if RUNS[layout] == 1 else rows.take(positions))
        if layout == "compacted":
            table.compact(full=True)


Side = Callable[[str], pa.Table]
"""Run a query."""


def measure(sides: Sequence[Side], queries: Sequence[str], repeat: int) -> list[list[float]]:
    """Return the CPU seconds of each query, for each side. All sides must find the same number of rows."""
    figures: list[list[float]] = [[] for _ in sides]
    for query in queries:
        best, rows = [math.inf] * len(sides), set()
        for _ in range(repeat):
            for number, run in enumerate(sides):
                before = time.process_time()
                rows.add(run(query).num_rows)
                best[number] = min(best[number], time.process_time() - before)
        assert len(rows) == 1, query
        for found, seconds in zip(figures, best, strict=True):
            found.append(seconds)
    return figures


def open_duckdb(files: dict[str, list[str]]) -> Side:
    """Return a function that runs queries in DuckDB over Parquet files."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    for name, paths in files.items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({paths!r})")
    return lambda query: connection.sql(query).to_arrow_table()


def open_ours(catalog: paimon.Catalog, layout: str) -> Side:
    """Return a function that runs queries in this library."""
    session: SqlSession = catalog.sql_session()
    session.sql(f'USE "{layout}"')
    return lambda query: session.sql(query).to_arrow()


def list_data_files(catalog: paimon.Catalog, layout: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the live data files of each table."""
    plans = {name: catalog.table(f"{layout}.{name}").scan().plan() for name in names}
    return {name: [path for split in plan.splits for path in split.file_paths] for name, plan in plans.items()}


def describe(ours: Sequence[float], plain: Sequence[float], same: Sequence[float]) -> str:
    """Return the sums, the ratios of the sums, and the mean and worst of the ratios of queries as cells of a table."""
    ratios = [mine / least for mine, least in zip(ours, plain, strict=True)]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    worst = max(ratios)
    cells = [f"{seconds:.2f}" for seconds in (sum(ours), sum(plain), sum(ours) / sum(plain), mean)]
    return " | ".join([*cells, f"{worst:.2f} (query {ratios.index(worst) + 1})", f"{sum(same):.2f}"])


def main() -> None:
    """Write the tables, measure all layouts, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", default="0.1", help="the scale factor of TPC-H")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions; the smallest CPU time of a query counts")
    parser.add_argument("--layouts", nargs="*", choices=tuple(RUNS), default=list(RUNS), help="by default all")
    parser.add_argument("--plain", type=Path, help="a folder with one Parquet file for each table, instead of TPC-H")
    parser.add_argument("--queries", type=Path, default=QUERIES, help="a file of queries, by default those of TPC-H")
    parser.add_argument("--folder", type=Path, help="where the tables are kept for another run; by default nowhere")
    given = parser.parse_args()
    queries = [reader.text for reader in split_statements(given.queries.read_text("utf8"))]
    with tempfile.TemporaryDirectory(prefix="tpch-") as temporary:
        home = given.folder or Path(temporary)
        if given.plain is None and not (home / "plain").exists():
            generate(home / "plain", given.scale)
        plain = {path.stem: path for path in sorted((given.plain or home / "plain").glob("*.parquet"))}
        catalog = paimon.connect(home / "lake", threads=THREADS)
        limit = open_duckdb({name: [str(path)] for name, path in plain.items()})
        print("| Tables | Ours, CPU s | DuckDB, plain files | Ratio of sums | Mean | Worst | DuckDB, our files |")
        print("|---|---|---|---|---|---|---|")
        for layout in given.layouts:
            if not (home / "lake" / f"{layout}.db").exists():
                write_tables(catalog, plain, layout)
            sides = [open_ours(catalog, layout), limit, open_duckdb(list_data_files(catalog, layout, plain))]
            print(f"| {layout} | {describe(*measure(sides, queries, given.repeat))} |", flush=True)


if __name__ == "__main__":
    main()
