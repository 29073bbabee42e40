"""Lay out texts for a screen of fixed-width cells: columns that fit, records as blocks, and widths of characters.

Invariant: one row of a table is one line, except that records may fold their last column. Widths are in cells of a
terminal: an East Asian wide character takes two, a combining mark none.
"""

# Rows of data and records are fitted in different ways.
#
# Rows have values of any length, and may be cut, because --output json shows them whole. Columns first share the
# screen: short ones get what they need, and long texts what is left, in equal parts. Below LEAST_CELL cells for a text
# (a number or a heading is never cut), columns in the middle are left out:
#
#     id  day         note               id  text                …  more
#     --  ----------  -----------------  --  ------------------  -  -----------
#      2  2026-01-03  a long note of t…   1  a text of many wor…  …  the last c…
#
# Records are what a command lists: tables, snapshots, columns. Their names are typed into the next command, so nothing
# is cut. If they do not fit, the words of the last column continue on the next line. If a word is too long, each record
# becomes a block of pairs:
#
#     column  type    comment            table: shop.orders_of_the_year   columns: 4
#     ------  ------  -----------------    snapshot: 7   records: 42
#     note    STRING  what a clerk wrote
#                     about the order    table: shop.x   columns: 1

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve, frozen

GAP = "  "
ELLIPSIS = "…"
NULL_SIGN = "∅"
"""Text for NULL in tables and lines; JSON has ``null``."""
LEAST_CELL = 20
"""A text is not cut to fewer cells than this."""
_PAIR_GAP = "   "
_ZERO_WIDTH = frozenset(("Mn", "Me", "Cf"))
_SOFT_HYPHEN = "\xad"
_MARKS_OF_ONE_CELL = 8


@frozen
class TextColumn:
    """A column of a small table."""

    name: str
    # whether the column is aligned to the right and never cut
    is_numeric: bool
    # None for NULL
    cells: tuple[str | None, ...]
    # the type, which a card shows below the name
    type_name: str = ""

    @property
    def width(self) -> int:
        """Width of the widest cell, the heading included."""
        return max(display_width(text) for text in (self.name, *map(to_cell, self.cells)))

    @property
    def least_width(self) -> int:
        """The width that the column has at least: that of a number, of its heading, or of a cut text."""
        return self.width if self.is_numeric else max(display_width(self.name), min(self.width, LEAST_CELL))

    def cut_cells(self, width: int) -> TextColumn:
        """Cut texts that are longer than a width; numbers and the heading are not cut."""
        if self.is_numeric:
            return self
        return evolve(self, cells=tuple(None if cell is None else cut_text(cell, width) for cell in self.cells))


@frozen
class FittedColumns:
    """Columns that are no wider than a screen, as far as numbers and headings allow it."""

    columns: tuple[TextColumn, ...]
    # how many columns in the middle were left out; a column of ellipses is in their place
    elided: int = 0
    # whether a text was cut
    is_cut: bool = False

    @property
    def width(self) -> int:
        """The cells of a line."""
        return sum(column.width for column in self.columns) + len(GAP) * (len(self.columns) - 1)


def fit_to_screen(columns: Sequence[TextColumn], screen: int) -> FittedColumns:
    """Cut long texts, then elide columns in the middle, until a table is no wider than `screen` terminal cells."""
    room, gap = screen + len(GAP), len(GAP)
    wanted = [column.width + gap for column in columns]
    if sum(wanted) <= room:
        return FittedColumns(tuple(columns))
    least = [column.least_width + gap for column in columns]
    kept = choose_columns(least, room, len(ELLIPSIS) + gap)
    elided = len(columns) - len(kept)
    room -= len(ELLIPSIS) + gap if elided else 0
    widths = share_room([wanted[i] for i in kept], [least[i] for i in kept], room)
    cut = [columns[i].cut_cells(width - gap) for i, width in zip(kept, widths, strict=True)]
    is_cut = any(column is not columns[i] and column != columns[i] for i, column in zip(kept, cut, strict=True))
    if elided:
        middle = next((place for place, column in enumerate(kept) if place != column), len(kept))
        cut.insert(middle, TextColumn(ELLIPSIS, False, (ELLIPSIS,) * len(columns[0].cells)))
    return FittedColumns(tuple(cut), elided, is_cut)


