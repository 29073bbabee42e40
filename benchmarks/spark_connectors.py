"""Compare Spark with this library and Spark with Paimon's connector for Java, step by step in turn.

    python benchmarks/spark_connectors.py --java PYTHON --jar paimon-spark-3.5-0.9.0.jar [--scale 0.3] [--only idioms]

PYTHON has PySpark 3.5, for example ``pip install pyspark==3.5.7 'numpy<2' 'pandas<2.3' setuptools``. Ten commits of
300,000 rows over a million keys go into four buckets, in a local session with two cores. Both connectors run each step
one after the other, so that other work on the machine delays both. Their results must be equal. Python may write
bytecode, as installed packages have it. The idioms are statements and calls of Spark through the catalog of a session;
this library is attached (`paimon.spark.attach`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

WORKER = Path(__file__).resolve().with_name("spark_worker.py")
Figures = dict[str, dict[str, list[tuple[float, float]]]]
"""Wall and CPU seconds of each run by row and connector."""


class Worker:
    """A process with one of the connectors."""

    def __init__(self, kind: str, python: str, folder: Path, master: str, environment: Mapping[str, str]) -> None:
        command = [python, str(WORKER), kind, str(folder), master]
        log = (folder / f"{kind}.log").open("w")
        self._log = folder / f"{kind}.log"
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **environment, "PYSPARK_PYTHON": python, "PYTHONDONTWRITEBYTECODE": ""},
        )
        while (line := self._receive()) != "ready":
            print(f"{kind}: {line}", file=sys.stderr)

    def run(self, step: str) -> dict[str, Any]:
        """Run a step, and return its times and its result."""
        assert self._process.stdin is not None
        print(step, file=self._process.stdin, flush=True)
        while not (line := self._receive()).startswith("{"):
            pass
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the session."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _receive(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(self._log.read_text()[-3000:])
        return line.strip()


def write_rows(folder: Path) -> None:
    """Write the rows of each commit as a Parquet file, whose times are instants."""
    import data
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number in range(data.RUNS):
        rows = data.draw_rows(number)
        at = rows.schema.get_field_index("moment")
        rows = rows.set_column(at, "moment", rows["moment"].cast(pa.timestamp("us", "UTC")))
        pq.write_table(rows, folder / f"rows-{number}.parquet", row_group_size=75_000)


def list_steps(repeat: int) -> list[tuple[str, str]]:
    """Return the rows of the table with the steps that they measure, in order."""
    reads = [
        ("{} scan, aggregate of all columns", "aggregate"),
        ("{} scan, all columns", "noop"),
        ("{} count(*)", "count"),
    ]
    merged = [(row.format("merge-on-read"), step) for row, step in reads for _ in range(repeat)]
    compacted = [(row.format("compacted"), step) for row, step in reads for _ in range(repeat)]
    return [
        *(("write, ten commits", f"write {number}") for number in range(10)),
        ("point lookup, first", "lookup 4711"),
        *(("point lookup, later", f"lookup {key}") for key in (12, 7000, 9001, 23)[: repeat + 1]),
        *merged,
        ("full compaction", "compact"),
        ("compacted point lookup, first", "lookup 4711"),
        *(("compacted point lookup, later", f"lookup {key}") for key in (12, 7000, 9001, 23)[: repeat + 1]),
        *compacted,
    ]


def list_idioms(repeat: int) -> list[tuple[str, str]]:
    """Return the rows of the idioms with their steps, and at the end one that compares the tables."""
    from spark_worker import IDIOMS

    rounds = [(name, number) for number in range(repeat + 1) for name in IDIOMS]
    steps = [(f"{name}, {'later' if number else 'first'}", f"{name} {number}") for name, number in rounds]
    return [*steps, ("scan after the idioms", "aggregate"), ("table, later", "table 0")]


def print_table(figures: Figures) -> None:
    """Print the sum of the writes, and of all others the least wall time and the median of the CPU times."""
    print("| Work | ours, s | Java, s | ours / Java | ours, CPU s | Java, CPU s | CPU, ours / Java |")
    print("|---|---|---|---|---|---|---|")
    for row, both in figures.items():
        is_write = row.startswith("write,")
        wall, java_wall = ((sum if is_write else min)(run[0] for run in both[kind]) for kind in ("ours", "java"))
        cpu, java_cpu = ((sum if is_write else median)(run[1] for run in both[kind]) for kind in ("ours", "java"))
        print(
            f"| {row} | {wall:.2f} | {java_wall:.2f} | {wall / java_wall:.2f} "
            f"| {cpu:.2f} | {java_cpu:.2f} | {cpu / java_cpu:.2f} |"
        )


def main() -> None:
    """Run all steps with both connectors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--java", required=True, metavar="PYTHON", help="a Python with PySpark 3.5")
    parser.add_argument("--jar", required=True, type=Path, help="paimon-spark-3.5-0.9.0.jar")
    parser.add_argument("--scale", default="1", help="factor for the numbers of rows and keys")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each read, of which the fastest counts")
    parser.add_argument("--only", choices=["steps", "idioms"], help="measure a part; the idioms after two commits")
    parser.add_argument("--master", default="local[2]", help="Spark's master")
    given = parser.parse_args()
    os.environ["BENCHMARK_SCALE"] = given.scale
    figures: Figures = {}
    with tempfile.TemporaryDirectory(prefix="spark-", dir=os.environ.get("BENCHMARK_DATA")) as name:
        folder = Path(name)
        write_rows(folder)
        environment = {"PAIMON_JAR": str(given.jar.resolve())}
        pythons = {"ours": sys.executable, "java": given.java}
        workers = {kind: Worker(kind, python, folder, given.master, environment) for kind, python in pythons.items()}
        steps = list_steps(given.repeat)
        steps = [("write, two commits", step) for _, step in steps[:2]] if given.only == "idioms" else steps
        for at, (row, step) in enumerate(steps + ([] if given.only == "steps" else list_idioms(given.repeat))):
            results = []
            for kind in list(workers)[:: 1 if at % 2 else -1]:
                done = workers[kind].run(step)
                figures.setdefault(row, {}).setdefault(kind, []).append((done["seconds"], done["cpu"]))
                results.append(done["result"])
            if results[0] != results[1]:
                raise SystemExit(f"{step}: the results differ: {results}")
            print(step, *(f"{figures[row][kind][-1][0]:.2f}" for kind in pythons), file=sys.stderr, flush=True)
        for worker in workers.values():
            worker.close()
    print_table(figures)


if __name__ == "__main__":
    main()
