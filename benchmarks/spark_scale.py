"""Write and read large tables on a Spark cluster of two executors; check the sums of the rows and the memory.

    python benchmarks/spark_scale.py [--rows 100000000] [--master 'local-cluster[2,1,4096]'] [SCENARIO …]

Each scenario has a session of its own, with and then without adaptive execution. The program fails if a sum is wrong,
or if the Python process of a task needs more than 2 GiB. The limits of memory are those of the sizes of this program:
a smaller number of rows tests the same, in less time.

| Scenario | Rows |
|---|---|
| merge | three quarters new, then a quarter updates of a third of the keys, in random order |
| append | as many rows without a key |
| key | sums by key; one key has half of the rows |
| bucket | one of eight buckets has half of the bytes; a quarter of the rows are updates |
| partitions | a tenth of the rows, in a table with a key and in one without; 1,000 partitions, a driver of 600 MB |
| s3 | a hundredth of the rows, at least 10,000, as "merge", in a server of S3 (moto) |
"""

# Memory. A thread reads the processes below this one, and keeps the peak of each (`VmHWM`), which a step sets back
# (`clear_refs`). What a process is follows from its command line:
#
#     this process                  the driver's Python, which plans and commits
#       java … SparkSubmit          the driver's JVM
#         java … CoarseGrained…     an executor, whose heap Spark limits
#           python -m …             the daemon, and its forks: a fork runs one task at a time
#         python …                  Spark's planner of data sources
#
# Sums. Key k has the amount k % 1000, and one more after an update. Row i has the key i * PRIME % keys, so a row is at
# a random place, and each key comes once. With `sum`, the amounts of a key are added, so a lost or doubled row shows.

from __future__ import annotations

import argparse
import http.client
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from spark_worker import count_cpu_seconds

MIB = 1 << 20
TASK_LIMIT_MIB = 2048
PRIME = 1_000_003
PARTITIONS = 1000
SLICES = 16
COLUMNS = "id BIGINT NOT NULL, amount BIGINT, price DOUBLE, name STRING"
ROW = ("CAST(id AS DOUBLE) / 7 AS price", "md5(CAST(id AS STRING)) AS name")
TABLE = {"write-only": "true", "snapshot.num-retained.max": "1000"}
ROLES = ("task", "executor", "driver JVM", "driver", "planner")
TITLES = ("scenario", "adaptive", "step", "rows", "s", "CPU s", "tasks", "largest shuffle read", *ROLES)


