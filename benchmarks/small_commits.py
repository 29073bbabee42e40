"""Measure commits of ten rows: CPU time, wall time, and how often a snapshot waits for the disk.

Run it in the root of a repository: `python benchmarks/small_commits.py [--folder DIRECTORY] [--repeat 5]`. The least of
the repeats counts. Each repeat makes a new table in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

_WARM_UP, _COMMITS = 20, 150


def measure_commits(folder: str, has_keys: bool) -> dict[str, float]:
    """Return milliseconds of a commit, and how often the thread waits for a flush in each snapshot."""
    import paimon

    catalog = paimon.connect(folder)
    catalog.create_database("b")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("value", pa.float64())])
    keys, options = (["id"], {"bucket": "1"}) if has_keys else ([], {})
    table = catalog.create_table("b.t", schema, primary_keys=keys, options=options)
    waits, cpu, wall, first_id = count_waits(), list[float](), list[float](), 0
    for commit in range(_WARM_UP + _COMMITS):
        ids = range(10 * commit, 10 * commit + 10)
        columns = [pa.array(ids), [f"name {n}" for n in ids], [n / 2 for n in ids]]
        rows = pa.table(columns, schema=schema)
        if commit == _WARM_UP:
            waits.clear()
            first_id = newest_id(table)
        began, worked = time.perf_counter(), time.process_time()
        table.write(rows)
        cpu.append(1000 * (time.process_time() - worked))
        wall.append(1000 * (time.perf_counter() - began))
    return {
        "cpu": statistics.mean(cpu[_WARM_UP:]),
        "cpu_median": statistics.median(cpu[_WARM_UP:]),
        "wall_median": statistics.median(wall[_WARM_UP:]),
        "waits": len(waits) / (newest_id(table) - first_id),
    }


def newest_id(table: Any) -> int:
    """Return the id of the newest snapshot; a key table has a second snapshot for each compaction."""
    return int(table.snapshots()[-1].id)


def count_waits() -> list[int]:
    """Return a list that grows with each flush of the main thread; other threads flush at the same time."""
    waits: list[int] = []
    flush = os.fsync

    def counted(descriptor: int) -> None:
        if threading.current_thread() is threading.main_thread():
            waits.append(descriptor)
        flush(descriptor)

    os.fsync = counted  # type: ignore[assignment]
    return waits


def main() -> None:
    """Print the least figures of each kind of table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the tables are made (default: the temporary directory)")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--run", choices=["append", "key"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            print(json.dumps(measure_commits(folder, arguments.run == "key")))
        return
    command = [sys.executable, __file__, *(["--folder", str(arguments.folder)] if arguments.folder else [])]
    for kind in ("append", "key"):
        found = [json.loads(subprocess.check_output([*command, "--run", kind])) for _ in range(arguments.repeat)]
        figures = {name: min(f[name] for f in found) for name in found[0]}
        print(f"{kind:7}" + "".join(f"  {name} {value:.1f}" for name, value in figures.items()), flush=True)


if __name__ == "__main__":
    main()
