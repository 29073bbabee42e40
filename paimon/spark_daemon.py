"""Start the Python processes of a local Spark session from one process that has loaded this library.

Spark starts its daemon once, and the daemon forks a process for each concurrent task. Spark's own daemon loads PySpark
from a zip file, which is compiled each time, and each process loads Arrow and this library again.

Invariant: the daemon has no second thread before it forks. Where a library would start one, nothing is loaded ahead.
Source: `pyspark.daemon`, which loads Arrow after the fork for this reason.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

from paimon.adapters.process_effects import freeze_objects, load_arrow_without_threads

_TASKS = "pyspark.worker"
"""The module of the processes that run tasks. Others plan reads; most of them need little of this library."""
_THREAD_COUNTS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that have precedence over OMP_NUM_THREADS, which Spark sets."""
_LOADED_AHEAD = (
    "pyarrow.parquet", "pyspark.worker", "pyspark.sql.conversion", "paimon.spark.source",
    "paimon.spark.tasks.routing", "paimon.spark.tasks.message_tasks", "paimon.spark.tasks.distribute",
    "paimon.adapters.executors.spark", "paimon.adapters.files.local", "paimon.adapters.formats.parquet",
)  # fmt: skip


def prefer_installed_pyspark() -> None:
    """Load PySpark from its folder instead of the zip file of the same installation, if there is one."""
    home = Path(os.environ.get("SPARK_HOME", ""))
    if home.name == "pyspark" and (home / "daemon.py").exists():
        library = str(home / "python" / "lib")
        sys.path[:] = [entry for entry in sys.path if not (entry.startswith(library) and "pyspark" in Path(entry).name)]
        if str(home.parent) not in sys.path:
            sys.path.append(str(home.parent))


def load_ahead() -> None:
    """Load what a task needs, if no library starts a thread: numpy has one thread where Spark asks it to."""
    if os.environ.get("OMP_NUM_THREADS") != "1" or any(os.environ.get(name, "1") != "1" for name in _THREAD_COUNTS):
        return
    if load_arrow_without_threads():
        for name in _LOADED_AHEAD:
            import_module(name)
        freeze_objects()


def main() -> None:
    """Run Spark's daemon."""
    prefer_installed_pyspark()
    if sys.argv[1:2] == [_TASKS]:
        load_ahead()
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
