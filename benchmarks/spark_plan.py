"""Report the plan of a table of 20,000 files on Spark: its time, its memory, and the sizes of its tasks.

    python benchmarks/spark_plan.py [--commits 200]

The table is that of `make_files.py`: append-only, one row for each file. Each line is a session of its own, in which a
frame is created, and Spark plans its partitions. Memory is the peak of resident memory of the driver's process of
Python, of the JVM, and of the process in which Spark runs the planner of the data source.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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


def list_partition_bytes(frame: Any) -> list[int]:
    """Return the sizes of the serialized descriptions of the partitions that tasks of this library read."""
    sizes = []
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    for leaf in (leaves.apply(at) for at in range(leaves.size())):
        if leaf.nodeName().startswith("BatchScan"):
            partitions = leaf.inputPartitions()
            sizes += [len(partitions.apply(at).pickedPartition()) for at in range(partitions.size())]
    return sizes


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
    frame = paimon.spark.read(spark, table, options=options)
    created, created_cpu = time.perf_counter(), count_cpu_seconds()
    tasks = frame.rdd.getNumPartitions()
    planned, planned_cpu = time.perf_counter(), count_cpu_seconds()
    sizes = list_partition_bytes(frame)
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
        "planner": max((peak for name, peak in peaks if name.startswith("python")), default=0.0),
    }


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
        make_files.main(folder, given.commits)
        print(
            "| Read by | options | frame, s (CPU s) | plan, s (CPU s) | tasks | largest task, bytes | all tasks, bytes "
            "| driver, MiB | planner, MiB | JVM, MiB |"
        )
        print("|---" * 10 + "|", flush=True)
        for reader, options in LINES[: given.lines]:
            found = run_line(Path(folder) / "b.db" / "t", reader, options)
            cells = [
                READERS[reader],
                ", ".join(f"{name} = {value}" for name, value in options.items()) or "–",
                f"{found['create']:.2f} ({found['create_cpu']:.2f})",
                f"{found['plan']:.2f} ({found['plan_cpu']:.2f})",
                *(f"{found[name]:,}" for name in ("tasks", "largest", "bytes")),
                f"{found['before']:.0f} to {found['driver']:.0f}",
                *(f"{found[name]:.0f}" for name in ("planner", "jvm")),
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
