"""`dev.py` shows one line while pip runs, writes the output to a file, and shows it if the installation fails."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def dev() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dev_script", ROOT / "dev.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_the_output_is_written_to_a_file(dev: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    noise = "print('Collecting pyspark'); print('Successfully installed attrs-1 pyspark-4')"
    dev.run_with_progress(program(noise), tmp_path / "log")
    printed = capfd.readouterr()
    assert printed.out == "Installed 2 packages in 0 s\n" and not printed.err
    assert (tmp_path / "log").read_text().splitlines()[0] == "Collecting pyspark"


def test_a_failure_shows_the_last_lines_and_ends(
    dev: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    failing = "import sys\nfor i in range(50): print('line', i)\nsys.exit('ERROR: no matching distribution')"
    with pytest.raises(SystemExit) as ended:
        dev.run_with_progress(program(failing), tmp_path / "log")
    assert ended.value.code == 1
    printed = capfd.readouterr().err
    assert "ERROR: no matching distribution" in printed and str(tmp_path / "log") in printed
    assert "line 49" in printed and "line 9\n" not in printed


def test_a_failure_shows_an_error_that_came_before_the_output(
    dev: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A program often holds back what it writes to a pipe; this one waits until its error has arrived."""
    log = tmp_path / "log"
    failing = f"""
import pathlib, sys, time
print("ERROR", file=sys.stderr, flush=True)
while "ERROR" not in pathlib.Path({str(log)!r}).read_text():
    time.sleep(0.01)
for i in range(50):
    print("line", i)
sys.exit(3)
"""
    with pytest.raises(SystemExit) as ended:
        dev.run_with_progress(program(failing), log)
    assert ended.value.code == 3
    shown = capfd.readouterr().err.splitlines()[1:]
    assert shown == ["ERROR", *(f"line {i}" for i in range(30, 50))]
    assert len(log.read_text().splitlines()) == 51


class Called:
    """Records the commands of `dev.py` and lets those that contain a word fail."""

    def __init__(self, failing: str = "nothing") -> None:
        self.commands: list[list[str]] = []
        self.failing = failing

    def __call__(self, command: list[str], cwd: Path, env: Mapping[str, str] | None = None) -> int:
        self.commands.append(command[1:])
        return 1 if any(self.failing in word for word in command) else 0


@pytest.mark.parametrize(
    ("arguments", "checked", "words"),
    [
        ([], True, ["--dist", "loadfile"]),
        (["--record-durations"], True, ["--dist", "--record-durations"]),
        (["--nightly"], False, ["--dist", "--nightly"]),
        (["--changed", "--since", "HEAD"], True, ["--dist", "tests/architecture/test_fences.py"]),
        (["tests/domain", "-k", "row"], False, ["tests/domain", "-k", "row"]),
    ],
)
def test_a_level_runs_the_checks_and_its_tests(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, arguments: list[str], checked: bool, words: list[str]
) -> None:
    called = Called()
    monkeypatch.setattr(dev.subprocess, "call", called)
    assert dev.run_tests(sys.executable, arguments) == 0
    *before, tested = called.commands
    assert [[Path(word).name for word in command] for command in before] == [["static_checks.py"]] * checked
    assert set(words) <= set(tested) and tested[:2] == ["-m", "pytest"]


@pytest.mark.parametrize("failing", ["static_checks", "pytest"])
def test_a_failing_check_or_test_fails_the_command(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    called = Called(failing)
    monkeypatch.setattr(dev.subprocess, "call", called)
    assert dev.run_tests(sys.executable, []) == 1
    assert len(called.commands) == 2  # tests run also where a check fails


def test_temporary_files_are_in_memory_if_there_is_room(
    dev: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(dev, "MEMORY", tmp_path)
    monkeypatch.setattr(dev, "MEMORY_BYTES", 0)
    with dev.choose_temporary_files() as variables:
        assert Path(variables["TMPDIR"]).parent == tmp_path
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(dev, "MEMORY_BYTES", 1 << 62)
    with dev.choose_temporary_files() as variables:
        assert variables == {}
    monkeypatch.setattr(dev, "MEMORY_BYTES", 0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with dev.choose_temporary_files() as variables:
        assert variables == {}


def test_a_terminal_sees_one_line_that_moves(
    dev: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    slow = "import time; print('Downloading pyspark-4.3.0.tar.gz (434.2 MB)', flush=True); time.sleep(1)"
    dev.run_with_progress(program(slow), tmp_path / "log")
    *moving, last = capsys.readouterr().out.split(dev.WIPE)
    assert any("downloading pyspark" in line for line in moving)
    assert all(len(line) < 40 and "\n" not in line for line in moving)
    assert last.startswith("Installed ")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Collecting pyspark>=4.1 (from paimon-lake[examples])", "collecting pyspark"),
        ("  Downloading pyarrow-26.0.1-cp311-manylinux.whl (46 MB)", "downloading pyarrow"),
        ("Installing collected packages: a, b, c", "unpacking 3 packages"),
        ("Requirement already", "requirement already"),
        ("  Preparing metadata", "preparing metadata"),
        ("", ""),
    ],
)
def test_lines_of_pip_become_a_few_words(dev: ModuleType, line: str, words: str) -> None:
    assert dev.shorten_line(line) == words


def test_the_flights_pipeline_runs_where_it_is_called(
    dev: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables and its next commands are named relative to that directory."""
    called = tmp_path / "python"
    called.write_text(f'#!/bin/sh\npwd > {tmp_path}/where; echo "$@" > {tmp_path}/arguments\n')
    called.chmod(0o755)
    monkeypatch.setattr(dev, "prepare_environment", lambda extra: str(called))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert dev.main(["flights", "--commits", "4"]) == 0
    assert (tmp_path / "where").read_text().strip() == str(here)
    assert (tmp_path / "arguments").read_text().split() == [str(ROOT / "examples" / "flights"), "--commits", "4"]
