"""Options of all tests: the Hypothesis profile, and `--long` for the tests that take hours."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.example_profiles import load_profile

load_profile()


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    long_tests = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long_tests)
    items[:] = [item for item in items if not item.get_closest_marker("long")]
