"""Lay out plain text: small tables that fit on a screen, blocks of names and values, and streams of aligned lines.

Invariant: one row of a table is one line. Widths are in cells of a terminal; an East Asian wide character takes two.
The widths of a stream are measured once, on its first rows. A longer value extends its line and is never cut.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.display.column_texts import to_plain_texts

GAP = "  "
ELLIPSIS = "…"
_PAIR_GAP = "   "
WIDEST_CELL = 60
_NARROW_CELL = 24
_MEASURED_ROWS = 1_000
"""How many rows of a stream the widths of its columns are measured on."""


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


def fits_records(columns: Sequence[TextColumn], screen: int, gap: int, border: int, folds_last: bool) -> bool:
    """Return whether records fit as a table in which nothing is cut; a text in the last column may be folded."""
    widths = [column.width for column in columns]
    if folds_last and len(widths) > 1 and not columns[-1].is_numeric:
        widths[-1] = min(widths[-1], max(_NARROW_CELL, display_width(columns[-1].name)))
    return sum(widths) + gap * len(widths) <= screen - border


def to_blocks(columns: Sequence[TextColumn], screen: int) -> Iterator[str]:
    """Yield each row as `name: value` pairs, as many on a line as fit, and an empty line between rows.

    Nothing is cut or broken, so a pair that is wider than the screen has a longer line. Empty values are left out.
    """
    for number, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if number:
            yield ""
        line = ""
        for column, cell in zip(columns, cells, strict=True):
            pair = f"{column.name}: {cell}" if cell else ""
            joined = (f"{line}{_PAIR_GAP}{pair}" if pair else line) if line else pair
            if line and display_width(joined) > screen:
                yield line
                joined = f"{GAP}{pair}"
            line = joined
        yield line


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


@frozen
class LineLayout:
    """Headings, alignment and widths of columns."""

    schema: pa.Schema
    # terminal cells that each column is padded to
    widths: tuple[int, ...]

    def to_heading(self) -> list[str]:
        """Return the line of headings and the rule below it."""
        columns = [
            TextColumn(field.name, is_number(field.type), ("-" * width,))
            for field, width in zip(self.schema, self.widths, strict=True)
        ]
        heading, _, rule = to_text_lines(columns)
        return [heading, rule]

    def to_lines(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Render each row as a line that ends with a newline, without a loop over rows."""
        if not self.widths:
            return pa.array(["\n"] * batch.num_rows, pa.string())
        cells = []
        for field, column, width in zip(self.schema, batch.columns, self.widths, strict=True):
            texts = to_plain_texts(column)
            cells.append(pc.utf8_lpad(texts, width) if is_number(field.type) else pc.utf8_rpad(texts, width))
        if not is_number(self.schema.types[-1]):
            cells[-1] = texts  # the last column needs no padding
        return pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, GAP), "\n", "")


def measure_layout(batch: pa.RecordBatch) -> LineLayout:
    """Measure the widths of columns on the first rows of a batch."""
    sample = batch.slice(0, _MEASURED_ROWS)
    widths = []
    for name, column in zip(batch.schema.names, sample.columns, strict=True):
        longest = pc.max(pc.utf8_length(to_plain_texts(column))).as_py() or 0
        widths.append(max(display_width(name), min(longest, WIDEST_CELL)))
    return LineLayout(batch.schema, tuple(widths))