def list_processes() -> dict[int, tuple[int, str]]:
    """Return the parent and the command line of each process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(entry.name)] = parent, (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def find_roles() -> dict[int, str]:
    """Return the roles of this process and of all below it."""
    processes = list_processes()
    roles = {os.getpid(): "driver"}
    children: dict[int, list[int]] = defaultdict(list)
    for pid, (parent, _) in processes.items():
        children[parent].append(pid)
    waiting = [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for pid in children[parent]:
            command, above = processes[pid][1], roles[parent]
            if "CoarseGrainedExecutor" in command:
                roles[pid] = "executor"
            elif "SparkSubmit" in command:
                roles[pid] = "driver JVM"
            else:
                is_task = above in ("executor", "task") or "daemon" in command
                roles[pid] = "task" if is_task else "planner" if above != "driver" else "other"
            waiting.append(pid)
    return roles


class MemoryWatch:
    """The peaks of resident memory since the last reset, in MiB by role: that of the largest process."""

    def __init__(self) -> None:
        self._peaks: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def reset(self) -> None:
        """Forget all peaks."""
        for pid in find_roles():
            try:
                Path(f"/proc/{pid}/clear_refs").write_text("5")
            except OSError:
                continue
        self._peaks = {}

    def read(self) -> dict[str, float]:
        """Return the peaks."""
        self._sample()
        return dict(self._peaks)

    def close(self) -> None:
        """Stop the thread."""
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        for pid, role in find_roles().items():
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue
            peak = sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
            self._peaks[role] = max(self._peaks.get(role, 0.0), peak)

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            self._sample()


def open_session(scenario: str, master: str, folder: Path) -> Any:
    """Return the session of a scenario."""
    import paimon.spark

    driver = "600m" if scenario == "partitions" else "1g"
    settings = {"spark.driver.memory": driver, "spark.local.dir": str(folder / "spark")}
    spark = paimon.spark.session(master, f"scale of {scenario}", settings)
    spark.sparkContext.setLogLevel("OFF")
    return spark


class Run:
    """A scenario in a session: it measures steps, and prints a line for each."""

    def __init__(self, scenario: str, rows: int, spark: Any, catalog: Any) -> None:
        self.scenario, self.rows, self.spark, self.catalog = scenario, rows, spark, catalog
        self.catalog.create_database("b", exist_ok=True)
        self.watch = MemoryWatch()
        self._jobs = -1
        self._read_tasks()

    def create(self, name: str, columns: str = COLUMNS, **given: Any) -> Any:
        """Create a table with the options of all tables here."""
        options = TABLE | given.pop("options", {})
        return self.catalog.create_table(f"b.{name}", columns, options=options, **given)

    def draw(self, rows: int, keys: int, *columns: str) -> Any:
        """Return a frame of the first rows in random order of so many keys; `columns` are added to `id`."""
        assert keys % PRIME, "another number of rows is needed"
        numbers = self.spark.range(0, rows, 1, SLICES).selectExpr(f"id * {PRIME} % {keys} AS id")
        return numbers.selectExpr("id", *columns, *ROW)

    @contextmanager
    def adaptive(self, is_on: bool) -> Iterator[None]:
        """Switch adaptive execution."""
        self._adaptive = "on" if is_on else "off"
        self.spark.conf.set("spark.sql.adaptive.enabled", str(is_on).lower())
        yield

    def step(self, name: str, rows: int, work: Callable[[], Any]) -> Any:
        """Run a step, and print its line; return its result."""
        self.watch.reset()
        cpu, start = count_cpu_seconds(), time.perf_counter()
        result = work()
        seconds, peaks = time.perf_counter() - start, self.watch.read()
        tasks, largest = self._read_tasks()
        used = count_cpu_seconds() - cpu
        cells = [self.scenario, self._adaptive, name, f"{rows:,}", f"{seconds:.1f}", f"{used:.1f}"]
        cells += [", ".join(map(str, tasks)), f"{largest:.0f}", *(f"{peaks.get(role, 0):.0f}" for role in ROLES)]
        print(f"| {' | '.join(cells)} |", flush=True)
        if peaks.get("task", 0) > TASK_LIMIT_MIB:
            raise SystemExit(f"{self.scenario}, {name}: a task needs {peaks['task']:.0f} MiB")
        return result

    def write(self, table: Any, frame: Any, rows: int) -> None:
        """Write a frame."""
        from paimon import spark

        self.step("write", rows, lambda: spark.write(frame, table))

    def check(self, table: Any, rows: int, count: int, amount: int) -> None:
        """Read all columns of a table by Spark's tasks, with and without adaptive execution, and check the sums."""
        from paimon import spark

        sums = ("count(id)", "sum(amount)", "sum(length(name))")
        for is_on in (True, False):
            with self.adaptive(is_on):
                frame = spark.read(self.spark, table).selectExpr(*sums)
                found = list(self.step("read", rows, frame.first))
            if found != [count, amount, 32 * count]:
                raise SystemExit(f"{self.scenario}: {table.name} has {found}, not {[count, amount, 32 * count]}")

    def _read_tasks(self) -> tuple[list[int], float]:
        """Return the numbers of tasks of new stages, and the most MiB that a task of them read from a shuffle."""
        context = self.spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        store, counts, largest = context.statusStore(), [], 0.0
        for stage_id in self._list_new_stages(store.jobsList(None)):
            stage = store.lastStageAttempt(stage_id)
            if stage.status().toString() != "COMPLETE":
                continue
            counts.append(stage.numTasks())
            tasks = store.taskList(stage_id, stage.attemptId(), stage.numTasks())
            for number in range(tasks.size() if stage.shuffleReadBytes() else 0):
                read = tasks.apply(number).taskMetrics().get().shuffleReadMetrics()
                largest = max(largest, (read.localBytesRead() + read.remoteBytesRead()) / MIB)
        return counts, largest

    def _list_new_stages(self, jobs: Any) -> list[int]:
        """Return the stages of the jobs since the last call."""
        new = [job for job in (jobs.apply(at) for at in range(jobs.size())) if job.jobId() > self._jobs]
        self._jobs = max((job.jobId() for job in new), default=self._jobs)
        return sorted({job.stageIds().apply(at) for job in new for at in range(job.stageIds().size())})


def add_amounts(keys: int) -> int:
    """Return the sum of k % 1000 of the keys below a number."""
    whole, rest = divmod(keys, 1000)
    return whole * 499_500 + rest * (rest - 1) // 2


def run_merge(run: Run) -> None:
    """Write new keys, then updates of a third of them, and read."""
    updates = run.rows // 4
    keys = updates * 3
    table = run.create("merge", primary_keys=["id"], options={"bucket": "8"})
    with run.adaptive(True):
        run.write(table, run.draw(keys, keys, "id % 1000 AS amount"), keys)
    with run.adaptive(False):
        run.write(table, run.draw(updates, keys, "id % 1000 + 1 AS amount"), updates)
    run.check(table, keys + updates, keys, add_amounts(keys) + updates)


