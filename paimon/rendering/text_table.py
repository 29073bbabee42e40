"""Lay out small tables of plain text, and choose the columns that fit on a screen.

Invariant: one row is one line. Widths are in cells of a terminal; an East Asian wide character takes two cells.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.rendering.column_texts import to_plain_texts

GAP = "  "
ELLIPSIS = "…"
WIDEST_CELL = 60
_NARROW_CELL = 24


@frozen
class TextColumn:
    """A column of a small table."""

    name: str
    # whether the column is aligned to the right and never cut
    is_numeric: bool
    cells: tuple[str, ...]

    @property
    def width(self) -> int:
        """Width of the widest cell, the heading included."""
        return max(map(display_width, (self.name, *self.cells)))

    def cut_cells(self, width: int) -> TextColumn:
        """Cut texts that are longer than a width; numbers and the heading are not cut."""
        if self.is_numeric:
            return self
        return TextColumn(self.name, False, tuple(cut_text(cell, width) for cell in self.cells))


def fit_to_screen(columns: Sequence[TextColumn], screen: int, gap: int, border: int) -> tuple[list[TextColumn], int]:
    """Cut long cells, then elide columns in the middle, until a table is no wider than `screen` terminal cells.

    Each column needs `gap` cells in addition to its texts, and the whole table `border`. Returns the remaining columns,
    with a column of ellipses instead of the others, and the number of columns that were left out.
    """
    for width in (WIDEST_CELL, _NARROW_CELL):
        cut = [column.cut_cells(width) for column in columns]
        if sum(column.width + gap for column in cut) <= screen - border:
            return cut, 0
    kept = choose_columns([column.width + gap for column in cut], screen - border, len(ELLIPSIS) + gap)
    if len(kept) == len(cut):
        return cut, 0
    middle = next((place for place, column in enumerate(kept) if place != column), len(kept))
    chosen = [cut[column] for column in kept]
    dots = TextColumn(ELLIPSIS, False, (ELLIPSIS,) * len(cut[0].cells))
    return [*chosen[:middle], dots, *chosen[middle:]], len(cut) - len(kept)


def choose_columns(widths: Sequence[int], room: int, ellipsis: int) -> list[int]:
    """Choose columns alternately from both ends while they fit, and return their positions, ascending.

    The first is always chosen. `widths`, `room` (the screen) and `ellipsis` (the column of ellipses) are in terminal
    cells.
    """
    if sum(widths) <= room:
        return list(range(len(widths)))
    used, left, right = ellipsis + widths[0], 1, len(widths)
    takes_right = True
    while left < right:
        position = right - 1 if takes_right else left
        if used + widths[position] > room:
            break
        used += widths[position]
        left, right = (left, right - 1) if takes_right else (left + 1, right)
        takes_right = not takes_right
    return [*range(left), *range(right, len(widths))]


def display_width(text: str) -> int:
    """Return the number of cells that a text needs on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut_text(text: str, width: int) -> str:
    """Cut a text that is wider than allowed, and end it with an ellipsis."""
    if display_width(text) <= width:
        return text
    text = text[: width - 1]
    while display_width(text) > width - 1:
        text = text[:-1]
    return text + ELLIPSIS


def to_text_lines(columns: Sequence[TextColumn]) -> Iterator[str]:
    """Yield the lines of a table: headings, a rule, and one line for each row."""
    widths = [column.width for column in columns]
    rows = zip(*(column.cells for column in columns), strict=True)
    for cells in (tuple(column.name for column in columns), tuple("-" * width for width in widths), *rows):
        padded = (
            _pad(cell, width) + cell if column.is_numeric else cell + _pad(cell, width)
            for column, cell, width in zip(columns, cells, widths, strict=True)
        )
        yield GAP.join(padded).rstrip()


def _pad(cell: str, width: int) -> str:
    return " " * (width - display_width(cell))


def to_text_columns(rows: pa.Table) -> list[TextColumn]:
    """Render all rows as text; meant for a few rows only."""
    return [
        TextColumn(field.name, is_number(field.type), tuple(to_plain_texts(column.combine_chunks()).to_pylist()))
        for field, column in zip(rows.schema, rows.columns, strict=True)
    ]


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of the type are aligned to the right."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
