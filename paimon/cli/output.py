"""Print rows and records: as a drawn table, as aligned lines, or in a format of `row_files`.

Invariant: only a few rows are drawn as a table. Many rows, and all rows for a file or a pipe, stream in pieces of
bounded size. A drawn table of rows cuts long values and elides columns in the middle; aligned lines, records and
reports of statements never do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon.cli.terminal import draw_fitted, draw_records, print_styled, show_row_count
from paimon.display.row_formats import BINARY_FORMATS, split_batches, write_rows, write_texts
from paimon.display.text_table import measure_layout, to_text_columns
from paimon.domain.errors import InvalidRequest
from paimon.domain.markup import format_count
from paimon.domain.text_layout import ELLIPSIS, TextColumn
from paimon.domain.types.arrow_arrays import make_array

if TYPE_CHECKING:  # else each command would load the writer and SQL
    from paimon.builders.direct_writes import WriteResult
    from paimon.sql.run.result import SqlResult

__all__ = [
    "TERMINAL_ROWS",
    "describe_lost_compaction",
    "print_lost_compaction",
    "print_records",
    "print_report",
    "print_rows",
    "print_with_total",
]

TERMINAL_ROWS = 40
"""How many rows of a query a terminal shows."""
_MOST_DRAWN_ROWS = 500
_ARROW_TYPES: Mapping[type, pa.DataType] = {int: pa.int64(), str: pa.string(), bool: pa.bool_(), float: pa.float64()}


def describe_lost_compaction(result: WriteResult) -> dict[str, str]:
    """Return the field of a record that reports a lost compaction, or nothing if none was lost."""
    return {"lost_compaction": result.lost_compaction.message} if result.lost_compaction is not None else {}


def print_lost_compaction(lost: Mapping[str, str]) -> None:
    """Print a line about a lost compaction, if there is one in the result of `describe_lost_compaction`."""
    for reason in lost.values():
        print(f"the rows are committed, but were not compacted: {reason}")


def print_rows(reader: pa.RecordBatchReader, output: str, most_rows: int | None = None) -> None:
    """Print all rows of a reader in an output format: `table`, `json` or one of `ROW_FORMATS`.

    With `most_rows`, a table on a terminal has only this number of rows, and the number of the others.
    """
    if output in BINARY_FORMATS and sys.stdout.isatty():
        raise InvalidRequest(
            f"Output {output!r} is binary, and the standard output is a terminal.",
            subject="output",
            hint=f"redirect it: > rows.{output}",
        )
    if output != "table":
        sys.stdout.flush()
        write_rows(reader, output, sys.stdout.buffer)
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


def print_report(rows: pa.Table, output: str) -> None:
    """Print rows of which a terminal cuts nothing, because the next command takes their names and paths."""
    if output != "table" or not sys.stdout.isatty() or rows.num_rows > _MOST_DRAWN_ROWS:
        print_rows(rows.to_reader(), output)
    else:
        draw_records(to_text_columns(rows))
        print_styled(format_count(rows.num_rows, "row"), "dim")


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
    """Render records as text, as rows of Arrow are rendered."""
    return to_text_columns(pa.table({name: _to_array([record[name] for record in records]) for name in records[0]}))


def _to_array(values: Sequence[object]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values))
    if len(kinds) == 1 and (kind := _ARROW_TYPES.get(kinds.pop())) is not None:
        return make_array(values, kind)
    try:
        return pa.array(values)
    except pa.ArrowException:  # values of several types
        return pa.array([None if value is None else str(_to_json_value(value)) for value in values])


def _to_json_value(value: object) -> object:
    """Convert a value that JSON lacks to one that it has."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


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
    for piece in split_batches(batches):
        if layout is None:
            layout = measure_layout(piece)
            print(*layout.to_heading(), sep="\n")
        sys.stdout.flush()
        write_texts(layout.to_lines(piece), sys.stdout.buffer)
        rows += piece.num_rows
    if layout is None:
        print(*measure_layout(pa.RecordBatch.from_pylist([], schema)).to_heading(), sep="\n")
    print(f"({format_count(rows, 'row')})")


def _draw_rows(rows: pa.Table, footer: str) -> None:
    columns = to_text_columns(rows)
    notes = [footer]
    if columns:
        fitted = draw_fitted(columns)
        if fitted.elided:
            notes.append(f"{len(columns) - fitted.elided} of {format_count(len(columns), 'column')}")
        if fitted.is_cut:
            notes.append(f"values with {ELLIPSIS} are cut")
        if len(notes) > 1:
            notes[-1] += ": choose columns, or see all with --output json"
    print_styled("; ".join(notes), "dim")


def has_rows(result: SqlResult) -> bool:
    """Return whether a statement returns rows, and not one sentence about what it did."""
    return result.is_query or result.arrow_schema.names != ["result"]


def print_result(result: SqlResult, output: str) -> None:
    """Print the rows of a statement; one sentence is printed as it is, unless JSON or CSV is asked for."""
    if output == "table" and not has_rows(result):
        print(result.to_arrow()["result"][0].as_py())
    elif output == "table" and result.is_text:
        print(result.to_text())
    elif result.is_query:
        print_rows(result.to_batches(), output, TERMINAL_ROWS)
    else:
        print_report(result.to_arrow(), output)
