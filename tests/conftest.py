"""Hypothesis for all tests: machines are slow at times, and nothing is kept between runs. `--long` runs the proofs
that take hours too; without it they are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine draws slowly: that is no fault of what is tested.
settings.register_profile("paimon", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paimon")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long, which take hours")
    parser.addoption("--progress", type=Path, help="where long tests note how far they are, to go on from there")


@pytest.fixture
def progress(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory that outlives the run, if one was given."""
    given = request.config.getoption("--progress")
    folder = tmp_path if given is None else Path(given).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("long")]
