"""Kill processes of a stream from table to table: after the last restart, each row is in the target once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import paimon

pytestmark = pytest.mark.spark

DRIVER = """
import sys
import paimon, paimon.spark

lake, checkpoint, way, master = sys.argv[1:]
spark = paimon.spark.session(master, config={"spark.sql.shuffle.partitions": "2"})
paimon.spark.register(spark, lake)
changes = spark.readStream.format("paimon").option("maxFilesPerTrigger", 1).load("db.source")
rows = changes.selectExpr("id % 10 AS id", "2 * amount AS amount")
if way == "function":
    query = paimon.spark.write_stream(rows, "db.sums", checkpoint, trigger={"availableNow": True})
else:
    writer = rows.writeStream.format("paimon").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start("db.sums")
query.awaitTermination()
spark.stop()
"""
CLUSTER = "local-cluster[2,1,1024]"
KILLS = {  # what is killed, or lost, after a commit
    "local[2]": ["python", "all processes", "commit record"],
    CLUSTER: ["python", "all processes", "commit record", "executor", "executor", "executor"],
}


def start(script: object, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=Path(str(script)).parent,
    )


def find_executors(driver: subprocess.Popen[bytes]) -> list[int]:
    """Find the executor processes of a driver by its session and the class that they run."""
    shown = subprocess.run(["ps", "-eo", "pid,sess,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in shown.splitlines()[1:]]
    return [int(pid) for pid, session, text in rows if session == str(driver.pid) and "CoarseGrainedExecutor" in text]


def wait_for_commit(driver: subprocess.Popen[bytes], snapshots: Path) -> None:
    """Wait until a driver commits once more."""
    before = len(list(snapshots.glob("snapshot-*")))
    while len(list(snapshots.glob("snapshot-*"))) == before:
        assert driver.poll() is None, f"The driver ended with {driver.poll()} before all kills"
        time.sleep(0.02)


def end(driver: subprocess.Popen[bytes]) -> None:
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def kill(driver: subprocess.Popen[bytes], what: str, checkpoint: Path) -> None:
    """Kill a part of a running query; for a record, kill all and delete the last record of the checkpoint."""
    if what == "executor":
        for pid in find_executors(driver)[:1]:
            os.kill(pid, signal.SIGKILL)
    elif what == "python":
        driver.kill()
        driver.wait()
    else:
        end(driver)
    if what == "commit record":
        for record in sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))[-1:]:
            record.unlink()
            record.with_name(f".{record.name}.crc").unlink(missing_ok=True)


def run_with_kills(command: tuple[object, ...], snapshots: Path, checkpoint: Path, kills: int) -> None:
    """Run a query until it ends, and kill a drawn part of it some time after some of its commits."""
    *_, way, master = map(str, command)
    draw = random.Random(f"{way} {master} {kills}")  # each case has its own sequence
    driver = start(*command)
    for number in range(kills):
        what = KILLS[master][(number + kills) % 3] if kills < 3 else draw.choice(KILLS[master])
        wait_for_commit(driver, snapshots)
        time.sleep(draw.choice([0, draw.uniform(0, 1 if kills > 2 else 0.3)]))
        kill(driver, what, checkpoint)
        if driver.poll() is not None:
            driver = start(*command)
    assert driver.wait(timeout=1200) == 0


@pytest.mark.parametrize(
    ("way", "master", "kills"),
    [
        ("function", "local[2]", 2),
        pytest.param("source", "local[2]", 1, marks=pytest.mark.nightly),
        *(
            pytest.param(way, master, 50, marks=pytest.mark.long)
            for way in ("function", "source")
            for master in ("local[2]", CLUSTER)
        ),
    ],
)
def test_a_stream_whose_processes_are_killed_writes_each_row_once(
    tmp_path: Path, way: str, master: str, kills: int
) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    source = catalog.create_table("db.source", "id BIGINT, amount BIGINT", options={"source.split.target-size": "1 b"})
    kept = {"snapshot.time-retained": "30 d", "snapshot.num-retained.max": "100000"}
    sums = {"merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"}
    keyed = (
        {"primary_keys": ["id"], "options": {"bucket": 2, **sums, **kept}} if way == "function" else {"options": kept}
    )
    target = catalog.create_table("db.sums", "id BIGINT NOT NULL, amount BIGINT", **keyed)  # type: ignore[arg-type]
    batches = (5 if kills > 2 else 2) * kills + 1
    for number in range(batches):
        source.write({"id": [number, number + 1], "amount": [1, 1]})
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    checkpoint = tmp_path / "checkpoint"
    command = (script, tmp_path / "lake", checkpoint, way, master)
    run_with_kills(command, Path(target.location) / "snapshot", checkpoint, kills)
    wanted: dict[int, int] = {}
    for number in range(batches):
        for key in (number % 10, (number + 1) % 10):
            wanted[key] = wanted.get(key, 0) + 2
    found = target.scan().to_arrow().group_by("id").aggregate([("amount", "sum")])
    assert dict(zip(found["id"].to_pylist(), found["amount_sum"].to_pylist(), strict=True)) == wanted
    commits = [s.commit_identifier for s in target.snapshots() if s.commit_kind.value == "APPEND"]
    assert commits == list(range(batches))
