"""Measure reads of a compacted table: this library, and Polars, DuckDB and pyarrow over the same data files.

The tables have the rows of `data.py`: ten commits over a million keys, with ten columns in four buckets. CPU time is
that of the process with all its threads; the least of several runs counts, and the sides take turns.

Run ``BENCHMARK_SCALE=1 python benchmarks/reading.py``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import data
import duckdb
import plain_files
import polars as pl

import paimon
from paimon.sql.run.run_statements import SqlSession

COLUMNS = data.make_schema().names
WORK = {
    "all columns": (COLUMNS, None),
    "two columns": (["quantity", "total"], None),
    "filter, all columns": (COLUMNS, ("quantity", "<", 10)),
    "filter, two columns": (["id", "total"], ("quantity", "<", 10)),
    "one key": (COLUMNS, ("id", "=", data.KEYS // 8)),
}
GROUPS = "SELECT city, sum(total) AS s, count(*) AS n FROM {} GROUP BY city"


def write_tables(catalog: paimon.Catalog) -> tuple[paimon.Table, paimon.Table]:
    """Write ten open runs, and a compacted table of the same rows."""
    catalog.create_database("b")
    options = {"bucket": data.BUCKETS, "write-only": True}
    runs = catalog.create_table("b.runs", data.make_schema(), primary_keys=["id"], options=options)
    for number in range(data.RUNS):
        runs.write(data.draw_rows(number))
    table = catalog.create_table(
        "b.compacted", data.make_schema(), primary_keys=["id"], options={"bucket": data.BUCKETS}
    )
    table.write(runs.scan().to_arrow())
    table.compact(full=True)
    return runs, table


def measure(title: str, sides: Mapping[str, Callable[[], Any]], repeat: int) -> None:
    """Print the least CPU milliseconds of each side, after one run to warm up."""
    for run in sides.values():
        run()
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(repeat):
        for side, run in sides.items():
            before = time.process_time()
            run()
            best[side] = min(best[side], time.process_time() - before)
    print(f"| {title} | {', '.join(f'{side} {seconds * 1e3:.1f}' for side, seconds in best.items())} |", flush=True)


def to_sides(
    session: SqlSession, table: paimon.Table, columns: list[str], where: tuple[str, str, int] | None
) -> dict[str, Callable[[], Any]]:
    """Return a read of a table by each library."""
    files = [path for split in table.scan().plan().splits for path in split.file_paths]
    text = "" if where is None else "{} {} {}".format(*where)
    frame = pl.scan_parquet(files).filter(pl.sql_expr(text)) if text else pl.scan_parquet(files)
    select = f"SELECT {', '.join(columns)} FROM {{}}" + (f" WHERE {text}" if text else "")
    return {
        "scan": lambda: table.scan(columns=columns, where=text or None).to_arrow(),
        "SQL": lambda: session.sql(select.format("b.compacted")).to_arrow(),
        "Polars": lambda: frame.select(columns).collect(),
        "DuckDB": lambda: duckdb.sql(select.format(f"read_parquet({files!r})")).to_arrow_table(),
    }


def main() -> None:
    """Write the tables, and print a line for each kind of read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=9)
    repeat = parser.parse_args().repeat
    duckdb.execute("SET threads = 2")
    with tempfile.TemporaryDirectory() as folder:
        catalog = paimon.connect(folder, threads=2)
        runs, table = write_tables(catalog)
        session = catalog.sql_session()
        print("| Read | CPU milliseconds |\n|---|---|")
        for title, (columns, where) in WORK.items():
            sides = to_sides(session, table, columns, where)
            assert len({len(run()) for run in sides.values()}) == 1, title
            measure(title, sides, repeat)
        files = [path for split in table.scan().plan().splits for path in split.file_paths]
        groups = {
            "SQL": lambda: session.sql(GROUPS.format("b.compacted")).to_arrow(),
            "DuckDB": lambda: duckdb.sql(GROUPS.format(f"read_parquet({files!r})")).to_arrow_table(),
        }
        measure("group by", groups, repeat)
        opened = [Path(path) for split in runs.scan().plan().splits for path in split.file_paths]
        for title, columns in (("ten runs, all columns", COLUMNS), ("ten runs, two columns", ["id", "price"])):
            scan = runs.scan(columns=columns)
            read = partial(plain_files.read_files, opened, columns)
            measure(title, {"scan": scan.to_arrow, "pyarrow, without a merge": read}, repeat)


if __name__ == "__main__":
    main()
