"""Java Paimon for the tests: started once, through py4j, with jars that Maven resolves.

Without Java or Maven the tests marked `interop` are deselected, and the run reports it. With `REQUIRE_INTEROP=1` the
run fails instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from support.java_paimon import JavaPaimon, compile_driver

TOOLS = ("java", "javac", "mvn")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    ours = [item for item in items if item.get_closest_marker("interop")]
    if missing and ours and not is_interop_required():
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
        config.stash[MISSING] = f"{len(ours)} interop tests deselected: no {', '.join(missing)} on the path"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if note := config.stash.get(MISSING, None):
        terminalreporter.write_line(note, yellow=True)


MISSING = pytest.StashKey[str]()


def is_interop_required() -> bool:
    return os.environ.get("REQUIRE_INTEROP") == "1"


@pytest.fixture(scope="session")
def java() -> Iterator[JavaPaimon]:
    """Java's Paimon. Tests are skipped if Maven cannot resolve its jars, unless interop is required."""
    try:
        classpath = compile_driver()
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        if is_interop_required():
            raise
        pytest.skip(f"Java's Paimon cannot be had here: {error}")
    with JavaPaimon(classpath) as paimon:
        yield paimon