def run_append(run: Run) -> None:
    """Write and read rows without a key, half of them with adaptive execution."""
    half = run.rows // 2
    table = run.create("append")
    for is_on in (True, False):
        with run.adaptive(is_on):
            run.write(table, run.draw(half, half, "id % 1000 AS amount"), half)
    run.check(table, 2 * half, 2 * half, 2 * add_amounts(half))


def run_key(run: Run) -> None:
    """Add amounts by key, of which key 0 has every other row."""
    half = run.rows // 2
    sums = {"bucket": "8", "merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"}
    table = run.create("key", primary_keys=["id"], options=sums)
    for is_on in (True, False):
        with run.adaptive(is_on):
            rows = run.draw(half, half, "id % 1000 AS amount")
            run.write(table, rows.selectExpr("IF(id % 2 = 0, 0, id) AS id", "amount", "price", "name"), half)
    run.check(table, 2 * half, half // 2 + 1, 2 * add_amounts(half))


def run_bucket(run: Run) -> None:
    """Write every other row into the bucket of site 0, read, compact, and read."""
    from paimon import spark

    updates = run.rows // 4
    keys = updates * 3
    options = {"bucket": "8", "bucket-key": "site"}
    table = run.create("bucket", f"site BIGINT NOT NULL, {COLUMNS}", primary_keys=["site", "id"], options=options)
    for is_on, rows, more in ((True, keys, 0), (False, updates, 1)):
        with run.adaptive(is_on):
            site, amount = "IF(id % 2 = 0, 0, id) AS site", f"id % 1000 + {more} AS amount"
            run.write(table, run.draw(rows, keys, amount).selectExpr(site, "*"), rows)
    run.check(table, keys + updates, keys, add_amounts(keys) + updates)
    run.step("compact", keys + updates, lambda: spark.compact(table, full=True, spark=run.spark))
    run.check(table, keys, keys, add_amounts(keys) + updates)


def run_partitions(run: Run) -> None:
    """Write and read a table with a key and one without, whose rows are in 1,000 partitions."""
    rows = run.rows // 10
    for name, given in (("keyed", {"primary_keys": ["part", "id"], "options": {"bucket": "1"}}), ("plain", {})):
        table = run.create(name, f"part INT NOT NULL, {COLUMNS}", partition_keys=["part"], **given)
        half = rows // 2
        for is_on in (True, False):
            with run.adaptive(is_on):
                frame = run.draw(half, half, "id % 1000 AS amount")
                part = f"CAST(id % {PARTITIONS} AS INT) AS part"
                run.write(table, frame.selectExpr(part, "*"), half)
        count = half if name == "keyed" else 2 * half
        run.check(table, 2 * half, count, add_amounts(half) * (count // half))


def run_s3(run: Run) -> None:
    """Run `run_merge` with fewer rows, on S3."""
    run.rows = max(10_000, run.rows // 100)
    run_merge(run)


SCENARIOS = {
    "merge": run_merge,
    "append": run_append,
    "key": run_key,
    "bucket": run_bucket,
    "partitions": run_partitions,
    "s3": run_s3,
}


@contextmanager
def serve_s3() -> Iterator[dict[str, Any]]:
    """Start a server of S3 with an empty bucket; yield the storage options, whose secrets are in the environment."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ.update({"AWS_ACCESS_KEY_ID": "AKIDFORTESTS", "AWS_SECRET_ACCESS_KEY": "hush"})
    made = http.client.HTTPConnection(host, port)
    made.request("PUT", "/lake")
    made.getresponse().read()
    try:
        yield {"endpoint": f"http://{host}:{port}", "region": "us-east-1"}
    finally:
        server.stop()


def run_scenario(name: str, rows: int, master: str, folder: Path) -> None:
    """Run one scenario in this process."""
    import paimon

    with serve_s3() if name == "s3" else nullcontext({}) as storage:
        location = "s3://lake/scale" if storage else str(folder / "lake")
        spark = open_session(name, master, folder)
        run = Run(name, rows, spark, paimon.connect(location, storage=storage or None))
        try:
            SCENARIOS[name](run)
        finally:
            run.watch.close()
            spark.stop()


def main() -> None:
    """Run the scenarios, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)} (default: all)")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--master", default="local-cluster[2,1,4096]", help="Spark's master")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run_scenario(given.scenarios[0], given.rows, given.master, Path(given.run))
        return
    print(f"| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}", flush=True)
    for name in given.scenarios or SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="scale-", dir=os.environ.get("BENCHMARK_DATA")) as folder:
            command = [sys.executable, __file__, name, f"--rows={given.rows}", f"--master={given.master}"]
            done = subprocess.run([*command, f"--run={folder}"], check=False, cwd=folder)
        if done.returncode:
            raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
