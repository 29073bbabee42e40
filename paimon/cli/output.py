"""Print rows and records: as a drawn table, as aligned lines, as JSON lines, or as CSV.

Invariant: only a few rows are drawn as a table. Many rows, and all rows for a file or a pipe, stream in pieces of
bounded size. JSON lines contain every value exactly. A drawn table of rows cuts long values and elides columns in the
middle; aligned lines, and on a terminal records and reports of statements, never do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
from pyarrow import csv

from paimon.builders.direct_writes import WriteResult
from paimon.cli.terminal import console, draw_fitted, draw_records, show_row_count
from paimon.display.column_texts import NULL_SIGN, to_json_lines, to_plain_texts
from paimon.display.text_table import ELLIPSIS, WIDEST_CELL, TextColumn, cut_text, measure_layout, to_text_columns
from paimon.domain.columns.time_text import has_far_times
from paimon.domain.errors import InvalidRequest
from paimon.domain.markup import format_count
from paimon.sql.run.result import SqlResult, split_lines

__all__ = [
    "TERMINAL_ROWS",
    "console",
    "describe_lost_compaction",
    "print_lost_compaction",
    "print_records",
    "print_rows",
    "print_with_total",
]

TERMINAL_ROWS = 40
"""How many rows of a query a terminal shows."""
_MOST_DRAWN_ROWS = 500
_PIECE_BYTES = 4 * 1024 * 1024
_MARKUP_BYTES = 32
"""Approximate bytes that the name of a column, or its padding, adds to a value."""


def describe_lost_compaction(result: WriteResult) -> dict[str, str]:
    """Return the field of a record that reports a lost compaction, or nothing if none was lost."""
    return {"lost_compaction": result.lost_compaction.message} if result.lost_compaction is not None else {}


def print_lost_compaction(lost: Mapping[str, str]) -> None:
    """Print a line about a lost compaction, if there is one in the result of `describe_lost_compaction`."""
    for reason in lost.values():
        print(f"the rows are committed, but were not compacted: {reason}")


def print_rows(reader: pa.RecordBatchReader, output: str, most_rows: int | None = None) -> None:
    """Print all rows of a reader in an output format: `table`, `json` or `csv`.

    With `most_rows`, a table on a terminal has only this number of rows, and the number of the others.
    """
    if output == "json":
        for piece in _split_batches(reader):
            _write_texts(to_json_lines(piece))
    elif output == "csv":
        _print_csv(reader)
    elif most_rows is not None and sys.stdout.isatty():
        _print_first_rows(reader, most_rows)
    else:
        _print_table(reader)


def _print_first_rows(reader: pa.RecordBatchReader, most_rows: int) -> None:
    """Draw the first rows, then count the others, which are read and dropped."""
    batches = show_row_count(reader, "reading")
    first: list[pa.RecordBatch] = []
    total = 0
    for batch in batches:
        if total < most_rows:
            first.append(batch.slice(0, most_rows - total))
        total += batch.num_rows
    more = f"{ELLIPSIS} {format_count(total - most_rows, 'more row')}, {total:,} in total"
    _draw_rows(pa.Table.from_batches(first, reader.schema), more if total > most_rows else format_count(total, "row"))


def print_with_total(reader: pa.RecordBatchReader, limit: int, describe_total: Callable[[], str]) -> None:
    """Draw the first rows on a terminal, then print the total and the options that show more.

    `reader` has at least the first `limit` + 1 rows, of which `limit` are drawn. `describe_total` returns a text with
    the number of all rows, and is called only if some rows are not drawn.
    """
    rows = reader.read_all()
    if rows.num_rows <= limit:
        _draw_rows(rows, format_count(rows.num_rows, "row"))
    else:
        _draw_rows(rows.slice(0, limit), f"{limit:,} of {describe_total()}: see more with --limit N or --all")


def print_records(
    records: Iterable[Mapping[str, object]],
    output: str,
    title: str | None = None,
    most_rows: int | None = None,
    shows_last: bool = False,
) -> None:
    """Print a few records, which all have the same column names, as a table or as JSON.

    In JSON, blanks in names become underscores. `title` is the heading of the table; without records it is printed with
    ``none``. On a terminal, a table has at most `most_rows`, the last ones if `shows_last`, and the number of the
    others.
    """
    listed = list(records)
    if output == "json":
        for record in listed:
            named = {name.replace(" ", "_"): value for name, value in record.items()}
            print(json.dumps(named, ensure_ascii=False, default=_to_json_value))
    elif not listed:
        print(f"{title or 'rows'}: none")
    else:
        hidden = 0
        if most_rows is not None and sys.stdout.isatty():
            hidden = max(len(listed) - most_rows, 0)
            listed = listed[hidden:] if shows_last else listed[: len(listed) - hidden]
        draw_records(_to_record_columns(listed), title)
        if hidden:
            more = format_count(hidden, "earlier row" if shows_last else "more row")
            print(f"{ELLIPSIS} {more}, {hidden + len(listed):,} in total: see all with --output json")


def _to_record_columns(records: Sequence[Mapping[str, object]]) -> list[TextColumn]:
    """Render records as text; a terminal shows whole texts, a pipe gets lines of limited width."""
    most = None if sys.stdout.isatty() else WIDEST_CELL
    return [
        TextColumn(
            name,
            all(isinstance(record[name], int | float | None) for record in records),
            tuple(_format_cell(record[name], most) for record in records),
        )
        for name in records[0]
    ]


def _to_json_value(value: object) -> object:
    """Convert a value that JSON lacks to one that it has."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _format_cell(value: object, most: int | None) -> str:
    if value is None:
        return NULL_SIGN
    nested = isinstance(value, dict | list)
    text = json.dumps(value, ensure_ascii=False, default=_to_json_value) if nested else str(_to_json_value(value))
    if most is not None:
        return cut_text(text, most)
    return text if text.isprintable() else str(to_plain_texts(pa.array([text]))[0].as_py())


