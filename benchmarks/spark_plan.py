"""Report the plan of a table of 20,000 files on Spark: its time, its memory, and the sizes of its tasks.

    python benchmarks/spark_plan.py [--commits 200]
    python benchmarks/spark_plan.py --queries 40

The table is that of `make_files.py`: append-only, one row for each file. Each line is a session of its own, in which a
frame is created, and Spark plans its partitions. Memory is the peak of resident memory of the driver's process of
Python, and of the JVM. The sizes are those of the tasks that this library sends.

With `--queries`, the program compares the cost of a small query of an attached catalog with that of
`paimon.spark.read`. The append table has 500,000 rows, and the ways take turns. Messages are those that Python sends to
Java, without those that release objects.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median
from typing import Any
from unittest.mock import patch

import make_files

READERS = {"spark": "Spark's reader and tasks", "python": "tasks only"}
LINES: list[tuple[str, dict[str, str]]] = [
    ("python", {}),
    ("python", {"source.split.target-size": "1 gb"}),
    ("python", {"source.split.target-size": "16 mb"}),
    ("spark", {}),
]
"""Who reads files without a merge, and the options of the table."""
MIB = 2**10
ROWS = 500_000
WARM_UP = 15
"""Rounds before those that count: Java compiles its code in the first ones."""


def find_processes() -> dict[int, str]:
    """Return the processes that this one started, directly or not, by id, with their names."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                head, _, tail = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            parents[int(entry.name)] = int(tail.split()[1])
            names[int(entry.name)] = head.partition("(")[2]
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return {pid: names[pid] for pid in own - {os.getpid()}}


