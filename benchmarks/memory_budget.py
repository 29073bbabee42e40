"""Measure how much memory each verb takes, over rows of ten times the memory budget: `memory_budget.py --budget 128`.

Each verb runs in a process of its own on a table of its own. The growth is the largest resident size during the verb,
less the size before it. It should stay below the budget plus 100 MiB, of which the ratio is a part. The processes
import the library before pyarrow, so that it can choose Arrow's allocator; with `--pyarrow-first` they do not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import paimon

MIB = 1 << 20
FREE_MIB = 100
ROW_BYTES = 700
BATCH_ROWS = 2_000
SCHEMA = "id BIGINT NOT NULL, a BIGINT, b DOUBLE, s STRING, u STRING"
COLUMNS = ("verb", "budget MiB", "rows MiB", "growth MiB", "growth / (budget + 100 MiB)", "CPU s")
FIRST = "import {module}, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
"""Runs a script in a process that imports a module first."""


def make_batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield rows of about `ROW_BYTES` bytes, whose keys come in no order and some of them twice."""
    random = np.random.default_rng(1)
    schema = pa.schema([("id", pa.int64(), False), ("a", pa.int64()), ("b", pa.float64()), ("s", "str"), ("u", "str")])
    for start in range(0, rows, BATCH_ROWS):
        count = min(BATCH_ROWS, rows - start)
        digits = random.bytes(count * 300).hex()
        texts = [digits[place : place + 600] for place in range(0, len(digits), 600)]
        numbers = pa.array(random.integers(0, 1 << 60, count))
        columns = [random.integers(0, rows, count), numbers, random.random(count), texts, numbers.cast(pa.string())]
        yield pa.record_batch([pa.array(column) for column in columns], schema=schema)


def run_query(table: paimon.Table, sql: str) -> None:
    """Run a query over the table `t`, and read its result."""
    catalog = paimon.connect(Path(table.location).parents[1], memory_budget=table.engine.memory.bytes)
    for _ in catalog.sql(sql).to_batches():
        pass


VERBS: dict[str, Callable[[paimon.Table, int], object]] = {
    "write": lambda table, rows: table.write(
        pa.RecordBatchReader.from_batches(next(make_batches(1)).schema, make_batches(rows))
    ),
    "scan": lambda table, _: sum(batch.num_rows for batch in table.scan().to_batches()),
    "compact": lambda table, _: table.compact(full=True),
    "compact with lookup": lambda table, _: table.compact(full=True),
    "compact with full-compaction": lambda table, _: table.compact(full=True),
    "rescale": lambda table, _: table.rescale(8),
    "update": lambda table, _: table.update({"a": 1}, where="b < 0.5"),
    "delete": lambda table, _: table.delete(where="b < 0.5"),
    "changes": lambda table, _: sum(batch.num_rows for batch in table.changes().to_batches()),
    "check": lambda table, _: table.maintain.check(deep=True),
    "sql group": lambda table, _: run_query(table, "SELECT s, count(*), max(u) FROM b.t GROUP BY s"),
    "sql order": lambda table, _: run_query(table, "SELECT * FROM b.t ORDER BY u"),
}


def measure_growth(work: Callable[[], object]) -> int:
    """Return the largest growth of the resident bytes of this process during the work."""
    before, peak, has_ended = resident_bytes(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not has_ended.wait(0.003):
            peak = max(peak, resident_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        has_ended.set()
        watcher.join()
    return peak - before


def resident_bytes() -> int:
    """Return the resident size of this process, as Linux counts it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_verb(folder: Path, verb: str, budget: int, rows: int) -> None:
    """Run one verb in this process, and print its growth in bytes and its CPU time in seconds."""
    catalog = paimon.connect(folder, memory_budget=f"{budget} mb")
    table = catalog.table("b.t")
    table.scan(columns=["a"], limit=1).to_arrow()
    if verb.startswith("sql"):
        run_query(table, "SELECT 1")
    started = time.process_time()
    growth = measure_growth(lambda: VERBS[verb](table, rows))
    print(growth, time.process_time() - started)


def create_table(folder: Path, verb: str, budget: int, rows: int) -> None:
    """Create the table of a verb with four runs in each of four buckets."""
    catalog = paimon.connect(folder, memory_budget=f"{budget} mb")
    catalog.create_database("b")
    producer = verb.removeprefix("compact with ") if verb.startswith("compact with ") else "none"
    options = {"bucket": "4", "write-only": "true", "target-file-size": "64 mb", "changelog-producer": producer}
    table = catalog.create_table("b.t", SCHEMA, primary_keys=["id"], options=options)
    for _ in range(4):
        VERBS["write"](table, rows // 4)
    table.alter("SET ('write-only' = 'false', 'num-sorted-run.compaction-trigger' = '2')")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verbs", nargs="*", help=f"of {', '.join(VERBS)} (default: all)")
    parser.add_argument("--budget", type=int, default=128, help="memory budget in MiB")
    parser.add_argument("--times", type=float, default=10, help="size of the rows as a multiple of the budget")
    parser.add_argument("--pyarrow-first", action="store_true", help="import pyarrow before the library")
    parser.add_argument("--folder", type=Path, help="directory for the tables (default: a temporary directory)")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    rows = int(given.budget * given.times * MIB / ROW_BYTES)
    if given.run:
        run_verb(given.run, given.verbs[0], given.budget, rows)
        return
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    with TemporaryDirectory(dir=given.folder) as folder:
        for verb in given.verbs or VERBS:
            lake = Path(folder, verb)
            create_table(lake, verb, given.budget, rows)
            program = FIRST.format(module="pyarrow" if given.pyarrow_first else "paimon")
            command = [sys.executable, "-c", program, __file__, verb, f"--run={lake}", f"--budget={given.budget}"]
            growth, seconds = map(float, subprocess.check_output([*command, f"--times={given.times}"]).split())
            ratio = growth / MIB / (given.budget + FREE_MIB)
            sizes = f"{given.budget} | {rows * ROW_BYTES / MIB:,.0f} | {growth / MIB:.0f}"
            print(f"| {verb} | {sizes} | {ratio:.2f} | {seconds:.1f} |", flush=True)
            shutil.rmtree(lake)


if __name__ == "__main__":
    main()
