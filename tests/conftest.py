"""Options of all tests: the Hypothesis profile, the levels `--nightly` and `--long`, and one Spark session."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.example_profiles import is_property, load_profile, reduce_examples
from support.java_options import prepare_short_runs
from support.postgres_server import run_postgres
from support.recorded_durations import DurationRecorder, read_module_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from support.shared_servers import GroupScheduling
    from xdist.remote import Producer

    import paimon

load_profile()
prepare_short_runs()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long, which take hours")
    parser.addoption("--nightly", action="store_true", help="run the cases marked nightly, and properties in full")
    parser.addoption("--kills", type=int, default=50, help="kills in each long case of tests/spark/test_spark_kills.py")
    parser.addoption("--kill-seed", default="", help="draw other kills in the long cases of test_spark_kills.py")
    parser.addoption("--record-durations", action="store_true", help="write the CPU seconds to tests/durations.json")
    parser.addoption("--progress", type=Path, help="directory in which long tests record their progress")


@pytest.fixture
def progress(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the directory of `--progress`, which outlives the run, or a temporary one."""
    option = request.config.getoption("--progress")
    folder = tmp_path if option is None else Path(option).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    """A catalog with the database `d`; modules that need another one define their own."""
    import paimon  # loaded where a test uses it

    made = paimon.connect(tmp_path)
    made.create_database("d")
    return made


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with run_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark session with the source registered; tasks may be attempted four times."""
    import paimon.spark  # loaded where a test uses Spark

    config = {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    session = paimon.spark.session("local[2,4]", "paimon tests", config)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-durations"):
        config.pluginmanager.register(DurationRecorder())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling | None:
    """Return the order of a parallel run: with `--dist loadfile`, modules that share a server stay together."""
    from support.shared_servers import GroupScheduling  # loaded where tests run in parallel

    return GroupScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exempt what collection creates from the collector: a million objects, which each later collection would visit."""
    gc.disable()
    result = yield
    gc.enable()
    gc.freeze()
    return result


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seconds = read_module_seconds()
    items.sort(key=lambda item: -seconds.get(item.nodeid.partition("::")[0], 0.0))  # stable: a module stays together
    selected = {item: is_selected(config, item) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not selected[item]])
    items[:] = [item for item in items if selected[item]]
    if not config.getoption("--nightly"):
        reduce_examples(items)


def is_selected(config: pytest.Config, item: pytest.Item) -> bool:
    """Return whether a level runs this case; a nightly run repeats only the properties, with new examples."""
    if item.get_closest_marker("long"):
        return bool(config.getoption("--long"))
    is_nightly = item.get_closest_marker("nightly") is not None
    return is_nightly or is_property(item) if config.getoption("--nightly") else not is_nightly
