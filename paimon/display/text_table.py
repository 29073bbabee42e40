"""Lay out Arrow rows as plain text: the columns of small tables, and streams of aligned lines.

Invariant: one row is one line. The widths of a stream are measured once, on its first rows. A longer value extends its
line and is never cut.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.display.column_texts import text_scalar, to_plain_texts
from paimon.domain.text_layout import GAP, TextColumn, display_width, to_text_lines
from paimon.domain.types.arrow_arrays import make_array, make_scalar

_WIDEST_CELL = 60
"""A column of a stream is not padded to more than this; a drawn table has its own limits."""
_ZERO = make_scalar(0, pa.int32())
_SURROGATES = (0xD800, 0xE000)
_MEASURED_ROWS = 1_000
"""How many rows of a stream the widths of its columns are measured on."""


def to_text_columns(rows: pa.Table) -> list[TextColumn]:
    """Render all rows as text; meant for a few rows only."""
    names = to_plain_texts(make_array(rows.column_names, pa.string())).to_pylist()
    columns = []
    for name, column in zip(names, rows.columns, strict=True):
        array = column.combine_chunks()
        texts = to_plain_texts(array).to_pylist()
        if array.null_count:
            texts = [text if valid else None for text, valid in zip(texts, array.is_valid().to_pylist(), strict=True)]
        columns.append(TextColumn(name, is_number(column.type), tuple(texts), str(column.type)))
    return columns


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of the type are aligned to the right."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def measure_widths(texts: pa.StringArray) -> pa.Int32Array:
    """Return what `display_width` returns for each text, without a loop over them."""
    lengths = pc.utf8_length(texts)
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return lengths
    wide, zero = _width_patterns()
    extra = pc.subtract(pc.count_substring_regex(texts, wide), pc.count_substring_regex(texts, zero))
    return pc.add(lengths, extra)


@cache
def _width_patterns() -> tuple[str, str]:
    """Return patterns of the characters that take two cells, and of those that take none."""
    ranges: dict[int, list[list[int]]] = {0: [], 1: [], 2: []}
    for code in (*range(0x80, _SURROGATES[0]), *range(_SURROGATES[1], 0x40000), *range(0xE0000, 0xE0200)):
        found = ranges[display_width(chr(code))]
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    wide, zero = ("".join(f"\\x{{{a:x}}}-\\x{{{b:x}}}" for a, b in ranges[width]) for width in (2, 0))
    return f"[{wide}]", f"[{zero}]"


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
            return make_array(["\n"] * batch.num_rows, pa.string())
        cells = []
        for field, column, width in zip(self.schema, batch.columns, self.widths, strict=True):
            texts = to_plain_texts(column)
            missing = pc.subtract(make_scalar(width, pa.int32()), measure_widths(texts))
            blanks = pc.binary_repeat(text_scalar(" "), pc.max_element_wise(missing, _ZERO))
            padded = (blanks, texts) if is_number(field.type) else (texts, blanks)
            cells.append(pc.binary_join_element_wise(*padded, text_scalar("")))
        if not is_number(self.schema.types[-1]):
            cells[-1] = texts  # the last column needs no padding
        lines = pc.binary_join_element_wise(*cells, text_scalar(GAP))
        return pc.binary_join_element_wise(lines, text_scalar("\n"), text_scalar(""))


def measure_layout(batch: pa.RecordBatch) -> LineLayout:
    """Measure the widths of columns on the first rows of a batch."""
    sample = batch.slice(0, _MEASURED_ROWS)
    widths = []
    for name, column in zip(batch.schema.names, sample.columns, strict=True):
        longest = pc.max(measure_widths(to_plain_texts(column))).as_py() or 0
        widths.append(max(display_width(name), min(longest, _WIDEST_CELL)))
    return LineLayout(batch.schema, tuple(widths))
