"""Kill processes of a stream from table to table: after the last restart, each row is in the target once.

The number of kills of the long cases is `--kills`, and `--kill-seed` draws others. With `--progress DIR` each kill is
recorded there.
"""

# After some of its commits, a part of a running query is killed or lost. What is drawn:
#
#     python              the Python processes of the driver; its JVM goes on for a moment
#     all processes       the driver, its JVM and its workers
#     commit record       the same, and Spark's record of the last batch, which comes again with the same plan
#     executor            a JVM of the cluster
#     expired snapshots   as "commit record", and all snapshots of the stream expire before the next start
#     older checkpoint    an old copy of the checkpoint is restored: the batch must be refused by name
#     second driver       another driver starts on the same checkpoint, and both are killed
#
# The source gets rows for each kill. The target adds the amounts of a key, so a lost row and a doubled row show.

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

import paimon

pytestmark = pytest.mark.spark

DRIVER = """
import sys
from pathlib import Path
import paimon, paimon.spark

lake, checkpoint, way, master, ready = sys.argv[1:]
spark = paimon.spark.session(master, config={"spark.sql.shuffle.partitions": "2"})
paimon.spark.register(spark, lake)
changes = spark.readStream.format("paimon").option("maxFilesPerTrigger", 1).load("db.source")
rows = changes.selectExpr("id % 10 AS id", "2 * amount AS amount")
if way == "function":
    query = paimon.spark.write_stream(rows, "db.sums", checkpoint, trigger={"availableNow": True})
else:
    writer = rows.writeStream.format("paimon").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start("db.sums")
Path(ready).touch()
query.awaitTermination()
spark.stop()
"""
CLUSTER = "local-cluster[2,1,1024]"
LOCAL_KILLS = [
    "python",
    "all processes",
    "commit record",
    "expired snapshots",
    "older checkpoint",
    "second driver",
]
KILLS = {"local[2]": LOCAL_KILLS, CLUSTER: [*LOCAL_KILLS, "executor", "executor", "executor"]}
REFUSED = re.compile(r"Batch \d+ of the stream (is older|has another plan)")
CONCURRENT = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY|Batch \d+ of the stream|CommitConflict")
PATIENCE_SECONDS = 300


class Stream:
    """A query from `db.source` to `db.sums` in processes of its own."""

    def __init__(self, folder: Path, way: str, master: str, draw: random.Random) -> None:
        self.folder, self.way, self.master, self.draw = folder, way, master, draw
        self.checkpoint, self.copy = folder / "checkpoint", folder / "copy"
        catalog = paimon.connect(folder / "lake")
        catalog.create_database("db")
        kept = {"snapshot.time-retained": "30 d", "snapshot.num-retained.max": "100000"}
        split = {"source.split.target-size": "1 b", **kept}
        self.source = catalog.create_table("db.source", "id BIGINT, amount BIGINT", options=split)
        sums = {"merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"}
        self.target = catalog.create_table(
            "db.sums", "id BIGINT NOT NULL, amount BIGINT", primary_keys=["id"], options={"bucket": 2, **sums, **kept}
        )
        self.rows = self.starts = 0
        self.outcomes: Counter[str] = Counter()
        (folder / "driver.py").write_text(DRIVER)
        self.driver: subprocess.Popen[bytes] | None = None

    def add_rows(self, batches: int) -> None:
        for number in range(self.rows, self.rows + batches):
            self.source.write({"id": [number, number + 1], "amount": [1, 1]})
        self.rows += batches

    def start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        arguments = [self.folder / "lake", self.checkpoint, self.way, self.master, self.folder / f"{self.starts}.ready"]
        with (self.folder / f"{self.starts}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, str(self.folder / "driver.py"), *map(str, arguments)],
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
            )

    def read_log(self, number: int) -> str:
        return (self.folder / f"{number}.log").read_text(errors="replace")

    def had_no_time(self, start: int) -> bool:
        """Return whether a driver ended because the machine was too slow for Spark, which waits 10 seconds."""
        is_slow = "Timed out while waiting for the Python worker" in self.read_log(start)
        self.outcomes["too slow"] += is_slow
        return is_slow

    def run_to_end(self) -> int:
        """Run a driver to its end, and return its exit code."""
        while (code := (self.driver or self.start()).wait(timeout=1200)) and self.had_no_time(self.starts):
            self.driver = None
        self.driver = None
        return code

    def find_newest(self) -> int:
        names = [path.name for path in (Path(self.target.location) / "snapshot").glob("snapshot-*")]
        return max((int(n.removeprefix("snapshot-")) for n in names if re.fullmatch(r"snapshot-\d+", n)), default=0)

    def kill_once(self, what: str) -> bool:
        """Kill a part some time after the next commit; return False if the query was at its end before."""
        self.add_rows(4)
        driver = self.driver = self.driver or self.start()
        before = self.find_newest()
        while self.find_newest() == before:
            if driver.poll() is not None:
                self.driver = None
                assert driver.returncode == 0 or self.had_no_time(self.starts), self.read_log(self.starts)[-4000:]
                return False
            time.sleep(0.02)
        time.sleep(self.draw.choice([0, self.draw.uniform(0, 1)]))
        self.kill(driver, what)
        self.outcomes[what] += 1
        return True

    def kill(self, driver: subprocess.Popen[bytes], what: str) -> None:
        if what == "executor":
            for pid in find_executors(driver)[:1]:
                os.kill(pid, signal.SIGKILL)
            return
        self.driver = None
        if what == "python":
            driver.kill()
            driver.wait()
            return
        if what == "second driver":
            self.run_second_driver(driver)
            return
        end(driver)
        if what in ("commit record", "expired snapshots"):
            delete_last_record(self.checkpoint)
        if what == "expired snapshots":
            self.target.write({"id": [0], "amount": [0]})
            self.target.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
        if what == "older checkpoint":
            self.restore_older_checkpoint()

    def restore_older_checkpoint(self) -> None:
        """Run the query with an old copy, which it refuses, and then continue with the newest one."""
        newest = self.folder / "newest"
        shutil.copytree(self.checkpoint, newest)
        if self.copy.exists():
            shutil.rmtree(self.checkpoint)
            self.copy.rename(self.checkpoint)
            self.add_rows(2)
            found = self.find_newest()
            if self.run_to_end():
                assert REFUSED.search(self.read_log(self.starts)), self.read_log(self.starts)[-4000:]
                assert self.find_newest() == found, "a refused batch was committed"
                self.outcomes["refused"] += 1
                shutil.rmtree(self.checkpoint)
                shutil.copytree(newest, self.checkpoint)
        newest.rename(self.copy)

    def run_second_driver(self, first: subprocess.Popen[bytes]) -> None:
        self.add_rows(8)
        second, number = self.start(), self.starts
        deadline, ready = time.monotonic() + PATIENCE_SECONDS, self.folder / f"{number}.ready"
        while second.poll() is None and not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        found = self.find_newest()
        while second.poll() is None and self.find_newest() < found + 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        for driver, log in ((first, number - 1), (second, number)):
            if driver.poll() not in (None, 0):
                assert CONCURRENT.search(self.read_log(log)) or self.had_no_time(log), self.read_log(log)[-4000:]
                self.outcomes["refused"] += 1
            end(driver)

    def finish(self, runs: int) -> None:
        """Run the query to its end, which is there after the first run, and compare the sums."""
        for _ in range(runs):
            assert self.run_to_end() == 0, self.read_log(self.starts)[-4000:]
        wanted: Counter[int] = Counter()
        for number in range(self.rows):
            for key in (number % 10, (number + 1) % 10):
                wanted[key] += 2
        rows = self.target.scan().to_arrow()
        found = Counter(dict(zip(rows["id"].to_pylist(), rows["amount"].to_pylist(), strict=True)))
        self.outcomes["rows lost"] += sum((wanted - found).values()) // 2
        self.outcomes["rows doubled"] += sum((found - wanted).values()) // 2
        assert found == wanted
        commits = [s.commit_identifier for s in self.target.snapshots() if s.commit_user.startswith("spark-")]
        assert commits == sorted(commits)
        written = [s for s in self.target.snapshots() if s.commit_user.startswith("spark-")]
        appended = [s.commit_identifier for s in written if s.commit_kind.value == "APPEND"]
        assert len(set(appended)) == len(appended)


