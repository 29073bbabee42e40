"""The Kafka block of "Capture changes" against a broker: it and the driver are killed, and each event counts once.

Spark's connector is not served for each version of Spark, so the driver runs the newest PySpark that has one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.document_pages import read_blocks
from support.kafka_broker import KafkaBroker
from support.maven_jars import find_home, resolve_jars

import paimon

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

TESTS = Path(__file__).resolve().parents[1]
POM = TESTS / "support" / "kafka_pom.xml"
PAGE = TESTS.parent / "docs" / "how-to" / "capture-changes.md"
PYSPARK = "pyspark==4.2.0"
CONNECTOR = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
PATIENCE_SECONDS = 300
END = """
import json, sys
if sys.argv[1] == "end":
    query.processAllAvailable()
    progress = json.loads(query.lastProgress.json)
    print(json.dumps(progress["sources"][0]))
    query.stop()
    spark.stop()
else:
    query.awaitTermination()
"""


@pytest.fixture(scope="module")
def jars() -> list[str]:
    try:
        return resolve_jars(POM, find_home(POM))
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        if os.environ.get("REQUIRE_INTEROP") == "1":
            raise
        pytest.skip(f"Kafka cannot be had here: {error}")


@pytest.fixture(scope="module")
def pyspark() -> Path:
    """The directory of the older PySpark, without the packages that it shares with the newer one."""
    installed = find_home(POM) / PYSPARK
    if not installed.exists():
        target = installed.with_name(f"{PYSPARK}.{os.getpid()}")
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), PYSPARK]
        subprocess.run(command, check=True)
        target.rename(installed)
    return installed


@pytest.fixture
def broker(jars: list[str], tmp_path: Path) -> Iterator[KafkaBroker]:
    found = KafkaBroker(jars, tmp_path)
    try:
        found.start()
        yield found
    finally:
        found.kill()


class Driver:
    """A process that runs the block of the page."""

    def __init__(self, broker: KafkaBroker, jars: list[str], pyspark: Path, folder: Path) -> None:
        (block,) = (block for block in read_blocks(PAGE) if block.marker == "a stream from Kafka")
        connector = [jar for jar in jars if Path(jar).name.startswith(CONNECTOR)]
        assert len(connector) == len(CONNECTOR)
        code = block.code
        for text, replacement in {
            "localhost:9092": broker.address,
            "spark.jars.packages": "spark.jars",
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0": ",".join(connector),
        }.items():
            assert text in code
            code = code.replace(text, replacement)
        self._program = folder / "driver.py"
        self._program.write_text(code + END)
        self._folder, self._pyspark = folder, pyspark
        self._process: subprocess.Popen[str] | None = None

    def run(self, end: str = "") -> None:
        """Start the process unless it runs; a driver that waited too long for the broker has ended."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, str(self._program), end],
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": str(self._pyspark), "SPARK_HOME": str(self._pyspark / "pyspark")},
                stdout=subprocess.PIPE if end else subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )

    def finish(self) -> dict[str, object]:
        """Read all events, and return what the query reports about its source."""
        self.kill()
        self.run("end")
        assert self._process is not None
        output, _ = self._process.communicate(timeout=PATIENCE_SECONDS)
        assert self._process.returncode == 0
        return dict(json.loads(output.splitlines()[-1]))

    def kill(self) -> None:
        """Kill the driver, its JVM and its workers."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def test_events_count_once_though_broker_and_driver_are_killed(
    broker: KafkaBroker, jars: list[str], pyspark: Path, tmp_path: Path
) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    columns = "id BIGINT NOT NULL, amount BIGINT"
    customers = catalog.create_table("shop.customers", columns, primary_keys=["id"])
    sums = {"bucket": 2, "merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"}
    orders = catalog.create_table("shop.orders", columns, primary_keys=["id"], options=sums)
    catalog.create_table("shop.dead_letters", paimon.DEAD_LETTER_SCHEMA)
    draw = random.Random(5)
    state: dict[int, int] = {}
    total: dict[int, int] = {}

    def send(count: int) -> None:
        """Send changes of customers, and new orders, whose amounts the table adds."""
        events = []
        for _ in range(count):
            key, amount = draw.randrange(20), draw.randrange(100)
            after = {"id": key, "amount": amount}
            total[key] = total.get(key, 0) + amount
            events.append((f"orders {key}", to_event("orders", None, after)))
            before = {"id": key, "amount": state[key]} if key in state else None
            if before and draw.random() < 0.3:
                del state[key]
                events.append((f"customers {key}", to_event("customers", before, None)))
            else:
                state[key] = amount
                events.append((f"customers {key}", to_event("customers", before, after)))
        broker.send("shop", events)

    driver = Driver(broker, jars, pyspark, tmp_path)
    try:
        for killed in ("driver", "broker", "driver", "both", "broker", "driver"):
            before = count_snapshots(orders)
            send(50)
            wait_for_snapshot(driver, orders, before)
            send(50)
            if killed != "broker":
                driver.kill()
            if killed != "driver":
                broker.kill()
                broker.start()
        progress = driver.finish()
    finally:
        driver.kill()
    assert read(customers) == state
    assert read(orders) == total
    assert catalog.table("shop.dead_letters").scan().count() == 0
    assert sum(progress["endOffset"]["shop"].values()) == 1200  # type: ignore[index]
    assert progress["metrics"]["maxOffsetsBehindLatest"] == "0"  # type: ignore[index]


def to_event(table: str, before: dict[str, int] | None, after: dict[str, int] | None) -> str:
    source = {"connector": "mysql", "db": "shop", "table": table}
    op = "d" if after is None else "c" if before is None else "u"
    return json.dumps({"before": before, "after": after, "source": source, "op": op})


def read(table: paimon.Table) -> dict[int, int]:
    return {row["id"]: row["amount"] for row in table.scan().to_arrow().to_pylist()}


def count_snapshots(table: paimon.Table) -> int:
    snapshot = table.snapshot()
    return 0 if snapshot is None else snapshot.id


def wait_for_snapshot(driver: Driver, table: paimon.Table, before: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while count_snapshots(table) == before:
        assert time.monotonic() < deadline, "the stream makes no progress"
        driver.run()
        time.sleep(0.2)