def _split_batches(reader: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches whose text needs little memory."""
    for batch in reader:
        row_bytes = batch.nbytes // max(batch.num_rows, 1) + _MARKUP_BYTES * batch.num_columns
        step = max(1, _PIECE_BYTES // max(row_bytes, 1))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _write_texts(texts: pa.StringArray) -> None:
    """Write the texts one after the other, directly from Arrow's memory."""
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
            f"Column {nested[0]!r} has a type that CSV cannot represent.",
            subject=nested[0],
            hint="leave it out with --columns, or use --output json",
        )
    sys.stdout.flush()
    with csv.CSVWriter(sys.stdout.buffer, reader.schema) as writer:
        for batch in reader:
            _check_csv_times(batch)
            writer.write_batch(batch)
            sys.stdout.buffer.flush()


def _check_csv_times(batch: pa.RecordBatch) -> None:
    for column, array in zip(batch.schema, batch.columns, strict=True):
        is_time = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
        if is_time and has_far_times(array):
            raise InvalidRequest(
                f"Column {column.name!r} has a year of more than four digits, which CSV cannot represent.",
                subject=column.name,
                hint="leave it out with --columns, or use --output json",
            )


def _print_table(reader: pa.RecordBatchReader) -> None:
    """Draw a few rows on a terminal; print many rows, and rows for a file or a pipe, as lines."""
    if not sys.stdout.isatty():
        _print_lines(show_row_count(reader, "reading"), reader.schema)
        return
    first: list[pa.RecordBatch] = []
    rows = 0
    batches = iter(reader)
    for batch in batches:
        first.append(batch)
        rows += batch.num_rows
        if rows > _MOST_DRAWN_ROWS:
            _print_lines(_chain_batches(first, batches), reader.schema)
            return
    _draw_rows(pa.Table.from_batches(first, reader.schema), format_count(rows, "row"))


def _chain_batches(first: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while first:
        yield first.pop(0)
    yield from rest


def _print_lines(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    layout, rows = None, 0
    for piece in _split_batches(batches):
        if layout is None:
            layout = measure_layout(piece)
            print(*layout.to_heading(), sep="\n")
        _write_texts(layout.to_lines(piece))
        rows += piece.num_rows
    if layout is None:
        print(*measure_layout(pa.RecordBatch.from_pylist([], schema)).to_heading(), sep="\n")
    print(f"({format_count(rows, 'row')})")


def _draw_rows(rows: pa.Table, footer: str) -> None:
    columns = to_text_columns(rows)
    elided = draw_fitted(columns) if columns else 0
    screen = console()
    screen.print(footer, style="dim", highlight=False)
    if elided:
        shown = f"{len(columns) - elided} of {format_count(len(columns), 'column')}"
        screen.print(f"{shown}: choose with --columns A,B, or see all with --output json", style="dim", highlight=False)


def print_result(result: SqlResult, output: str) -> None:
    """Print the rows of a statement; one sentence is printed as it is, unless JSON or CSV is asked for."""
    if output == "table" and result.arrow_schema.names == ["result"] and not result.is_query:
        print(result.to_arrow()["result"][0].as_py())
    elif result.is_query:
        print_rows(result.to_batches(), output, TERMINAL_ROWS)
    elif output == "table" and sys.stdout.isatty():
        rows = result.to_arrow()
        draw_records(to_text_columns(split_lines(rows)))
        console().print(format_count(rows.num_rows, "row"), style="dim", highlight=False)
    else:
        rows = result.to_arrow()
        print_rows((split_lines(rows) if output == "table" else rows).to_reader(), output)
