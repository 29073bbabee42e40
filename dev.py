#!/usr/bin/env python3
"""Set up this repository and run its commands; needs nothing but Python 3.11 or newer.

    python3 dev.py flights [OPTIONS]              run the flights pipeline on local Spark (see --help)
    python3 dev.py tests                          run the static checks, and all tests but the nightly ones
    python3 dev.py tests --changed [--since REF]  run the checks, and the tests nearest to what changed since main
    python3 dev.py tests --nightly                run what `tests` leaves out, with new examples of each property
    python3 dev.py tests [PYTEST ARGS]            run pytest with these arguments
    python3 dev.py checks                         run the static checks: lint, format, types, imports, docstrings
    python3 dev.py release                        build, check and sign the files of a release; publish nothing
    python3 dev.py golden [--java]                build the distribution paimon-golden; Java writes its tables anew

All commands create a virtual environment in `.venv` (or in PAIMON_VENV) and install what they need with pip, with
pip's own settings. They install again only after a change of pyproject.toml.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent
HOME = Path(os.environ.get("PAIMON_VENV", ROOT / ".venv"))
EXTRAS = {"flights": "examples", "tests": "test", "checks": "test", "release": "release", "golden": "test"}
FLIGHTS = ROOT / "examples" / "flights"
WIPE = "\r\x1b[K"
LAST_LINES = 20
MEMORY = Path("/dev/shm")
MEMORY_PREFIX = "paimon-test-files-"
MEMORY_BYTES = 4 << 30
"""So much room the temporary files of the tests have in memory, or they are on disk."""


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
    if command == "checks":
        return run_static_checks(python)
    if command == "release":
        return subprocess.call([python, str(ROOT / "tests" / "support" / "release.py")])
    if command == "golden":
        environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
        return subprocess.call([python, "-m", "support.golden_package", *rest], env=environment)
    return run_tests(python, rest)


def run_tests(python: str, arguments: list[str]) -> int:
    """Run a level of the tests, or pytest with other arguments; return the first exit code that is not 0."""
    workers = (os.cpu_count() or 1) + 1  # one of them often waits for Spark, Java or another process
    parallel = ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder", "-q"]
    if arguments == ["--nightly"]:
        return run_pytest(python, [*parallel, "--nightly"])
    if arguments[:1] == ["--changed"]:
        selected = list_changed_tests(python, arguments[1:])
    elif arguments in ([], ["--record-durations"]):
        selected = arguments
    else:
        return run_pytest(python, arguments)
    checked = run_static_checks(python)
    with choose_temporary_files() as places:
        tested = run_pytest(python, [*parallel, *selected], places)
    if checked:
        print("The static checks failed. What they report is above the tests.", file=sys.stderr)
    return checked or tested


@contextmanager
def choose_temporary_files() -> Iterator[dict[str, str]]:
    """Yield a variable that lets the tests write to memory, if there is room: each commit flushes its files to disk."""
    usable = "TMPDIR" not in os.environ and MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    if not usable or shutil.disk_usage(MEMORY).free < MEMORY_BYTES or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        yield {}
        return
    remove_left_files()
    with tempfile.TemporaryDirectory(prefix=MEMORY_PREFIX, dir=MEMORY, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # PostgreSQL does not run as root, and enters the folder as another user
        lock = lock_folder(Path(folder))
        try:
            yield {"TMPDIR": folder}
        finally:
            if lock is not None:
                os.close(lock)


def remove_left_files() -> None:
    """Delete the temporary files of runs that were killed: no process has the lock of their folder."""
    for folder in MEMORY.glob(f"{MEMORY_PREFIX}*"):
        lock = lock_folder(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def lock_folder(folder: Path) -> int | None:
    """Lock a folder until this process ends, and return the open file; None if it belongs to another process."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened


def run_pytest(python: str, arguments: list[str], variables: Mapping[str, str] | None = None) -> int:
    """Run pytest in the repository; the tests of one file run in one process, the longest files first.

    Python stores the compiled modules, also where the environment forbids it: tests start hundreds of processes.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment.update(variables or {})
    return subprocess.call([python, "-m", "pytest", *arguments], cwd=ROOT, env=environment)


def run_static_checks(python: str) -> int:
    """Run the checks that do not run the code; at once if they succeeded on the same files before."""
    return subprocess.call([python, str(ROOT / "tests" / "support" / "static_checks.py")], cwd=ROOT)


def list_changed_tests(python: str, arguments: list[str]) -> list[str]:
    """Return the test modules for what changed since a commit."""
    command = [python, "-m", "support.changed_tests", *arguments]
    found = subprocess.run(command, cwd=ROOT / "tests", stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        sys.exit(found.returncode)
    return found.stdout.split()


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

    The whole output goes to `log`. If the command fails, the last lines of both its streams are printed, in the order
    in which they came, and its exit code ends this process.
    """
    start, lines = time.monotonic(), list[tuple[str, str]]()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process, log.open("w", encoding="utf8") as file:  # fmt: skip
        streams = {"output": process.stdout, "errors": process.stderr}
        readers = [
            threading.Thread(target=collect_lines, args=(name, stream, file, lines), daemon=True)
            for name, stream in streams.items()
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            show_progress(reader, lines, start)
    wipe = WIPE if sys.stdout.isatty() else ""
    if process.returncode:
        print(f"{wipe}The installation failed. The whole output is in {log}. Its last lines are:", file=sys.stderr)
        print("\n".join(list_last_lines(lines)), file=sys.stderr)
        sys.exit(process.returncode)
    count = count_packages([line for _, line in lines])
    print(f"{wipe}Installed {count} packages in {time.monotonic() - start:.0f} s", flush=True)


def show_progress(reader: threading.Thread, lines: list[tuple[str, str]], start: float) -> None:
    """Show the latest line on a terminal until a stream ends."""
    while reader.is_alive():
        reader.join(0.2)
        if sys.stdout.isatty():
            latest = shorten_line(lines[-1][1]) if lines else "starting pip"
            progress = f"{time.monotonic() - start:4.0f} s  {latest}"
            print(WIPE + progress[: shutil.get_terminal_size().columns - 1], end="", flush=True)


def collect_lines(name: str, stream: Iterable[str], file: TextIO, lines: list[tuple[str, str]]) -> None:
    """Add the lines of a stream, as they arrive, to a file and with the stream's name to a list."""
    for line in stream:
        lines.append((name, line.rstrip()))
        print(line.rstrip(), file=file, flush=True)


def list_last_lines(lines: list[tuple[str, str]]) -> list[str]:
    """Return the last lines of each stream in the order in which they came.

    A program that writes to a pipe often holds its output back until it ends. Then its error comes first, before more
    lines than are shown.
    """
    last = {
        place
        for name in {name for name, _ in lines}
        for place in [place for place, line in enumerate(lines) if line[0] == name][-LAST_LINES:]
    }
    return [lines[place][1] for place in sorted(last)]


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
