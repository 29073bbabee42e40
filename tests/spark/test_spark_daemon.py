"""The process from which local sessions fork their Python processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

_FORK = """
import os, sys
from paimon import spark_daemon
spark_daemon.load_ahead()
print("paimon.spark.tasks.routing" in sys.modules, "pyarrow" in sys.modules)
if os.path.isdir("/proc/self/task"):
    assert len(os.listdir("/proc/self/task")) == 1 or "pyarrow" not in sys.modules
if os.fork() == 0:
    import pyarrow as pa, pyarrow.parquet as pq
    table = pa.table({"a": list(range(100_000))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    os._exit(0 if pq.read_table(pa.BufferReader(sink.getvalue())).equals(table) else 3)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def run_fork(**variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "JE_ARROW_MALLOC_CONF"}
    command = [sys.executable, "-c", _FORK]
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="threads are listed in /proc")
def test_libraries_are_loaded_before_the_fork_unless_they_start_threads() -> None:
    assert run_fork(OMP_NUM_THREADS="1") == "True True"
    assert run_fork(OMP_NUM_THREADS="2") == "False False"
    assert run_fork(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="4") == "False False"
    assert run_fork(OMP_NUM_THREADS="1", JE_ARROW_MALLOC_CONF="narenas:1") == "False False"
    assert run_fork(OMP_NUM_THREADS="1", PAIMON_PROCESS_EFFECTS="off") == "False False"


def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield from where the process of a task loaded PySpark, and which module its daemon ran."""
    import pyspark

    list(batches)
    started = sys.modules["__main__"].__spec__
    yield pa.record_batch({"path": [pyspark.__file__], "daemon": [started.name if started else ""]})


@pytest.mark.spark
def test_tasks_of_a_local_session_run_in_forks_of_the_daemon(spark: SparkSession) -> None:
    (row,) = spark.range(1).coalesce(1).mapInArrow(describe, "path STRING, daemon STRING").collect()
    assert row["daemon"] == "paimon.spark_daemon"
    assert Path(row["path"]).exists()  # a folder, not a zip file
