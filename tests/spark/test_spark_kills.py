"""Kill the driver of a stream from table to table: after the last restart, each row is in the target once."""

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

lake, checkpoint, way = sys.argv[1:]
spark = paimon.spark.session("local[2]", config={"spark.sql.shuffle.partitions": "2"})
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


def start(script: Path, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd=script.parent
    )


def kill_after_progress(driver: subprocess.Popen[bytes], table: paimon.Table, pause: float, whole: bool) -> None:
    """Kill a driver some time after its next commit, with or without its Java process."""
    before = len(table.snapshots())
    while len(table.snapshots()) == before and driver.poll() is None:
        time.sleep(0.02)
    time.sleep(pause)
    if whole:
        os.killpg(driver.pid, signal.SIGKILL)
    else:
        driver.kill()
    driver.wait()


@pytest.mark.parametrize(
    ("way", "kills"),
    [
        ("function", 2),
        ("source", 1),
        pytest.param("function", 100, marks=pytest.mark.long),
        pytest.param("source", 100, marks=pytest.mark.long),
    ],
)
def test_a_stream_whose_driver_is_killed_writes_each_row_once(tmp_path: Path, way: str, kills: int) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    source = catalog.create_table("db.source", "id BIGINT, amount BIGINT", options={"source.split.target-size": "1 b"})
    kept = {"snapshot.time-retained": "30 d"}
    sums = {"merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"}
    keyed = (
        {"primary_keys": ["id"], "options": {"bucket": 2, **sums, **kept}} if way == "function" else {"options": kept}
    )
    target = catalog.create_table("db.sums", "id BIGINT NOT NULL, amount BIGINT", **keyed)  # type: ignore[arg-type]
    batches = 2 * kills + 1
    for number in range(batches):
        source.write({"id": [number, number + 1], "amount": [1, 1]})
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    arguments = (tmp_path / "lake", tmp_path / "checkpoint", way)
    draw = random.Random(kills)
    for number in range(kills):
        kill_after_progress(start(script, *arguments), target, draw.uniform(0, 1), whole=number % 2 == 1)
    last = start(script, *arguments)
    assert last.wait(timeout=600) == 0
    wanted: dict[int, int] = {}
    for number in range(batches):
        for key in (number % 10, (number + 1) % 10):
            wanted[key] = wanted.get(key, 0) + 2
    found = target.scan().to_arrow().group_by("id").aggregate([("amount", "sum")])
    assert dict(zip(found["id"].to_pylist(), found["amount_sum"].to_pylist(), strict=True)) == wanted
    commits = [s.commit_identifier for s in target.snapshots() if s.commit_kind.value == "APPEND"]
    assert commits == list(range(batches))
