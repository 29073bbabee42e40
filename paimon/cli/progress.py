"""Progress of long work, on the standard error of a terminal.

Law: nothing is printed where nobody watches, nor before a second has passed; the line is wiped at the end.
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
_WIPE = "\r\x1b[K"


def counted(pieces: Iterable[T], doing: str) -> Iterator[T]:
    """The pieces; while they pass, a line says how many rows there were."""
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
                print(f"{_WIPE}{doing} {rows:,} rows, {rate:,.0f} a second", end="", file=sys.stderr, flush=True)
                shown, printed = now, True
            yield piece
    finally:
        if printed:
            print(_WIPE, end="", file=sys.stderr, flush=True)


class TerminalObserver:
    """Shows the progress of operations; use it in a `with` block, which wipes the line at its end."""

    def __init__(self) -> None:
        self._started = self._shown = time.monotonic()
        self._printed = False

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """Say how far an activity is."""
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._started < _PATIENCE_SECONDS or now - self._shown < _PAUSE_SECONDS:
            return
        of = "" if total is None else f" of {total:,}"
        print(f"{_WIPE}{activity}: {done:,}{of}", end="", file=sys.stderr, flush=True)
        self._shown, self._printed = now, True

    def count(self, metric: str, value: int) -> None:
        """Not shown."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._printed:
            print(_WIPE, end="", file=sys.stderr, flush=True)
