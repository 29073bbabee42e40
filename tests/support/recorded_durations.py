"""The CPU seconds of each test module and of each slow case, recorded in `tests/durations.json`.

`python3 dev.py tests --record-durations` records them anew. Modules run longest first, so that no worker waits for the
last one, and `--changed` fills its budget by them. CPU seconds count the worker, its children, and living processes
such as a Java virtual machine; they depend less on other load than elapsed seconds.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[1] / "durations.json"
SLOW_SECONDS = 5.0
"""A case that takes longer carries the marker `slow` with a reason."""
SMALLEST_SECONDS = 1.0
"""Modules below are not recorded, which keeps the file stable."""
_TICKS = os.sysconf("SC_CLK_TCK")


def read_module_seconds() -> dict[str, float]:
    """Return the recorded CPU seconds by module, relative to the repository; short modules are not listed."""
    return dict(json.loads(PATH.read_text("utf8"))["modules"])


def read_slow_cases() -> dict[str, float]:
    """Return the recorded CPU seconds of the functions whose slowest case takes long, by node id."""
    return dict(json.loads(PATH.read_text("utf8"))["slow"])


def measure_cpu_seconds() -> float:
    """Return the CPU seconds of this process, of its ended children and of its living descendants."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system + _measure_descendants(os.getpid())


def _measure_descendants(process: int) -> float:
    """Return 0 where the system has no `/proc`: then only processes that ended count."""
    total = 0.0
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            for child in map(int, children.read_text().split()):
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / _TICKS + _measure_descendants(child)
        except OSError:  # it ended meanwhile
            continue
    return total


class DurationRecorder:
    """Measures the cases of one worker, and in the main process collects those of all workers."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, float] = {}
        """Without the fixtures: the first case of a worker that uses Spark starts it."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start = measure_cpu_seconds()
        result = yield
        self.seconds[item.nodeid] = round(max(measure_cpu_seconds() - start, 0.0), 2)
        return result  # type: ignore[return-value]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        start = measure_cpu_seconds()
        try:
            return (yield)
        finally:
            self.calls[item.nodeid] = round(max(measure_cpu_seconds() - start, 0.0), 2)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        output = getattr(node, "workeroutput", {})
        self.seconds.update(output.get("cpu_seconds", {}))
        self.calls.update(output.get("cpu_seconds_of_calls", {}))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["cpu_seconds"] = self.seconds
            output["cpu_seconds_of_calls"] = self.calls

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write_durations(self.seconds, self.calls)
        terminalreporter.write_line(f"{sum(self.seconds.values()):.0f} CPU seconds in cases, recorded in {PATH.name}")


def write_durations(seconds: Mapping[str, float], calls: Mapping[str, float]) -> None:
    """Replace the recorded values of the modules that ran; those of other modules stay."""
    modules, slow = defaultdict[str, float](float), dict[str, float]()
    for node, value in seconds.items():
        modules[node.partition("::")[0]] += value
    for node, value in calls.items():
        if value > SLOW_SECONDS:
            name = node.partition("[")[0]
            slow[name] = max(value, slow.get(name, 0.0))
    recorded = json.loads(PATH.read_text("utf8")) if PATH.exists() else {"modules": {}, "slow": {}}
    kept = {name: value for name, value in recorded["modules"].items() if name not in modules}
    kept_slow = {node: value for node, value in recorded["slow"].items() if node.partition("::")[0] not in modules}
    listed = {name: round(value, 1) for name, value in modules.items() if value >= SMALLEST_SECONDS}
    content = {"modules": kept | listed, "slow": kept_slow | {node: round(value, 1) for node, value in slow.items()}}
    PATH.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", "utf8")
