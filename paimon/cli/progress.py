"""Show the progress of long work on the standard error.

Invariant: nothing is printed unless the standard error is a terminal, and nothing in the first second. The line is
erased at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Self, TypeVar

import pyarrow as pa

T = TypeVar("T", pa.RecordBatch, pa.Table | list[dict[str, object]])

_PATIENCE_SECONDS = 1.0
_PAUSE_SECONDS = 0.2
_ERASE = "\r\x1b[K"


def show_row_count(pieces: Iterable[T], activity: str) -> Iterator[T]:
    """Yield the pieces, and show on one line how many rows have passed."""
    if not sys.stderr.isatty():
        yield from pieces
        return
    started = shown = time.monotonic()
    rows, printed = 0, False
    try:
        for piece in pieces:
            rows += len(piece) if isinstance(piece, list) else piece.num_rows
            now = time.monotonic()
            if now - started > _PATIENCE_SECONDS and now - shown > _PAUSE_SECONDS:
                rate = rows / (now - started)
                print(f"{_ERASE}{activity} {rows:,} rows, {rate:,.0f} per second", end="", file=sys.stderr, flush=True)
                shown, printed = now, True
            yield piece
    finally:
        if printed:
            print(_ERASE, end="", file=sys.stderr, flush=True)


class TerminalObserver:
    """Observer that shows the progress of operations; the end of its `with` block erases the line."""

    def __init__(self) -> None:
        self._started = self._shown = time.monotonic()
        self._printed = False

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """Show how many parts of an activity are finished. `total` is None if the number of all parts is not known."""
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._started < _PATIENCE_SECONDS or now - self._shown < _PAUSE_SECONDS:
            return
        of = "" if total is None else f" of {total:,}"
        print(f"{_ERASE}{activity}: {done:,}{of}", end="", file=sys.stderr, flush=True)
        self._shown, self._printed = now, True

    def count(self, metric: str, value: int) -> None:
        """Ignore a metric; the terminal shows progress only."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._printed:
            print(_ERASE, end="", file=sys.stderr, flush=True)