def read_peak(pid: int) -> float:
    """Return the peak of resident memory of a process in MiB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / MIB


@contextmanager
def record_task_bytes() -> Iterator[list[int]]:
    """Yield a list that gets the size of each task that is encoded in the block."""
    from paimon.adapters.executors import spark as executor

    sizes: list[int] = []
    encode = executor.encode_task

    def encode_and_count(task: object) -> bytes:
        data = encode(task)
        sizes.append(len(data))
        return data

    with patch.object(executor, "encode_task", encode_and_count):
        yield sizes


def open_session(reader: str) -> Any:
    """Return a session in which a reader reads files without a merge."""
    import paimon.spark

    settings = {"spark.paimon.parquet-reader": reader, "spark.driver.memory": "2g"}
    spark = paimon.spark.session("local[2]", "plan", settings)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def plan_table(spark: Any, location: str, options: dict[str, str]) -> dict[str, Any]:
    """Create a frame, and let Spark plan it."""
    from spark_worker import count_cpu_seconds

    import paimon
    import paimon.spark

    table = paimon.open_table(location)
    before = read_peak(os.getpid())
    start, cpu = time.perf_counter(), count_cpu_seconds()
    with record_task_bytes() as sizes:
        frame = paimon.spark.read(spark, table, options=options)
    created, created_cpu = time.perf_counter(), count_cpu_seconds()
    tasks = frame.rdd.getNumPartitions()
    planned, planned_cpu = time.perf_counter(), count_cpu_seconds()
    peaks = [(name, read_peak(pid)) for pid, name in find_processes().items()]
    return {
        "create": created - start,
        "plan": planned - created,
        "create_cpu": created_cpu - cpu,
        "plan_cpu": planned_cpu - created_cpu,
        "tasks": tasks,
        "largest": max(sizes, default=0),
        "bytes": sum(sizes),
        "driver": read_peak(os.getpid()),
        "before": before,
        "jvm": max((peak for name, peak in peaks if name == "java"), default=0.0),
    }


def compare_names(folder: str, rounds: int) -> None:
    """Run a small query by a name of an attached catalog and by `paimon.spark.read`, and print a line for each way."""
    import numpy as np
    import pyarrow as pa
    from py4j.java_gateway import GatewayClient
    from spark_worker import count_cpu_seconds

    import paimon
    import paimon.spark

    lake = paimon.connect(folder)
    lake.create_database("db")
    table = lake.create_table("db.t", "id BIGINT, part INT, name STRING, amount DOUBLE")
    ids = np.arange(ROWS)
    names = pa.array(ids % 1000).cast(pa.string())
    table.write(pa.table({"id": ids, "part": (ids % 100).astype("i4"), "name": names, "amount": ids / 7}))
    spark = open_session("spark")
    paimon.spark.attach(spark, lake, "lake")
    where, columns = "id < 50000 AND part = 7", ["id", "amount"]
    ways = {
        "spark.table": lambda: spark.table("lake.db.t").where(where).select(*columns).collect(),
        "spark.sql": lambda: spark.sql(f"SELECT id, amount FROM lake.db.t WHERE {where}").collect(),
        "paimon.spark.read": lambda: paimon.spark.read(spark, table, columns=columns, where=where).collect(),
        "spark.table, count": lambda: spark.table("lake.db.t").count(),
        "paimon.spark.read, count": lambda: paimon.spark.read(spark, table).count(),
    }
    sent = []
    send = GatewayClient.send_command
    GatewayClient.send_command = lambda client, text, *more, **named: (
        sent.append(text[0]) or send(client, text, *more, **named)
    )
    found: dict[str, list[tuple[float, float, int]]] = {way: [] for way in ways}
    for _ in range(WARM_UP + rounds):
        for way, run in ways.items():
            sent.clear()
            start, cpu = time.perf_counter(), count_cpu_seconds()
            run()
            seconds, spent = time.perf_counter() - start, count_cpu_seconds() - cpu
            found[way].append((seconds, spent, len(sent) - sent.count("m")))
    print("| Query | least, s | median, s | CPU s | messages |\n|---|---|---|---|---|")
    for way, runs in found.items():
        seconds, spent, messages = zip(*runs[WARM_UP:], strict=True)
        print(f"| {way} | {min(seconds):.3f} | {median(seconds):.3f} | {fmean(spent):.3f} | {median(messages):.0f} |")
    spark.stop()


def run_line(location: Path, reader: str, options: dict[str, str]) -> dict[str, Any]:
    """Measure one line in a process of its own."""
    command = [sys.executable, __file__, "--location", str(location), "--reader", reader, "--options"]
    done = subprocess.run([*command, json.dumps(options)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Create the table, and measure each line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=make_files.COMMITS, help="commits of 100 files")
    parser.add_argument("--lines", type=int, default=len(LINES), help="measure the first lines only")
    parser.add_argument("--queries", type=int, help="rounds of small queries, instead of the plans of many files")
    parser.add_argument("--location", help=argparse.SUPPRESS)
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    parser.add_argument("--options", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.location:
        spark = open_session(given.reader)
        print(json.dumps(plan_table(spark, given.location, json.loads(given.options))))
        spark.stop()
        return
    with tempfile.TemporaryDirectory(prefix="plan-", dir=os.environ.get("BENCHMARK_DATA")) as folder:
        if given.queries:
            compare_names(folder, given.queries)
            return
        make_files.main(folder, given.commits)
        print(
            "| Read by | options | frame, s (CPU s) | plan, s (CPU s) | tasks | largest task, bytes | all tasks, bytes "
            "| driver, MiB | JVM, MiB |"
        )
        print("|---" * 9 + "|", flush=True)
        for reader, options in LINES[: given.lines]:
            found = run_line(Path(folder) / "b.db" / "t", reader, options)
            cells = [
                READERS[reader],
                ", ".join(f"{name} = {value}" for name, value in options.items()) or "–",
                f"{found['create']:.2f} ({found['create_cpu']:.2f})",
                f"{found['plan']:.2f} ({found['plan_cpu']:.2f})",
                *(f"{found[name]:,}" for name in ("tasks", "largest", "bytes")),
                f"{found['before']:.0f} to {found['driver']:.0f}",
                f"{found['jvm']:.0f}",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
