"""Measure a sorted compaction: what it costs, and which share of the files a range on two columns reads afterwards.

The table has no primary key and about 100 files; both columns are random, so statistics exclude no file before. CPU
time is that of the process with all its threads.

Run ``python benchmarks/sorted_compaction.py --rows 10000000``.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np
import pyarrow as pa

import paimon

FILES = 100
RANGES = {"both columns": "x >= {0} AND x < {1} AND y >= {0} AND y < {1}", "x": "x >= {0} AND x < {1}",
          "y": "y >= {0} AND y < {1}"}  # fmt: skip


def make_rows(rows: int, number: int) -> pa.Table:
    """Return rows with two random columns below a million, and four others."""
    random = np.random.default_rng(number)
    columns = {name: random.integers(0, 1_000_000, rows, dtype=np.int32) for name in "xy"}
    return pa.table(columns | {f"c{i}": random.integers(0, 1 << 40, rows) for i in range(4)})


def main() -> None:
    """Print one line for each strategy and range."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory", default="512 mb", help="the memory budget of the catalog")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        catalog = paimon.connect(folder, **{"memory-budget": arguments.memory})
        catalog.create_database("bench")
        piece = arguments.rows // FILES
        size = max(1, 36 * piece)  # the six columns of a file do not compress
        table = catalog.create_table(
            "bench.t", make_rows(1, 0).schema, options={"write-only": "true", "target-file-size": f"{size} b"}
        )
        for number in range(FILES):
            table.write(make_rows(piece, number))
        measure_ranges(table, "unsorted")
        for strategy in ("order", "zorder", "hilbert"):
            start, wall = time.process_time(), time.perf_counter()
            table.compact(order_strategy=strategy, order_by=["x", "y"])
            seconds, wall = time.process_time() - start, time.perf_counter() - wall
            print(f"{strategy}: {seconds:.1f} CPU seconds, {wall:.1f} seconds, {arguments.rows / seconds:,.0f} rows/s")
            measure_ranges(table, strategy)


def measure_ranges(table: paimon.Table, name: str) -> None:
    """Print the share of files that each range of a tenth reads; the mean of nine places."""
    total = count_files(table, None)
    for columns, condition in RANGES.items():
        bounds = [(start * 100_000 + 50_000, start * 100_000 + 150_000) for start in range(9)]
        read = sum(count_files(table, condition.format(*bound)) for bound in bounds) / len(bounds)
        print(f"  {name}: a tenth of {columns} reads {read:.1f} of {total} files, {100 * read / total:.1f} %")


def count_files(table: paimon.Table, where: str | None) -> int:
    """Return how many files a scan reads."""
    return sum(len(split.files) for split in table.scan(where=where).plan().splits)


if __name__ == "__main__":
    main()
