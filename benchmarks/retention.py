"""Upkeep of a table with a long history: commits behind many snapshots, their expiry, and the listing of orphan files.

    python benchmarks/retention.py [--snapshots 1000] [--files 100000] [--directory /dev/shm]

Prints one line a figure: wall-clock seconds, and the growth of the resident memory where files are listed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

import paimon

SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
OPTIONS = {"bucket": "1", "snapshot.expire.limit": "1000000", "num-sorted-run.compaction-trigger": "20"}
SAMPLE = 50
"""Commits over which a latency is the median."""


def main() -> None:
    """Make the history, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snapshots", type=int, default=1_000, help="commits of the history")
    parser.add_argument("--files", type=int, default=100_000, help="orphan files")
    parser.add_argument("--directory", help="where the table is made (default: the temporary directory)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as home:
        catalog = paimon.connect(home)
        catalog.create_database("db")
        table = catalog.create_table("db.t", SCHEMA, primary_keys=["k"], options=OPTIONS)
        history(table, given.snapshots)
        expiry(table)
        orphans(table, given.files)


def history(table: paimon.Table, snapshots: int) -> None:
    """Commits of one row; the latency at each power of ten."""
    marks = {10**n for n in range(2, 9)} | {snapshots}
    seconds: list[float] = []
    for number in range(1, snapshots + 1):
        start = time.perf_counter()
        table.write(pa.table({"k": [number % 50], "v": [str(number)]}))
        seconds.append(time.perf_counter() - start)
        if number in marks:
            print(f"commit behind {number} others: {1000 * statistics.median(seconds[-SAMPLE:]):.1f} ms", flush=True)


def expiry(table: paimon.Table) -> None:
    """All snapshots but ten."""
    start = time.perf_counter()
    done = table.maintain.expire_snapshots(retain_min=10, retain_max=10)
    print(f"expiry of {done.snapshots} snapshots with {done.files} files: {time.perf_counter() - start:.2f} s")


def orphans(table: paimon.Table, files: int) -> None:
    """So many stray files listed, and deleted."""
    for number in range(files):
        (Path(table.location) / "bucket-0" / f"data-stray-{number}.parquet").touch()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for dry_run, what in ((True, "found"), (False, "deleted")):
        start = time.perf_counter()
        found = table.maintain.remove_orphans(timedelta(0), dry_run=dry_run, allow_young=True)
        print(f"{found.num_rows} orphan files {what}: {time.perf_counter() - start:.2f} s")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"memory grew by {grown // 1024} MiB")


if __name__ == "__main__":
    main()
