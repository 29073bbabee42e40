"""Measure the memory of one process that commits one row after the other: `writer_memory.py --commits 20000`.

A table of fifty keys with ten snapshots has the same size after any number of writes, and so its writer needs the same
memory. The script prints one line of a Markdown table after every 1,000 commits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import maintenance
import pyarrow as pa

import paimon
from paimon.adapters.cache import LruCache

MIB = 1 << 20
COLUMNS = ("commits", "resident MiB", "cached files", "cached MiB", "Arrow MiB", "ms a commit")


def measure_writer(
    folder: Path, commits: int, interval: int, retained: int = maintenance.RETAINED
) -> Iterator[tuple[float, ...]]:
    """Commit rows to a new table, and measure the process after every `interval` commits.

    Parameters
    ----------
    folder : Path
        Directory of the warehouse.
    commits, interval : int
        Number of commits, and of commits between two measurements.
    retained : int
        Number of snapshots that expiry keeps.

    Yields
    ------
    tuple of float
        The values of `COLUMNS`.
    """
    table = _create_table(folder, retained)
    cache = table.engine.cache
    assert isinstance(cache, LruCache)
    started = time.perf_counter()
    for number in range(1, commits + 1):
        table.write(maintenance.make_row(number))
        if number % interval == 0:
            now = time.perf_counter()
            sizes = (resident_bytes(), cache.size_bytes, pa.total_allocated_bytes())
            resident, cached, arrow = (size / MIB for size in sizes)
            yield number, resident, len(cache.paths()), cached, arrow, 1000 * (now - started) / interval
            started = time.perf_counter()


def _create_table(folder: Path, retained: int) -> paimon.Table:
    catalog = paimon.connect(folder)
    catalog.create_database("b", exist_ok=True)
    limits = {"snapshot.num-retained.min": str(retained), "snapshot.num-retained.max": str(retained)}
    return catalog.create_table("b.t", maintenance.SCHEMA, primary_keys=["k"], options={"bucket": "1", **limits})


def resident_bytes() -> int:
    """Return the memory of this process that is in use, as Linux counts it."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--interval", type=int, default=1_000, help="commits between two measurements")
    parser.add_argument(
        "--retained", type=int, default=maintenance.RETAINED, help="number of snapshots that expiry keeps"
    )
    parser.add_argument("--folder", type=Path, help="directory for the table (default: a temporary directory)")
    given = parser.parse_args(arguments)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    with TemporaryDirectory(dir=given.folder) as folder:
        for commits, resident, files, cached, arrow, millis in measure_writer(
            Path(folder), given.commits, given.interval, given.retained
        ):
            print(f"| {commits:,} | {resident:.1f} | {files} | {cached:.1f} | {arrow:.1f} | {millis:.1f} |", flush=True)


if __name__ == "__main__":
    main()
