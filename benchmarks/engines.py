"""Measure filters of query engines on tables, next to the same engine over plain Parquet files of the same rows.

The append table, and the primary-key tables after a compaction and with three open runs, have the rows of the plain
files, which are sorted by id. CPU time is that of the process with all its threads; the least of the repeated runs
counts. The ratio is that of the table to the plain files.

Run ``python benchmarks/engines.py --rows 1000000``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import paimon

PARTS = 4


def make_rows(rows: int, part: int) -> pa.Table:
    """Return the rows of one part: ten columns, sorted by id."""
    size, random = rows // PARTS, np.random.default_rng(part)
    columns = {f"c{i}": random.integers(0, 1 << 40, size) for i in range(8)}
    names = np.char.add("name ", random.integers(0, 1 << 20, size).astype(str))
    return pa.table({"id": np.arange(part * size, (part + 1) * size), **columns, "name": names})


def write_tables(home: Path, rows: int) -> dict[str, paimon.Table]:
    """Write the tables, and plain files under ``plain``."""
    catalog = paimon.connect(home / "lake")
    catalog.create_database("bench")
    schema, keys = make_rows(PARTS, 0).schema, ["id"]
    tables = {
        "append": catalog.create_table("bench.append", schema),
        "compacted": catalog.create_table("bench.compacted", schema, primary_keys=keys, options={"bucket": 2}),
        "three runs": catalog.create_table(
            "bench.runs", schema, primary_keys=keys, options={"bucket": 2, "write-only": True}
        ),
    }
    (home / "plain").mkdir()
    parts = [make_rows(rows, part) for part in range(PARTS)]
    for part, piece in enumerate(parts):
        pq.write_table(piece, home / "plain" / f"{part}.parquet", compression="zstd")
        tables["append"].write(piece)
    whole = pa.concat_tables(parts)
    tables["compacted"].write(whole)
    tables["compacted"].compact(full=True)
    for third in range(3):
        tables["three runs"].write(whole.filter(pa.array(np.arange(whole.num_rows) % 3 == third)))
    return tables


def in_duckdb(source: Any, rows: int) -> Mapping[str, Callable[[], Any]]:
    """Return the queries of DuckDB over a dataset or a glob."""
    connection = duckdb.connect()
    name = f"read_parquet('{source}')" if isinstance(source, str) else "source"
    if not isinstance(source, str):
        connection.register("source", source)
    first, last = rows // 2, rows // 2 + rows // 100
    query = {
        "range of ids": f"SELECT sum(c1), max(name) FROM {name} WHERE id >= {first} AND id < {last}",
        "one id": f"SELECT * FROM {name} WHERE id = {rows // 3}",
        "two columns": f"SELECT sum(c1), sum(c2) FROM {name}",
    }
    return {case: lambda sql=sql: connection.sql(sql).fetchall() for case, sql in query.items()}


def in_polars(frame: pl.LazyFrame, rows: int) -> Mapping[str, Callable[[], Any]]:
    """Return the same queries of Polars over a lazy frame."""
    ids = pl.col("id")
    return {
        "range of ids": lambda: (
            frame.filter((ids >= rows // 2) & (ids < rows // 2 + rows // 100))
            .select(pl.col("c1").sum(), pl.col("name").max())
            .collect()
            .rows()
        ),
        "one id": lambda: frame.filter(ids == rows // 3).collect().rows(),
        "two columns": lambda: frame.select(pl.col("c1").sum(), pl.col("c2").sum()).collect().rows(),
    }


def measure(call: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Return the least CPU seconds of some runs, and the rows."""
    best, found = float("inf"), None
    for _ in range(repeat):
        start = time.process_time()
        found = call()
        best = min(best, time.process_time() - start)
    return best, found


def main() -> None:
    """Print a line for each engine, query and table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    rows = arguments.rows - arguments.rows % PARTS
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        tables, plain = write_tables(home, rows), str(home / "plain" / "*.parquet")
        print(f"{'engine':8} {'query':14} {'table':12} {'CPU ms':>8} {'plain ms':>9} {'ratio':>6}")
        for engine, limits in (("DuckDB", in_duckdb(plain, rows)), ("Polars", in_polars(pl.scan_parquet(plain), rows))):
            for case, limit in limits.items():
                least, expected = measure(limit, arguments.repeat)
                for name, table in tables.items():
                    query = in_duckdb(table.to_dataset(), rows) if engine == "DuckDB" else in_polars(table.lazy(), rows)
                    seconds, found = measure(query[case], arguments.repeat)
                    assert found == expected, (engine, case, name)
                    print(
                        f"{engine:8} {case:14} {name:12} {seconds * 1e3:8.1f} {least * 1e3:9.1f} {seconds / least:6.2f}"
                    )


if __name__ == "__main__":
    main()
