"""Measure point lookups: one key in many files whose key ranges overlap, with bloom filters.

The primary-key table has one bucket and one file a write, never compacted; each file has ids of the whole range. DuckDB
and Polars read plain Parquet files with the same rows, one for each write, sorted by id. CPU time is that of the
process with all its threads; keys are drawn at random, the same for all. Of each key, the least of three calls counts.

Run ``python benchmarks/point_lookup.py --rows 10000000 --files 100``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve

import paimon
from paimon.adapters.cache import LruCache
from paimon.ports.files import FileIO


def make_rows(rows: int, files: int, number: int) -> pa.Table:
    """Return the rows of one file: ten columns, sorted by id."""
    size, random = rows // files, np.random.default_rng(number)
    ids = np.arange(number, rows, files, dtype=np.int64)[:size]
    columns = {f"c{i}": random.integers(0, 1 << 40, size) for i in range(8)}
    names = np.char.add("name ", random.integers(0, 1 << 30, size).astype(str))
    return pa.table({"id": ids, **columns, "name": names})


def write_files(home: Path, rows: int, files: int, false_positives: str) -> paimon.Table:
    """Write the table, and plain files under ``plain``."""
    catalog = paimon.connect(home / "lake")
    catalog.create_database("bench")
    options = {
        "bucket": "1", "write-only": "true", "file-index.bloom-filter.columns": "id",
        "file-index.bloom-filter.id.items": str(rows // files), "file-index.bloom-filter.id.fpp": false_positives,
    }  # fmt: skip
    table = catalog.create_table("bench.t", make_rows(files, files, 0).schema, primary_keys=["id"], options=options)
    (home / "plain").mkdir()
    for number in range(files):
        piece = make_rows(rows, files, number)
        table.write(piece)
        pq.write_table(piece, home / "plain" / f"{number}.parquet", compression="zstd", row_group_size=32_768)
    return table


class CountedFiles:
    """The files of an engine, whose data and index files count the bytes that are read of them."""

    def __init__(self, files: FileIO) -> None:
        self._files = files
        self.read_bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file through Python, which sees each read."""
        return pa.PythonFile(CountedFile(self, self._files.open(path)), "r")

    def read(self, *arguments: Any) -> bytes:
        """Read a whole metadata file."""
        data = self._files.read(*arguments)
        self.read_bytes += len(data)
        return data


class CountedFile:
    """An open file that adds what is read of it."""

    def __init__(self, files: CountedFiles, source: pa.NativeFile) -> None:
        self._files, self._source = files, source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def read(self, size: int = -1) -> bytes:
        """Read from the current position."""
        data = self._source.read(size)
        self._files.read_bytes += len(data)
        return data


def print_read_bytes(table: paimon.Table, keys: list[int], table_bytes: int) -> None:
    """Print the part of the table that the first lookup of a handle reads, and the others on average."""
    files = CountedFiles(table.engine.files)
    counted = table.with_engine(evolve(table.engine, files=files, cache=LruCache()))
    counted.lookup(keys[:1])
    first = files.read_bytes
    for key in keys[1:]:
        counted.lookup([key])
    each = (files.read_bytes - first) / max(1, len(keys) - 1)
    shares = 100 * first / table_bytes, 100 * each / table_bytes
    print(f"lookup reads {shares[0]:.2f} % of the table's bytes first, then {shares[1]:.3f} %")


def measure(name: str, find: Callable[[int], int], keys: list[int]) -> float:
    """Print what the first call and the others cost; return the median CPU time of the others in milliseconds."""
    start = time.process_time()
    assert find(keys[0]) == 1
    cold, figures = time.process_time() - start, []
    for key in keys:
        calls = []
        for _ in range(3):
            start = time.process_time()
            assert find(key) == 1
            calls.append(1_000 * (time.process_time() - start))
        figures.append(min(calls))
    print(f"{name}: {1_000 * cold:.0f} ms first, then {median(figures):.2f} ms (least {min(figures):.2f})")
    return median(figures)


def main() -> None:
    """Print one line an engine, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--fpp", default="0.01")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        table = write_files(home, arguments.rows, arguments.files, arguments.fpp)
        size = sum(path.stat().st_size for path in (home / "lake").rglob("*") if path.is_file())
        keys = np.random.default_rng(1).integers(0, arguments.rows, arguments.repeat).tolist()
        pattern = f"{home}/plain/*.parquet"
        duck = duckdb.connect()
        engines: dict[str, Callable[[int], int]] = {
            "lookup": lambda key: table.lookup([key]).num_rows,
            "scan": lambda key: table.scan(where=paimon.col("id") == key).to_arrow().num_rows,
            "duckdb": lambda key: len(duck.execute(f"SELECT * FROM '{pattern}' WHERE id = ?", [key]).fetchall()),
            "polars": lambda key: pl.scan_parquet(pattern).filter(pl.col("id") == key).collect().height,
        }
        repeats = {"lookup": len(keys)}
        figures = {name: measure(name, find, keys[: repeats.get(name, 5)]) for name, find in engines.items()}
        for name, figure in list(figures.items())[1:]:
            print(f"lookup / {name}: {figures['lookup'] / figure:.3f}")
        print_read_bytes(table, keys[:10], size)
        many = keys[: min(len(keys), 50)]
        start = time.process_time()
        assert table.lookup(many).num_rows == len(many)
        print(f"{len(many)} keys in one call: {1_000 * (time.process_time() - start) / len(many):.2f} ms a key")


if __name__ == "__main__":
    main()
