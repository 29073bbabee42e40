"""Run Python code in new processes that have loaded the library already: an interpreter needs half a second for that.

Tests that examine the start of a process, or what it loads, start an interpreter instead.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from paimon.testing.stress_test import get_process_context


class Ended(NamedTuple):
    """A process that ended: its exit code, and what it wrote."""

    code: int | None
    output: bytes
    errors: bytes


def start_code(
    code: str, arguments: Sequence[str], streams: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> BaseProcess:
    """Start code as `python -c` does, with `streams` for input, output and errors; a terminal controls it."""
    process = get_process_context().Process(
        target=_run_code, args=(code, tuple(arguments), tuple(streams), dict(environment or os.environ))
    )
    process.start()
    return process


def run_code(code: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Ended:
    """Run code with an empty input."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        for path in (output, errors):
            path.touch()
        process = start_code(code, arguments, (os.devnull, str(output), str(errors)), environment)
        process.join(300)
        process.kill()  # no effect if it ended
        process.join()
        return Ended(process.exitcode, output.read_bytes(), errors.read_bytes())


def _run_code(code: str, arguments: tuple[str, ...], streams: tuple[str, ...], environment: dict[str, str]) -> None:
    os.setsid()
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_RDWR), number)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
