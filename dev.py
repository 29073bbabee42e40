#!/usr/bin/env python3
"""Set up this repository and run its commands; needs nothing but Python 3.11 or newer.

    python3 dev.py flights [OPTIONS]     run the flights pipeline on local Spark (see --help)
    python3 dev.py tests [PYTEST ARGS]   run all tests and architecture checks

Both commands create a virtual environment in `.venv` (or in PAIMON_VENV) and install what they need with pip, with
pip's own settings. They install again only after a change of pyproject.toml.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent
HOME = Path(os.environ.get("PAIMON_VENV", ROOT / ".venv"))
EXTRAS = {"flights": "examples", "tests": "test"}
FLIGHTS = ROOT / "examples" / "flights"
WIPE = "\r\x1b[K"
LAST_LINES = 20


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036  (this file is what an older Python runs first)
        print(f"Python {sys.version.split()[0]} is too old. Use Python 3.11 or newer.", file=sys.stderr)
        return 2
    if not arguments or arguments[0] not in EXTRAS:
        print(__doc__.strip())
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    command, rest = arguments[0], arguments[1:]
    python = prepare_environment(EXTRAS[command])
    if command == "flights":
        return subprocess.call([python, str(FLIGHTS), *rest])  # in the directory of the caller, which gets the tables
    return subprocess.call([python, "-m", "pytest", *(rest or default_test_arguments())], cwd=ROOT)


def default_test_arguments() -> list[str]:
    """Return arguments for a parallel run on all cores; tests of one file share a Spark or a Java process.

    The order of the files is that of `tests/conftest.py`: the longest first.
    """
    return ["-n", str(os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder", "-q"]


def prepare_environment(extra: str) -> str:
    """Return the Python of the environment; create and fill it if this pyproject.toml is not installed yet."""
    python = HOME / "bin" / "python"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode()).hexdigest()
    stamp = HOME / f"installed-{extra}"
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    if not python.exists():
        print(f"Creating a virtual environment in {HOME}", flush=True)
        venv.create(HOME, with_pip=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar", "off"]
    print(f"Installing paimon-lake[{extra}], which takes a minute or two the first time", flush=True)
    run_with_progress([*pip, "--editable", f"{ROOT}[{extra}]"], HOME / "install.log")
    stamp.write_text(wanted)
    return str(python)


def run_with_progress(command: list[str], log: Path) -> None:
    """Run a pip command, and show its progress as one line on a terminal.

    Parameters
    ----------
    command : list of str
        The program and its arguments.
    log : Path
        The file for the whole output. If the command fails, its last lines are printed.

    Raises
    ------
    SystemExit
        The command failed; its exit code is passed on.
    """
    is_terminal, start, lines = sys.stdout.isatty(), time.monotonic(), list[str]()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        reader = threading.Thread(target=collect_lines, args=(process.stdout, log, lines), daemon=True)
        reader.start()
        while reader.is_alive():
            reader.join(0.2)
            if is_terminal:
                progress = f"{time.monotonic() - start:4.0f} s  {shorten_line(lines[-1]) if lines else 'starting pip'}"
                print(WIPE + progress[: shutil.get_terminal_size().columns - 1], end="", flush=True)
    wipe = WIPE if is_terminal else ""
    if process.returncode:
        print(f"{wipe}The installation failed. The whole output is in {log}. Its last lines are:", file=sys.stderr)
        print("\n".join(lines[-LAST_LINES:]), file=sys.stderr)
        sys.exit(process.returncode)
    print(f"{wipe}Installed {count_packages(lines)} packages in {time.monotonic() - start:.0f} s", flush=True)


def collect_lines(output: Iterable[str], log: Path, lines: list[str]) -> None:
    """Collect the lines of an output in a list and in a file.

    Parameters
    ----------
    output : iterable of str
        The lines, as they arrive.
    log : Path
        The file, which is replaced.
    lines : list of str
        The list that the lines are added to, without newlines.
    """
    with log.open("w", encoding="utf8") as file:
        for line in output:
            lines.append(line.rstrip())
            print(lines[-1], file=file, flush=True)


def shorten_line(line: str) -> str:
    """Shorten a line of pip to a few words, such as ``"downloading pyspark"``."""
    words = line.split()
    if line.startswith("Installing collected packages"):
        return f"unpacking {len(words) - 3} packages"
    if len(words) < 2:
        return line.strip()
    return f"{words[0].lower()} {re.split('[<>=!~;([]|-[0-9]', words[1])[0]}"


def count_packages(lines: list[str]) -> int:
    """Count the packages that pip reports as installed."""
    done = [line for line in lines if line.startswith("Successfully installed")]
    return len(done[-1].split()) - 2 if done else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
