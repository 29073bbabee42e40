"""What commands do with a terminal: draw tables, show the progress of long work, and obey Ctrl-C.

Invariant: tables are plain text without rich. Progress is shown only if the standard error is a terminal and after the
first second, and is erased at the end. Outside of the block of `call_on_interrupt` nothing of the process has changed.
"""

from __future__ import annotations

import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Literal, Self, TypeVar

import pyarrow as pa

from paimon.display.text_table import GAP, TextColumn, fit_to_screen, fits_records, to_blocks, to_text_lines

_PIPE_WIDTH = 1_000
"""Width in characters of a drawn table for a file or a pipe, which has no screen to fit."""
T = TypeVar("T", pa.RecordBatch, pa.Table | list[dict[str, object]])
_PATIENCE_SECONDS = 1.0
_PAUSE_SECONDS = 0.2
_ERASE = "\r\x1b[K"
_SIGINT = bytes([signal.SIGINT])
_END = b"\0"
"""No signal has this number."""


class PlainConsole:
    """Console that prints plain text, for environments without rich."""

    def print(self, text: object, **_: object) -> None:
        """Print a line, and ignore styles."""
        print(text)


def console() -> Any:
    """Make a rich console, or a `PlainConsole` where rich is not installed."""
    if not has_rich():
        return PlainConsole()
    from rich.console import Console

    return Console(soft_wrap=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def has_rich() -> bool:
    """Return whether rich can be imported."""
    try:
        return find_spec("rich") is not None
    except ImportError:
        return False


def draw_columns(columns: Sequence[TextColumn], title: str | None = None) -> None:
    """Draw a small table; on a terminal rich may fold long texts of the last column."""
    if has_rich():
        _draw_grid(columns, title)
        return
    if title:
        print(title)
    for line in to_text_lines(columns):
        print(line)


def draw_records(columns: Sequence[TextColumn], title: str | None = None) -> None:
    """Draw records of which nothing is cut: as a table, or on a terminal that is too narrow for it, as blocks."""
    if not sys.stdout.isatty() or fits_records(columns, _get_screen(), *_get_margins(), has_rich()):
        draw_columns(columns, title)
        return
    if title:
        print(title)
    for line in to_text_lines(columns) if len(columns) == 1 else to_blocks(columns, _get_screen()):
        print(line)


def draw_fitted(columns: Sequence[TextColumn]) -> int:
    """Draw a small table no wider than the terminal, and return how many columns in the middle were left out.

    A terminal that is too narrow for two columns gets the rows as blocks.
    """
    gap, border = _get_margins()
    fitted, elided = fit_to_screen(columns, _get_screen(), gap, border)
    is_narrow = sum(column.width + gap for column in fitted) > _get_screen() - border
    if len(columns) > 1 and (is_narrow or len(columns) - elided < 2):
        draw_records(columns)
        return 0
    draw_columns(fitted)
    return elided


def _get_screen() -> int:
    return shutil.get_terminal_size().columns


def _get_margins() -> tuple[int, int]:
    """Return the cells that a drawn table adds to each column, and to all of them."""
    return (3, 1) if has_rich() else (len(GAP), -len(GAP))


def _draw_grid(columns: Sequence[TextColumn], title: str | None) -> None:
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid(title=title and escape(title), title_justify="left")
    for number, column in enumerate(columns):
        side: Literal["left", "right"] = "right" if column.is_numeric else "left"
        # Fold long texts: a name that is cut cannot be used in the next command. On a terminal only the last is folded.
        is_whole = column.is_numeric or (sys.stdout.isatty() and number < len(columns) - 1)
        grid.add_column(escape(column.name), justify=side, no_wrap=is_whole, overflow="fold")
    for cells in zip(*(column.cells for column in columns), strict=True):
        grid.add_row(*map(escape, cells))
    console().print(grid)


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
    """Read the numbers of signals, until the block ends."""
    while True:
        received = watched.recv(4096)
        if _SIGINT in received:
            stop()
        if not received or _END in received:
            return
