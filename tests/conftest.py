"""Options of all tests: the Hypothesis profile, `--long` for the tests that take hours, and one Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.example_profiles import load_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

load_profile()

LONG_MODULES = (
    "spark/test_spark_kills.py",
    "operations/read/test_hostile_files.py",
    "sql/test_scripts.py",
    "spark/test_spark_cluster.py",
    "stress/test_concurrent_processes.py",
    "spark/test_spark_source.py",
    "simulation/test_simulation.py",
    "interop/test_rescale_with_java.py",
    "spark/test_spark_streams.py",
    "spark/test_spark_documents.py",
    "benchmarks/test_benchmarks.py",
    "compat/test_peer_tests.py",
    "spark/test_spark_merges.py",
    "hostile/test_large_metadata.py",
    "metamorphic/test_bucket_mode_machine.py",
    "spark/test_spark_sessions.py",
    "spark/test_spark_connect.py",
    "spark/test_spark_progress.py",
)
"""Modules that take longest. They begin first, so that no process waits for the last one at the end of a run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long, which take hours")
    parser.addoption("--progress", type=Path, help="directory in which long tests record their progress")


@pytest.fixture
def progress(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the directory of `--progress`, which outlives the run, or a temporary one."""
    option = request.config.getoption("--progress")
    folder = tmp_path if option is None else Path(option).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark session with the source registered; tasks may be attempted four times."""
    import paimon.spark  # loaded where a test uses Spark

    config = {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    session = paimon.spark.session("local[2,4]", "paimon tests", config)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    ranks = {folder / name: rank for rank, name in enumerate(LONG_MODULES)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
    if config.getoption("--long"):
        return
    long_tests = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long_tests)
    items[:] = [item for item in items if not item.get_closest_marker("long")]