def share_room(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return a width for each column: what it wants if there is room, otherwise equal parts, but never less than least.

    >>> share_room([5, 90, 40], [5, 20, 20], 85)
    [5, 40, 40]
    """
    widths = list(least)
    left = room - sum(least)
    growing = sorted((i for i in range(len(widths)) if wanted[i] > least[i]), key=lambda i: wanted[i] - least[i])
    for place, i in enumerate(growing):
        share = max(left, 0) // (len(growing) - place)
        added = min(wanted[i] - least[i], share)
        widths[i] += added
        left -= added
    return widths


def choose_columns(widths: Sequence[int], room: int, ellipsis: int) -> list[int]:
    """Choose columns alternately from both ends while they fit `room`; the first one always. Ascending."""
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


def to_text_lines(columns: Sequence[TextColumn]) -> Iterator[str]:
    """Yield the lines of a table: headings, a rule, and one line for each row."""
    widths = [column.width for column in columns]
    rows = zip(*(map(to_cell, column.cells) for column in columns), strict=True)
    for cells in (tuple(column.name for column in columns), tuple("-" * width for width in widths), *rows):
        padded = (
            _pad(cell, width) + cell if column.is_numeric else cell + _pad(cell, width)
            for column, cell, width in zip(columns, cells, widths, strict=True)
        )
        yield GAP.join(padded).rstrip()


def to_record_lines(columns: Sequence[TextColumn], screen: int) -> list[str]:
    """Return the lines of records of which nothing is cut: a table, folded in its last column, or else blocks."""
    width = sum(column.width + len(GAP) for column in columns) - len(GAP)
    if width <= screen:
        return list(to_text_lines(columns))
    if len(columns) == 1:
        return [columns[0].name, "-" * screen, *map(to_cell, columns[0].cells)]
    last = columns[-1]
    room = screen - width + last.width
    words = [word for text in (last.name, *map(to_cell, last.cells)) for word in text.split(" ")]
    if last.is_numeric or room < max(LEAST_CELL, *map(display_width, words)):
        return list(to_blocks(columns, screen))
    return list(to_text_lines(_fold_last(columns, room)))


def _fold_last(columns: Sequence[TextColumn], width: int) -> list[TextColumn]:
    """Fold the texts of the last column, and add empty cells to the others."""
    folded = [fold_text(to_cell(cell), width) for cell in columns[-1].cells]
    others = [
        tuple(part for cell, lines in zip(c.cells, folded, strict=True) for part in (cell, *[""] * (len(lines) - 1)))
        for c in columns[:-1]
    ]
    cells = [*others, tuple(line for lines in folded for line in lines)]
    return [evolve(column, cells=parts) for column, parts in zip(columns, cells, strict=True)]


def fold_text(text: str, width: int) -> list[str]:
    """Return the lines of a text that is folded between words; a word that is longer than a line stays whole.

    >>> fold_text("what a clerk wrote about it", 12)
    ['what a clerk', 'wrote about', 'it']
    """
    lines: list[str] = []
    for word in text.split(" "):
        if lines and display_width(lines[-1]) + 1 + display_width(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def to_blocks(columns: Sequence[TextColumn], screen: int) -> Iterator[str]:
    """Yield rows as `name: value` pairs, as many on a line as fit, with blank lines between; no empty values."""
    for number, cells in enumerate(zip(*(map(to_cell, column.cells) for column in columns), strict=True)):
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


def to_cell(cell: str | None) -> str:
    """Return the text of a cell."""
    return NULL_SIGN if cell is None else cell


def display_width(text: str) -> int:
    """Return the number of cells that a text needs on a terminal."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if character.isascii() or character == _SOFT_HYPHEN:
        return 1
    # Hangul vowels and final consonants join the syllable before them.
    if unicodedata.category(character) in _ZERO_WIDTH or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut_text(text: str, width: int) -> str:
    """Cut a text that is wider than allowed, and end it with an ellipsis; marks stay with their letter.

    A path is cut at its start, because its end has the name of the file.

    >>> cut_text("a text of many words", 10), cut_text("s3://lake/shop.db/orders/data-1.parquet", 20)
    ('a text of…', '…ders/data-1.parquet')
    """
    start = text[: max(width, 8) * _MARKS_OF_ONE_CELL]  # a text of many megabytes is not measured
    if len(start) == len(text) and display_width(text) <= width:
        return text
    if start.count("/") > 1 and not any(map(str.isspace, start)):
        return ELLIPSIS + text[len(text) - _count_characters(reversed(text[-len(start) :]), width) :]
    return text[: _count_characters(start, width)] + ELLIPSIS


def _count_characters(characters: Iterable[str], width: int) -> int:
    """Count the first characters that need less than `width` cells."""
    count = used = 0
    for character in characters:
        used += _character_width(character)
        if used >= width:
            break
        count += 1
    return count


def _pad(cell: str, width: int) -> str:
    return " " * (width - display_width(cell))
