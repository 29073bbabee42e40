"""A cluster of two workers: speculative tasks, secrets that no log shows, and row changes that no driver could hold."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyspark
import pytest
from support.java_options import SHORT_RUN

import paimon
from paimon.spark.session import prepare_environment

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is an address of this machine on Linux only"),
]
SECRET = "s3cr3t-planted-9"
JAVA_OPTIONS = " ".join(SHORT_RUN)
HOSTS = ("127.0.0.1", "127.0.0.2")
"""Spark runs no speculative task on the host of the first attempt, so each worker has a host of its own."""
PROGRAM = f"""
import json, os, sys, time
from pathlib import Path
import paimon, paimon.spark
master, folder = sys.argv[1], Path(sys.argv[2])
settings = {{
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": "{JAVA_OPTIONS}",
    "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"], "spark.sql.shuffle.partitions": "4",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.locality.wait": "0s", "spark.cores.max": "4",
    "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.quantile": "0.3",
    "spark.speculation.multiplier": "1.1", "spark.driver.maxResultSize": "1m",
    "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": str(folder / "events"),
}}
spark = paimon.spark.session(master, config=settings)
catalog = paimon.connect(f"local://{{folder}}/lake", storage={{"single-writer": True, "secret": "{SECRET}"}})
catalog.create_database("db")
paimon.spark.register(spark, catalog)

def delay(batches):
    from pyspark import TaskContext
    task = TaskContext.get()
    yield from batches
    speculative = folder / f"speculative-{{task.stageId()}}"
    if task.partitionId() == 0 and task.attemptNumber() > 0:
        speculative.touch()
    elif task.partitionId() == 0:
        (folder / f"slow-{{task.stageId()}}").touch()
        deadline = time.monotonic() + 60
        while not speculative.exists() and time.monotonic() < deadline:
            time.sleep(0.1)

rows = spark.range(0, 4000, 1, 4).selectExpr("id", "CAST(id AS INT) AS amount", "'' AS note")
slow = rows.mapInArrow(delay, rows.schema)
ddl, sums = "id BIGINT NOT NULL, amount INT, note STRING", {{"fields.amount.aggregate-function": "sum"}}
function, source = (catalog.create_table(f"db.{{name}}", ddl) for name in ("function", "source"))
keyed = catalog.create_table("db.keyed", ddl, primary_keys=["id"],
                             options={{"bucket": 2, "merge-engine": "aggregation", **sums}})
paimon.spark.write(slow, function)
slow.write.format("paimon").mode("append").save("db.source")
paimon.spark.write(slow, keyed)

columns = ("id", "CAST(id AS INT) AS amount", "sha2(CAST(id AS STRING), 512) AS note")
texts = spark.range(0, 60000, 1, 4).selectExpr(*columns)
plain = catalog.create_table("db.plain", ddl)
upsert = catalog.create_table("db.upsert", ddl, primary_keys=["id"], options={{"bucket": 2}})
changed = {{}}
for table in (plain, upsert):
    paimon.spark.write(texts, table)
    source_rows = texts.selectExpr("id + 30000 AS id", "amount", "note")
    merge = paimon.spark.merge(source_rows, table, on="id").when_matched_update_all().when_not_matched_insert_all()
    merged = merge.execute()
    changed[table.name] = [
        merged.updated, merged.inserted, paimon.spark.update(table, {{"note": "'x' || note"}}, "id >= 0").rows,
        paimon.spark.delete(table, "id % 2 = 0").rows,
    ]
try:
    texts.toArrow()
    changed["collected"] = True
except Exception:
    changed["collected"] = False
(folder / "changed.json").write_text(json.dumps(changed))
spark.stop()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a program that ran on the cluster."""
    prepare_environment()
    made = tmp_path_factory.mktemp("cluster")
    for name in ("events", "logs", "work", "local"):
        (made / name).mkdir()
    places = {"SPARK_WORKER_DIR": f"{made}/work", "SPARK_LOCAL_DIRS": f"{made}/local", "PYTHONPATH": str(Path.cwd())}
    environment = os.environ | places
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        with (made / "logs" / f"{len(processes)}").open("wb") as log:
            processes.append(
                subprocess.Popen([*command, *arguments, "--webui-port", "0"], env=environment, stdout=log, stderr=log,
                                 start_new_session=True)
            )  # fmt: skip

    with socket.create_server((HOSTS[0], 0)) as free:
        port = str(free.getsockname()[1])
    try:
        start("master.Master", "--host", HOSTS[0], "--port", port)
        wait_until(lambda: "New state: ALIVE" in (made / "logs" / "0").read_text())
        for host in HOSTS:
            start("worker.Worker", "--host", host, "--cores", "2", "--memory", "1g", f"spark://{HOSTS[0]}:{port}")
        wait_until(lambda: (made / "logs" / "0").read_text().count("Registering worker") == len(HOSTS))
        (made / "program.py").write_text(textwrap.dedent(PROGRAM))
        done = subprocess.run(
            [sys.executable, made / "program.py", f"spark://{HOSTS[0]}:{port}", made],
            env=environment, capture_output=True, text=True, check=False, timeout=580,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        (made / "logs" / "driver").write_text(done.stdout + done.stderr)
        yield made
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow("starts a cluster of two workers")
@pytest.mark.parametrize("name", ["function", "source", "keyed"])
def test_a_speculative_task_leaves_no_second_row(folder: Path, name: str) -> None:
    slow, speculative = (
        {path.name.partition("-")[2] for path in folder.glob(f"{kind}-*")} for kind in ("slow", "speculative")
    )
    assert slow == speculative and len(slow) == 3
    rows = open_catalog(folder).table(f"db.{name}").scan().to_arrow().sort_by("id")
    assert rows["id"].to_pylist() == rows["amount"].to_pylist() == list(range(4000))


def test_files_of_a_slow_attempt_are_at_most_orphans(folder: Path) -> None:
    catalog = open_catalog(folder)
    for name in ("function", "source", "keyed"):
        table = catalog.table(f"db.{name}")
        files, orphans = (
            catalog.table(f"db.{name}$files"),
            table.maintain.remove_orphans(timedelta(0), allow_young=True),
        )
        live = {path.rpartition("/")[2] for path in files.scan().to_arrow()["file_path"].to_pylist()}
        listed = {path.rpartition("/")[2] for path in orphans["path"].to_pylist()}
        stored = {path.name for path in Path(table.location.removeprefix("local://")).rglob("data-*")}
        assert live <= stored and stored - live <= listed


def test_changed_rows_do_not_come_to_the_driver(folder: Path) -> None:
    changed: dict[str, Any] = json.loads((folder / "changed.json").read_text())
    assert changed == {
        "collected": False, "db.plain": [30000, 30000, 90000, 45000], "db.upsert": [30000, 30000, 90000, 45000],
    }  # fmt: skip


def test_no_log_shows_a_secret(folder: Path) -> None:
    logs = [path for place in ("events", "logs", "work") for path in (folder / place).rglob("*") if path.is_file()]
    assert any(b"SparkListenerTaskEnd" in path.read_bytes() for path in logs)
    assert [path for path in logs if SECRET.encode() in path.read_bytes()] == []


def open_catalog(folder: Path) -> paimon.Catalog:
    return paimon.connect(f"local://{folder}/lake", storage={"single-writer": True})
