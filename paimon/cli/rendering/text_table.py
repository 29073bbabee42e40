"""Tables of plain text: lines with padded columns, and the choice of the columns that fit on a screen.

Invariant: one row is one line. Widths are in cells of a terminal, where an East Asian wide character takes two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.cli.rendering.column_texts import to_plain_texts

GAP = "  "
ELLIPSIS = "…"
WIDEST_CELL = 60
_NARROW_CELL = 24


@frozen
class TextColumn:
    """A column of a small table.

    Parameters
    ----------
    name : str
        The heading.
    is_numeric : bool
        Whether it is aligned to the right, and never cut.
    cells : tuple of str
        One text for each row.
    """

    name: str
    is_numeric: bool
    cells: tuple[str, ...]

    @property
    def width(self) -> int:
        """Width of the widest cell, the heading included."""
        return max(map(display_width, (self.name, *self.cells)))

    def cut_cells(self, width: int) -> TextColumn:
        """Cut longer texts; numbers and the heading stay whole."""
        if self.is_numeric:
            return self
        return TextColumn(self.name, False, tuple(cut_text(cell, width) for cell in self.cells))


def fit_to_screen(columns: Sequence[TextColumn], screen: int, gap: int, border: int) -> tuple[list[TextColumn], int]:
    """Cut long cells, then elide columns in the middle, until a table is no wider than a screen.

    Parameters
    ----------
    columns : sequence of TextColumn
        What is to be shown.
    screen : int
        Width of the screen.
    gap, border : int
        What each column, and the whole table, takes besides its cells.

    Returns
    -------
    list of TextColumn
        The first column, as many others as fit, and a column of ellipses in the place of the rest.
    int
        How many columns were elided.
    """
    room = screen - border
    cut = [column.cut_cells(WIDEST_CELL) for column in columns]
    if sum(column.width + gap for column in cut) <= room:
        return cut, 0
    cut = [column.cut_cells(_NARROW_CELL) for column in columns]
    kept = choose_columns([column.width + gap for column in cut], room, len(ELLIPSIS) + gap)
    if len(kept) == len(cut):
        return cut, 0
    middle = next((place for place, column in enumerate(kept) if place != column), len(kept))
    chosen = [cut[column] for column in kept]
    dots = TextColumn(ELLIPSIS, False, (ELLIPSIS,) * len(cut[0].cells))
    return [*chosen[:middle], dots, *chosen[middle:]], len(cut) - len(kept)


def choose_columns(widths: Sequence[int], room: int, ellipsis: int) -> list[int]:
    """Choose columns from both ends in turn while they fit; the first is always chosen.

    Parameters
    ----------
    widths : sequence of int
        What each column takes.
    room : int
        What there is.
    ellipsis : int
        What the column takes that stands for the others.

    Returns
    -------
    list of int
        Positions of the chosen columns, ascending.
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
    """Cells that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut_text(text: str, width: int) -> str:
    """The text, with an ellipsis at its end where it is wider than allowed."""
    if display_width(text) <= width:
        return text
    text = text[: width - 1]
    while display_width(text) > width - 1:
        text = text[:-1]
    return text + ELLIPSIS


def to_text_lines(columns: Sequence[TextColumn]) -> Iterator[str]:
    """Lay a table out: headings, a rule, one line for each row."""
    widths = [column.width for column in columns]
    rows = zip(*(column.cells for column in columns), strict=True)
    for cells in (tuple(column.name for column in columns), tuple("-" * width for width in widths), *rows):
        padded = (
            _padding(cell, width) + cell if column.is_numeric else cell + _padding(cell, width)
            for column, cell, width in zip(columns, cells, widths, strict=True)
        )
        yield GAP.join(padded).rstrip()


def _padding(cell: str, width: int) -> str:
    return " " * (width - display_width(cell))


def to_text_columns(rows: pa.Table) -> list[TextColumn]:
    """All rows as text; for few rows only."""
    return [
        TextColumn(field.name, is_number(field.type), tuple(to_plain_texts(column.combine_chunks()).to_pylist()))
        for field, column in zip(rows.schema, rows.columns, strict=True)
    ]


def is_number(kind: pa.DataType) -> bool:
    """Whether values of the type are aligned to the right."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
