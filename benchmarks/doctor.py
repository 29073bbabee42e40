"""Measure `doctor --fix` on a table of many small files: `doctor.py --files 10000 --commits 100`.

The table has two partitions, and each commit adds files of a few rows. The figures are wall and CPU time of an
examination and of the repair, the bytes of the files that the repair wrote, and what remains.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pyarrow as pa

import paimon

T = TypeVar("T")
OPTIONS = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "10"}
RETAINING = {"snapshot.num-retained.min": "1000000", "snapshot.num-retained.max": "1000000", "write-only": "true"}


def make_table(folder: Path, files: int, commits: int, rows: int) -> paimon.Table:
    """Make a table of `files` files with `rows` rows each, in `commits` commits."""
    catalog = paimon.connect(folder)
    catalog.create_database("b")
    columns = "id BIGINT, day STRING, amount DOUBLE, note STRING"
    table = catalog.create_table("b.t", columns, partition_keys=["day"], options=OPTIONS)
    builder = table.with_options(RETAINING)
    for commit in range(commits):
        messages = []
        for number in range(commit * files // commits, (commit + 1) * files // commits):
            ids = range(number * rows, (number + 1) * rows)
            batch = {"id": ids, "day": [f"d{number % 2}"] * rows, "amount": [i / 7 for i in ids],
                     "note": [f"note {i}" for i in ids]}  # fmt: skip
            write = builder.new_batch_write_builder().new_write()
            write.write_arrow(pa.table({name: pa.array(values) for name, values in batch.items()}))
            messages += write.prepare_commit()
            write.close()
        builder.new_batch_write_builder().new_commit().commit(messages)
    return paimon.open_table(table.location)


def measure(name: str, work: Callable[[], T]) -> T:
    """Run the work, and print its wall and CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    print(f"{name}: {time.perf_counter() - wall:.2f} s wall, {time.process_time() - cpu:.2f} s CPU")
    return result


def list_sizes(folder: Path) -> dict[Path, int]:
    """Return the size of each file."""
    return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def main() -> None:
    """Make the table, examine and repair it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        table = make_table(Path(folder), arguments.files, arguments.commits, arguments.rows)
        before, rows = list_sizes(Path(folder)), table.scan().count()
        measure("examination", table.maintain.health)
        health = measure("repair", lambda: table.maintain.health(fix=True))
        after = list_sizes(Path(folder))
        data = sum(size for path, size in before.items() if path.name.startswith("data-"))
        written = sum(size for path, size in after.items() if path not in before)
        print(f"data files: {health.files:,} of {data:,} bytes; written: {written:,} bytes")
        for finding in health.findings:
            print(f"{finding.kind.value}: {finding.cost:,} -> {finding.cost_after:,} {finding.unit}; {finding.outcome}")
        again = measure("second examination", table.maintain.health)
        assert health.is_healthy and not again.findings and table.scan().count() == rows
        print(f"healthy: {again.files:,} data files, {len(after):,} files of {len(before):,} in all")


if __name__ == "__main__":
    main()
