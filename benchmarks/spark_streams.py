"""Measure a stream of small batches into a table: whether the time of a batch grows with the number of batches.

    python benchmarks/spark_streams.py [--batches 100] [--rows 10000] [--delta PYTHON --jars JAR,JAR]

Each batch is a Parquet file with rows over ten times as many keys, which Spark's file source reads, one file for each
trigger. The sinks are this library (`write_stream` into a primary-key table of four buckets), Spark's own Parquet sink,
which merges nothing and is the limit, and Delta, which has the same rows after a MERGE in `foreachBatch`. PYTHON has
delta-spark; its jars are those of delta-spark_4.2_2.13 and delta-storage. Sinks run one after the other, in their own
sessions. CPU times contain all processes of a session, and depend less on other work of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

SETTINGS = {
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
TIMES = ("first batch", "first tenth", "middle tenth", "last tenth", "last / first")
COLUMNS = "id BIGINT, batch INT, amount DOUBLE, name STRING, city STRING"


def draw_keys(number: int, rows: int) -> Any:
    """Return the keys of a batch, each once."""
    import numpy as np

    return np.random.default_rng(number).permutation(rows * 10)[:rows]


def write_batches(folder: Path, batches: int, rows: int) -> None:
    """Write the rows of each batch as a Parquet file, in the order of the names and of the times of the files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for number in range(batches):
        random = np.random.default_rng(number)
        ids = draw_keys(number, rows)
        drawn = {
            "id": pa.array(ids, pa.int64()),
            "batch": pa.array(np.full(rows, number, np.int32)),
            "amount": pa.array(random.random(rows)),
            "name": pa.array([f"name {i}" for i in ids]),
            "city": pa.array([f"city {i % 100}" for i in ids]),
        }
        path = folder / f"{number:05}.parquet"
        pq.write_table(pa.table(drawn), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def open_session(sink: str, folder: Path, jars: str) -> Any:
    """Return a session for a sink."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.local.dir", str(folder / "spark"))
    delta = {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",  # 50 tasks read the log by default
    }
    for key, value in (SETTINGS | (delta if sink == "delta" else {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def start_paimon(frame: Any, folder: Path) -> Any:
    """Start the stream into a table of this library."""
    import paimon
    import paimon.spark

    catalog = paimon.connect(folder / "lake")
    catalog.create_database("b")
    columns = COLUMNS.replace("id BIGINT", "id BIGINT NOT NULL")
    table = catalog.create_table("b.t", columns, primary_keys=["id"], options={"bucket": 4})
    return paimon.spark.write_stream(frame, table, str(folder / "checkpoint"), trigger={"availableNow": True})


def start_parquet(frame: Any, folder: Path) -> Any:
    """Start the stream into plain files."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(folder / "files"))


def start_delta(frame: Any, folder: Path) -> Any:
    """Start the stream into a Delta table: each batch is merged by its keys."""
    from delta.tables import DeltaTable

    spark, path = frame.sparkSession, str(folder / "table")
    spark.createDataFrame([], COLUMNS).write.format("delta").save(path)

    def merge(batch: Any, number: int) -> None:
        target = DeltaTable.forPath(batch.sparkSession, path).alias("t")
        merged = target.merge(batch.alias("s"), "t.id = s.id").whenMatchedUpdateAll()
        merged.whenNotMatchedInsertAll().execute()

    writer = frame.writeStream.foreachBatch(merge).option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start()


STARTS = {"ours": start_paimon, "parquet": start_parquet, "delta": start_delta}


def count_rows(sink: str, spark: Any, folder: Path) -> int:
    """Return how many rows a sink has in the end."""
    if sink == "ours":
        import paimon

        return paimon.connect(folder / "lake").table("b.t").scan().count()
    if sink == "parquet":
        return int(spark.read.parquet(str(folder / "files")).count())
    return int(spark.read.format("delta").load(str(folder / "table")).count())


def run_stream(spark: Any, sink: str, folder: Path, source: Path) -> dict[str, Any]:
    """Run the stream; return the seconds and the CPU time of each batch, and the number of rows in the end."""
    from spark_worker import count_cpu_seconds

    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(source))
    before = count_cpu_seconds()
    query = STARTS[sink](stream, folder)
    readings = [before]
    while query.isActive:  # the CPU times at the ends of the batches, within the interval
        done = query.lastProgress
        missing = 0 if done is None else done["batchId"] + 2 - len(readings)
        if missing:
            readings += [count_cpu_seconds()] * missing
        time.sleep(0.1)
    query.awaitTermination()
    batches = [p for p in query.recentProgress if p["numInputRows"]]
    seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in batches]
    readings = [*readings, *[count_cpu_seconds()] * len(batches)][: len(batches) + 1]
    found: dict[str, Any] = {"seconds": seconds, "cpu": [after - before for before, after in pairwise(readings)]}
    return {**found, "rows": count_rows(sink, spark, folder)}


def run_sink(sink: str, python: str, source: Path, jars: str) -> dict[str, Any]:
    """Run the stream into one sink in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="streams-", dir=os.environ.get("BENCHMARK_DATA")) as folder:
        command = [python, __file__, "--sink", sink, "--folder", folder, "--source", str(source), "--jars", jars]
        environment = {**os.environ, "PYSPARK_PYTHON": python}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{sink}: {done.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def format_sink(sink: str, figures: dict[str, Any]) -> str:
    """Return one line of the table: the first batch, and medians of three tenths of the others."""
    tenth = max(1, len(figures["seconds"]) // 10)
    cells = []
    for kind in ("seconds", "cpu"):
        start, *others = figures[kind]
        middle = (len(others) - tenth) // 2
        first, last = median(others[:tenth]), median(others[-tenth:])
        cells += [f"{number:.2f}" for number in (start, first, median(others[middle:][:tenth]), last, last / first)]
    return f"| {sink} | {len(figures['seconds'])} | {figures['rows']:,} | {' | '.join(cells)} |"


def main() -> None:
    """Run the streams into all sinks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--rows", type=int, default=10_000, help="rows of each batch")
    parser.add_argument("--delta", metavar="PYTHON", help="a Python with delta-spark")
    parser.add_argument("--jars", default="", help="the jars of Delta, separated by commas")
    parser.add_argument("--only", nargs="+", choices=list(STARTS), default=list(STARTS))
    parser.add_argument("--json", type=Path, help="write all times to this file")
    parser.add_argument("--sink", choices=list(STARTS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sink:
        spark = open_session(given.sink, given.folder, given.jars)
        print(json.dumps(run_stream(spark, given.sink, given.folder, given.source)))
        spark.stop()
        return
    pythons = {"ours": sys.executable, "parquet": sys.executable, "delta": given.delta}
    results: dict[str, Any] = {}
    root = Path(tempfile.mkdtemp(prefix="stream-rows-", dir=os.environ.get("BENCHMARK_DATA")))
    try:
        write_batches(root / "rows", given.batches, given.rows)
        times = " | ".join(f"{name}, {unit}" for unit in ("s", "CPU s") for name in TIMES)
        print(f"| Sink | batches | rows in the end | {times} |")
        print("|---" * (3 + 2 * len(TIMES)) + "|")
        for sink in given.only:
            if pythons[sink] is not None:
                results[sink] = run_sink(sink, pythons[sink], root / "rows", given.jars)
                print(format_sink(sink, results[sink]), flush=True)
    finally:
        shutil.rmtree(root)
    if given.json:
        given.json.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
