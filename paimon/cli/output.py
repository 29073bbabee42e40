"""Rows and records on the terminal: as a drawn table, as aligned lines, as JSON lines, as CSV.

Invariant: only few rows are drawn; more of them, and all that goes to a file or a pipe, stream in pieces of bounded
size. JSON lines hold every value exactly; a drawn table may cut long ones, aligned lines never do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
from pyarrow import csv

from paimon.cli.progress import counted
from paimon.cli.rendering.column_texts import NULL_SIGN, to_json_lines
from paimon.cli.rendering.line_layout import measure_layout
from paimon.cli.rendering.terminal import console, draw_columns, draw_fitted
from paimon.cli.rendering.text_table import WIDEST_CELL, TextColumn, cut_text, to_text_columns
from paimon.domain.errors import InvalidRequest
from paimon.table import WriteResult

__all__ = ["console", "lost_compaction", "print_lost", "print_records", "print_rows", "print_with_total", "quantity"]

_MOST_DRAWN_ROWS = 500
_PIECE_BYTES = 4 * 1024 * 1024
_MARKUP_BYTES = 32
"""What the name of a column, or its padding, adds to a value, roughly."""


def lost_compaction(result: WriteResult) -> dict[str, str]:
    """What a record tells of a write whose compaction was lost; nothing where it was not."""
    return {"lost_compaction": result.lost_compaction.message} if result.lost_compaction is not None else {}


def print_lost(lost: Mapping[str, str]) -> None:
    """The same, for readers."""
    for why in lost.values():
        print(f"the rows stand, but were not compacted: {why}")


def print_rows(reader: pa.RecordBatchReader, output: str) -> None:
    """Print all rows of a reader in the form that was asked for."""
    if output == "json":
        for piece in _pieces(reader):
            _write_texts(to_json_lines(piece))
    elif output == "csv":
        _print_csv(reader)
    else:
        _print_table(reader)


def print_with_total(reader: pa.RecordBatchReader, most: int, total: Callable[[], str]) -> None:
    """Draw the first rows on a terminal, and say how many there are and how to see them.

    Parameters
    ----------
    reader : pyarrow.RecordBatchReader
        At least one row more than are drawn, if there are so many.
    most : int
        How many rows are drawn.
    total : callable
        Describes the number of all rows; called only where some are not drawn.
    """
    rows = reader.read_all()
    if rows.num_rows <= most:
        _draw_rows(rows, quantity(rows.num_rows, "row"))
    else:
        _draw_rows(rows.slice(0, most), f"{most:,} of {total()}: see more by --limit N or --all")


def print_records(records: Iterable[Mapping[str, object]], output: str, title: str | None = None) -> None:
    """Print plain records, all with the same keys; in JSON, blanks of keys become underscores."""
    listed = list(records)
    if output == "json":
        for record in listed:
            named = {name.replace(" ", "_"): value for name, value in record.items()}
            print(json.dumps(named, ensure_ascii=False, default=_plain))
    elif not listed:
        print(f"{title or 'rows'}: none")
    else:
        columns = [
            TextColumn(
                name,
                all(isinstance(record[name], int | float | None) for record in listed),
                tuple(_cell(record[name]) for record in listed),
            )
            for name in listed[0]
        ]
        draw_columns(columns, title)


def quantity(count: int, what: str) -> str:
    """A number of things, such as ``1 row`` and ``1,234 rows``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _plain(value: object) -> object:
    """A value that JSON does not know, as one that it does."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _cell(value: object) -> str:
    if value is None:
        return NULL_SIGN
    nested = isinstance(value, dict | list)
    text = json.dumps(value, ensure_ascii=False, default=_plain) if nested else str(_plain(value))
    return cut_text(text, WIDEST_CELL)


def _pieces(reader: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in batches whose text takes little memory."""
    for batch in reader:
        row_bytes = batch.nbytes // max(batch.num_rows, 1) + _MARKUP_BYTES * batch.num_columns
        step = max(1, _PIECE_BYTES // max(row_bytes, 1))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _write_texts(texts: pa.StringArray) -> None:
    """Write the texts one after the other, straight from Arrow's memory."""
    if not len(texts):
        return
    _, ends, data = texts.buffers()
    offsets = pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, ends], offset=texts.offset)
    sys.stdout.flush()
    if data is not None:
        sys.stdout.buffer.write(memoryview(data)[offsets[0].as_py() : offsets[-1].as_py()])
    sys.stdout.buffer.flush()


def _print_csv(reader: pa.RecordBatchReader) -> None:
    nested = [f.name for f in reader.schema if pa.types.is_nested(f.type) or pa.types.is_binary(f.type)]
    if nested:
        raise InvalidRequest(
            f"column {nested[0]!r} has no CSV form",
            subject=nested[0],
            hint="leave it out by --columns, or use --output json",
        )
    sys.stdout.flush()
    with csv.CSVWriter(sys.stdout.buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            sys.stdout.buffer.flush()


def _print_table(reader: pa.RecordBatchReader) -> None:
    """Draw few rows on a terminal; stream lines where they are many, or go elsewhere."""
    if not sys.stdout.isatty():
        _print_lines(counted(reader, "reading"), reader.schema)
        return
    first: list[pa.RecordBatch] = []
    rows = 0
    batches = iter(reader)
    for batch in batches:
        first.append(batch)
        rows += batch.num_rows
        if rows > _MOST_DRAWN_ROWS:
            _print_lines(_chained(first, batches), reader.schema)
            return
    _draw_rows(pa.Table.from_batches(first, reader.schema), quantity(rows, "row"))


def _chained(first: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while first:
        yield first.pop(0)
    yield from rest


def _print_lines(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    layout, rows = None, 0
    for piece in _pieces(batches):
        if layout is None:
            layout = measure_layout(piece)
            print(*layout.to_heading(), sep="\n")
        _write_texts(layout.to_lines(piece))
        rows += piece.num_rows
    if layout is None:
        print(*measure_layout(pa.RecordBatch.from_pylist([], schema)).to_heading(), sep="\n")
    print(f"({quantity(rows, 'row')})")


def _draw_rows(rows: pa.Table, footer: str) -> None:
    columns = to_text_columns(rows)
    elided = draw_fitted(columns) if columns else 0
    screen = console()
    screen.print(footer, style="dim", highlight=False)
    if elided:
        shown = f"{len(columns) - elided} of {quantity(len(columns), 'column')}"
        screen.print(f"{shown}: choose by --columns A,B, or see all by --output json", style="dim", highlight=False)
