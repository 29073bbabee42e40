"""Measure the 22 queries of TPC-H: this library embedded, and DuckDB over the same data files.

The tables have primary keys and one bucket. `compacted` has one run a table; `runs` has ten runs with overlapping keys,
each with every tenth row, so DuckDB finds the same rows in the same files. CPU time is that of the process with all its
threads; the smallest of several repetitions counts. Results are checked by their numbers of rows.

Run ``python benchmarks/tpch.py --scale 0.1``.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
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
}
RUNS = {"compacted": 1, "runs": 10}
THREADS = 2


def generate(folder: Path, scale: str) -> None:
    """Write the plain Parquet files."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([tool, "parquet", "-s", scale, f"--output-dir={folder}"], check=True, capture_output=True)


def write_tables(catalog: paimon.Catalog, plain: Path, layout: str) -> None:
    """Write all tables in a layout, as a database of its name."""
    catalog.create_database(layout)
    for name, keys in KEYS.items():
        stored = pq.read_table(plain / f"{name}.parquet")
        views = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in stored.schema]
        rows = stored.cast(pa.schema(views))  # Arrow selects no rows of string views
        options = {"bucket": 1, "write-only": layout == "runs"}
        table = catalog.create_table(f"{layout}.{name}", rows.schema, primary_keys=keys, options=options)
        for run in range(RUNS[layout]):
            positions = pa.array(range(run, rows.num_rows, RUNS[layout]), pa.int64())
            if len(positions):
                table.write(rows.take(positions))
        if layout == "compacted":
            table.compact(full=True)


def measure(run: Callable[[str], pa.Table], queries: Sequence[str], repeat: int) -> list[tuple[float, int]]:
    """Return the CPU seconds and the number of rows of each query."""
    figures = []
    for query in queries:
        best, rows = math.inf, 0
        for _ in range(repeat):
            before = time.process_time()
            rows = run(query).num_rows
            best = min(best, time.process_time() - before)
        figures.append((best, rows))
    return figures


def open_duckdb(files: dict[str, list[str]]) -> Callable[[str], pa.Table]:
    """Return a function that runs queries in DuckDB over Parquet files."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    for name, paths in files.items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({paths!r})")
    return lambda query: connection.sql(query).to_arrow_table()


def open_ours(catalog: paimon.Catalog, layout: str) -> Callable[[str], pa.Table]:
    """Return a function that runs queries in this library."""
    session: SqlSession = catalog.sql_session()
    session.sql(f"USE {layout}")
    return lambda query: session.sql(query).to_arrow()


def list_data_files(catalog: paimon.Catalog, layout: str) -> dict[str, list[str]]:
    """Return the live data files of each table."""
    plans = {name: catalog.table(f"{layout}.{name}").scan().plan() for name in KEYS}
    return {name: [path for split in plan.splits for path in split.file_paths] for name, plan in plans.items()}


def compare(ours: Sequence[tuple[float, int]], limit: Sequence[tuple[float, int]]) -> str:
    """Return the sums, the ratio of the sums and the geometric mean of the ratios as cells of a table."""
    assert [rows for _, rows in ours] == [rows for _, rows in limit]
    sums = [sum(seconds for seconds, _ in figures) for figures in (ours, limit)]
    ratios = [mine / least for (mine, _), (least, _) in zip(ours, limit, strict=True)]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    worst = max(ratios)
    query = ratios.index(worst) + 1
    return f"{sums[0]:.2f} | {sums[1]:.2f} | {sums[0] / sums[1]:.2f} | {mean:.2f} | {worst:.2f} (query {query})"


def main() -> None:
    """Write the tables, measure all layouts, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="0.1", help="the scale factor of TPC-H")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions; the smallest CPU time of a query counts")
    parser.add_argument("--layouts", nargs="*", choices=tuple(RUNS), default=list(RUNS), help="by default both")
    given = parser.parse_args()
    queries = [reader.text for reader in split_statements(QUERIES.read_text("utf8"))]
    with tempfile.TemporaryDirectory(prefix="tpch-") as folder:
        plain = Path(folder) / "plain"
        generate(plain, given.scale)
        catalog = paimon.connect(Path(folder) / "lake", threads=THREADS)
        print("| Tables | Ours, CPU seconds | DuckDB, same files | Ratio of sums | Geometric mean | Worst |")
        print("|---|---|---|---|---|---|")
        for layout in given.layouts:
            write_tables(catalog, plain, layout)
            ours = measure(open_ours(catalog, layout), queries, given.repeat)
            limit = measure(open_duckdb(list_data_files(catalog, layout)), queries, given.repeat)
            print(f"| {layout} | {compare(ours, limit)} |", flush=True)
        least = measure(open_duckdb({name: [f"{plain / name}.parquet"] for name in KEYS}), queries, given.repeat)
        print(f"\nDuckDB over the plain files of the generator: {sum(seconds for seconds, _ in least):.2f} CPU seconds")


if __name__ == "__main__":
    main()
