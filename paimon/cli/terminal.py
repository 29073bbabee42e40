"""Draw tables on the terminal, with rich if it is installed and as plain text otherwise."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Literal

from paimon.display.text_table import GAP, TextColumn, fit_to_screen, to_text_lines

_PIPE_WIDTH = 1_000
"""Width in characters of a drawn table for a file or a pipe, which has no screen to fit."""


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
    """Draw a small table; on a terminal rich may wrap long texts."""
    if has_rich():
        _draw_grid(columns, title)
        return
    if title:
        print(title)
    for line in to_text_lines(columns):
        print(line)


def draw_fitted(columns: Sequence[TextColumn]) -> int:
    """Draw a small table no wider than the terminal, and return how many columns in the middle were left out."""
    gap, border = (3, 1) if has_rich() else (len(GAP), -len(GAP))
    fitted, elided = fit_to_screen(columns, shutil.get_terminal_size().columns, gap, border)
    draw_columns(fitted)
    return elided


def _draw_grid(columns: Sequence[TextColumn], title: str | None) -> None:
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid(title=title and escape(title), title_justify="left")
    for column in columns:
        side: Literal["left", "right"] = "right" if column.is_numeric else "left"
        # Fold long texts: a name that is cut cannot be used in the next command.
        grid.add_column(escape(column.name), justify=side, no_wrap=column.is_numeric, overflow="fold")
    for cells in zip(*(column.cells for column in columns), strict=True):
        grid.add_row(*map(escape, cells))
    console().print(grid)
