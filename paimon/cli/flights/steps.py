"""Steps of the demo on the terminal: a spinner while one runs, then a line with its numbers; and Spark's own messages,
which go to a file.
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
    """One step, which may say what came of it."""

    def __init__(self) -> None:
        self.outcome = ""

    def report(self, outcome: str) -> None:
        """Set the text of the step's line."""
        self.outcome = outcome


class Steps:
    """Prints what is going on, what came of it, and how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the first step began."""
        return time.monotonic() - self._start

    @contextmanager
    def step(self, label: str) -> Iterator[Step]:
        """Run one step: a spinner while it runs, a line with its outcome and seconds when it is done."""
        begin = time.monotonic()
        step = Step()
        with self._console.status(label):
            yield step
        took = time.monotonic() - begin
        self._console.print(
            f"[blue]✓[/] {label:<{LABEL_WIDTH}} [dim]{took:5.1f} s[/]  {step.outcome}", soft_wrap=True, highlight=False
        )


@contextmanager
def divert_errors(path: Path) -> Iterator[None]:
    """Send what is written to the standard error meanwhile to a file.

    Processes that start meanwhile keep writing there, so the Java process of Spark leaves the terminal alone.

    Parameters
    ----------
    path : Path
        The file; what it held is replaced. Where the block fails, its last lines are printed.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    failed = True
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
        failed = False
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        if failed:
            lines = path.read_text("utf8", "replace").splitlines()
            print("\n".join(lines[-_LAST_LINES:]), file=sys.stderr)
