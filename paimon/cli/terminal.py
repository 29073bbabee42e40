"""What commands do with a terminal: draw tables, show the progress of long work, and obey Ctrl-C.

Invariant: tables are the same plain text on a terminal and in a pipe. Progress is shown only if the standard error is a
terminal and after the first second, and is erased at the end. Outside of the block of `call_on_interrupt` nothing of
the process has changed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self, TypeVar

import pyarrow as pa

from paimon.domain.text_layout import FittedColumns, TextColumn, fit_to_screen, to_record_lines, to_text_lines

T = TypeVar("T", pa.RecordBatch, pa.Table | list[dict[str, object]])
_PATIENCE_SECONDS = 1.0
_PAUSE_SECONDS = 0.2
_ERASE = "\r\x1b[K"
_STYLES = {"bold": "\x1b[1m", "dim": "\x1b[2m"}
_PLAIN = "\x1b[0m"
_SIGINT = bytes([signal.SIGINT])
_END = b"\0"
_STOP_AGAIN_SECONDS = 0.2
"""No signal has this number."""


def print_styled(text: str, style: str) -> None:
    """Print lines in a style of `_STYLES`, which a file, a pipe and a terminal without styles do not get."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        text = f"{_STYLES[style]}{text}{_PLAIN}"
    print(text)


def draw_lines(lines: Iterable[str], title: str | None = None) -> None:
    """Print the lines of a table below its title."""
    if title:
        print_styled(title, "bold")
    for line in lines:
        print(line)


def draw_records(columns: Sequence[TextColumn], title: str | None = None) -> None:
    """Draw records of which nothing is cut: as a table, or on a terminal that is too narrow for it, as blocks."""
    draw_lines(to_record_lines(columns, get_screen_width()) if sys.stdout.isatty() else to_text_lines(columns), title)


def draw_fitted(columns: Sequence[TextColumn]) -> FittedColumns:
    """Draw rows as wide as the terminal, in blocks if it is too narrow for two columns; return the text."""
    fitted = fit_to_screen(columns, get_screen_width())
    if len(columns) > 1 and (fitted.width > get_screen_width() or len(columns) - fitted.elided < 2):
        fitted = FittedColumns(tuple(columns))
        draw_records(columns)
    else:
        draw_lines(to_text_lines(fitted.columns))
    return fitted


def get_screen_width() -> int:
    """Return the number of cells of a line of the terminal."""
    return shutil.get_terminal_size().columns


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


@contextmanager
def call_on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in another thread as soon as the signal of Ctrl-C arrives; Python raises KeyboardInterrupt, too.

    A native library that runs a query looks at signals rarely.
    `stop` ends what the block runs. The signal is watched in the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watched, signalled = socket.socketpair()
    with watched, signalled:
        signalled.setblocking(False)
        watcher = threading.Thread(target=_watch_signals, args=(watched, stop), daemon=True)
        watcher.start()
        before = signal.set_wakeup_fd(signalled.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            signalled.send(_END)
            watcher.join()


def _watch_signals(watched: socket.socket, stop: Callable[[], None]) -> None:
    """Read the numbers of signals, until the block ends; a query that just begins may not notice the first stop."""
    while True:
        try:
            received = watched.recv(4096)
        except TimeoutError:
            stop()
            continue
        if _SIGINT in received:
            stop()
            watched.settimeout(_STOP_AGAIN_SECONDS)
        if not received or _END in received:
            return
