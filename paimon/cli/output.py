"""Print rows and records: as a drawn table, as aligned lines, as JSON lines, or as CSV.

Invariant: only a few rows are drawn as a table. Many rows, and all rows for a file or a pipe, stream in pieces of
bounded size. JSON lines contain every value exactly. A drawn table cuts long values; aligned lines never do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
from pyarrow import csv

from paimon.builders.direct_writes import WriteResult
from paimon.cli.terminal import console, draw_columns, draw_fitted, show_row_count
from paimon.display.column_texts import NULL_SIGN, to_json_lines
from paimon.display.text_table import WIDEST_CELL, TextColumn, cut_text, measure_layout, to_text_columns
from paimon.domain.columns.time_text import has_far_times
from paimon.domain.errors import InvalidRequest
from paimon.domain.markup import format_count
from paimon.sql.run.result import SqlResult, split_lines

__all__ = [
    "console",
    "describe_lost_compaction",
    "print_lost_compaction",
    "print_records",
    "print_rows",
    "print_with_total",
]

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


def print_rows(reader: pa.RecordBatchReader, output: str) -> None:
    """Print all rows of a reader in an output format: `table`, `json` or `csv`."""
    if output == "json":
        for piece in _split_batches(reader):
            _write_texts(to_json_lines(piece))
    elif output == "csv":
        _print_csv(reader)
    else:
        _print_table(reader)


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


def print_records(records: Iterable[Mapping[str, object]], output: str, title: str | None = None) -> None:
    """Print a few records, which all have the same column names, as a table or as JSON.

    In JSON, blanks in names become underscores. `title` is the heading of the table; without records it is printed with
    ``none``.
    """
    listed = list(records)
    if output == "json":
        for record in listed:
            named = {name.replace(" ", "_"): value for name, value in record.items()}
            print(json.dumps(named, ensure_ascii=False, default=_to_json_value))
    elif not listed:
        print(f"{title or 'rows'}: none")
    else:
        columns = [
            TextColumn(
                name,
                all(isinstance(record[name], int | float | None) for record in listed),
                tuple(_format_cell(record[name]) for record in listed),
            )
            for name in listed[0]
        ]
        draw_columns(columns, title)


def _to_json_value(value: object) -> object:
    """Convert a value that JSON lacks to one that it has."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _format_cell(value: object) -> str:
    if value is None:
        return NULL_SIGN
    nested = isinstance(value, dict | list)
    text = json.dumps(value, ensure_ascii=False, default=_to_json_value) if nested else str(_to_json_value(value))
    return cut_text(text, WIDEST_CELL)


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
        print_rows(result.to_batches(), output)
    else:
        rows = result.to_arrow()
        print_rows((split_lines(rows) if output == "table" else rows).to_reader(), output)
