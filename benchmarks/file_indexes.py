"""Measure file indexes: what a write pays for them, and what a selective read saves.

The table has no primary key and one file a write; ids are shuffled over all files, so statistics exclude no file. CPU
time is that of the process with all its threads; the smallest of several repetitions counts. The comparison is the same
read with ``file-index.read.enabled = false``.

Run ``python benchmarks/file_indexes.py --rows 10000000 --files 100``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

import paimon

INDEXES: Mapping[str, Mapping[str, str]] = {
    "no index": {},
    "bloom-filter(id)": {"file-index.bloom-filter.columns": "id"},
    "bitmap(kind)": {"file-index.bitmap.columns": "kind"},
    "range-bitmap(price)": {"file-index.range-bitmap.columns": "price"},
}
CONDITIONS = {
    "bloom-filter(id)": "id = {id}", "bitmap(kind)": "kind = 'rare'",
    "range-bitmap(price)": "price > 500 AND price < 500.01",
}  # fmt: skip


def make_rows(rows: int, files: int, number: int) -> pa.Table:
    """Return the rows of one file: ten columns, of which one in 100,000 rows is rare."""
    size, random = rows // files, np.random.default_rng(number)
    ids = np.arange(number, rows, files, dtype=np.int64)[:size]
    kinds = np.where(
        random.random(size) < 1e-5, "rare", np.array(["a", "b", "c", "d", "e"])[random.integers(0, 5, size)]
    )
    columns = {"id": random.permutation(ids), "kind": kinds, "price": random.random(size).round(4) * 1_000}
    return pa.table(columns | {f"c{i}": random.integers(0, 1 << 40, size) for i in range(7)})


def main() -> None:
    """Print one line an index."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    rows, files = arguments.rows, arguments.files
    with tempfile.TemporaryDirectory() as folder:
        catalog = paimon.connect(folder)
        catalog.create_database("bench")
        plain = 0.0
        for name, options in INDEXES.items():
            items = {"file-index.bloom-filter.id.items": str(rows // files)} if "bloom" in name else {}
            table = catalog.create_table(
                f"bench.t{len(name)}",
                make_rows(files, files, 0).schema,
                options={"write-only": "true", **options, **items},
            )
            seconds = 0.0
            for number in range(files):
                piece = make_rows(rows, files, number)
                start = time.process_time()
                table.write(piece)
                seconds += time.process_time() - start
            plain = plain or seconds
            print(f"write with {name}: {seconds:.1f} CPU seconds, {100 * (seconds / plain - 1):+.0f} %")
            if name in CONDITIONS:
                measure_reads(table, CONDITIONS[name].format(id=rows // 3), arguments.repeat)


def measure_reads(table: paimon.Table, where: str, repeat: int) -> None:
    """Print the CPU time of a read with and without indexes."""
    for enabled in ("true", "false"):
        chosen, figures = table.with_options({"file-index.read.enabled": enabled}), []
        for _ in range(repeat):
            start = time.process_time()
            found = chosen.scan(where=where).to_arrow().num_rows
            figures.append(time.process_time() - start)
        print(f"  {where}: indexes {enabled}: {found} rows, {1_000 * min(figures):.1f} ms")


if __name__ == "__main__":
    main()
