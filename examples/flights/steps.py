"""Show the steps of the pipeline on the terminal: a spinner while a step runs, then one line with its result.

Spark's own messages go to a file.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

LABEL_WIDTH = 34
_LAST_LINES = 20


class Step:
    """One step of the pipeline, with the text of its result."""

    def __init__(self) -> None:
        self.result = ""

    def report(self, result: str) -> None:
        """Set the text that the line of the step ends with."""
        self.result = result


class Steps:
    """Printer of steps: what runs, its result, and how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since this printer was created."""
        return time.monotonic() - self._start

    @contextmanager
    def step(self, label: str) -> Iterator[Step]:
        """Run one step: show a spinner, then print a line with its seconds and its result.

        Parameters
        ----------
        label : str
            The name of the step.

        Yields
        ------
        Step
            The step; the block reports its result to it.
        """
        begin = time.monotonic()
        step = Step()
        with self._console.status(label):
            yield step
        took = time.monotonic() - begin
        self._console.print(
            f"[blue]✓[/] {label:<{LABEL_WIDTH}} [dim]{took:5.1f} s[/]  {step.result}", soft_wrap=True, highlight=False
        )


@contextmanager
def divert_errors(path: Path) -> Iterator[None]:
    """Redirect the standard error of this process to a file while the block runs.

    Processes that start in the block keep writing there, so Spark's Java process prints nothing on the terminal.

    Parameters
    ----------
    path : Path
        The file, which is replaced. If the block fails, its last lines are printed.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    failed = True
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
        failed = False
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        if failed:
            lines = path.read_text("utf8", "replace").splitlines()
            print("\n".join(lines[-_LAST_LINES:]), file=sys.stderr)