def find_executors(driver: subprocess.Popen[bytes]) -> list[int]:
    """Find the executor processes of a driver by its session and the class that they run."""
    shown = subprocess.run(["ps", "-eo", "pid,sess,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in shown.splitlines()[1:]]
    return [int(pid) for pid, session, text in rows if session == str(driver.pid) and "CoarseGrainedExecutor" in text]


def end(driver: subprocess.Popen[bytes]) -> None:
    """Kill all processes of a driver that still run."""
    try:
        os.killpg(driver.pid, signal.SIGKILL)
    except ProcessLookupError:
        assert driver.poll() is not None
    driver.wait()


def delete_last_record(checkpoint: Path) -> None:
    """Delete Spark's record of the last batch, as if the driver was killed before it was written."""
    for record in sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))[-1:]:
        record.unlink()
        record.with_name(f".{record.name}.crc").unlink(missing_ok=True)


STATES = ["expired snapshots", "older checkpoint", "older checkpoint", "second driver"]


@pytest.mark.parametrize(
    ("way", "master", "kills"),
    [
        ("function", "local[2]", ["commit record", "python"]),
        pytest.param("source", "local[2]", ["all processes"], marks=pytest.mark.nightly),
        pytest.param("function", "local[2]", STATES, marks=pytest.mark.nightly),
        pytest.param("source", "local[2]", STATES, marks=pytest.mark.nightly),
        *(
            pytest.param(way, master, None, marks=pytest.mark.long)
            for way in ("function", "source")
            for master in ("local[2]", CLUSTER)
        ),
    ],
)
def test_a_stream_whose_processes_are_killed_writes_each_row_once(
    tmp_path: Path, progress: Path, request: pytest.FixtureRequest, way: str, master: str, kills: list[str] | None
) -> None:
    seed = request.config.getoption("--kill-seed") if kills is None else ""
    draw = random.Random(f"{way} {master} {kills}{seed}")  # each case has its own sequence
    stream, log = Stream(tmp_path, way, master, draw), progress / f"stream-kills-{way}-{master}.jsonl"
    count = request.config.getoption("--kills") if kills is None else len(kills)
    started, killed = time.time(), 0
    while killed < count:
        what = draw.choice(KILLS[master]) if kills is None else kills[killed]
        if stream.kill_once(what):
            killed += 1
            with log.open("a") as lines:
                lines.write(json.dumps({"kill": killed, "what": what, "seconds": round(time.time() - started)}) + "\n")
    stream.finish(runs=2 if kills is None else 1)
    with log.open("a") as lines:
        found = {"batches": stream.rows, "starts": stream.starts, "seconds": round(time.time() - started)}
        lines.write(json.dumps({**stream.outcomes, **found}) + "\n")
