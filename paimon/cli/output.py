"""Rows on the terminal: as a drawn table, as JSON lines, as CSV.

Law: JSON lines hold every value exactly (decimals, times and binary values as text); the drawn table may cut long ones.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import csv

from paimon.domain.errors import InvalidRequest

_WIDEST = 60


def console() -> Any:
    """A rich console; InvalidRequest where rich is not installed."""
    try:
        from rich.console import Console
    except ModuleNotFoundError as missing:
        raise InvalidRequest(
            "drawn tables need rich", hint="pip install 'paimon-lake[cli]', or ask for --output json"
        ) from missing
    return Console()


def print_rows(reader: pa.RecordBatchReader, output: str) -> None:
    """Print all rows of a reader in the form that was asked for."""
    if output == "json":
        for line in json_lines(reader):
            print(line)
    elif output == "csv":
        _print_csv(reader)
    else:
        _print_table(reader)


def print_records(records: Iterable[Mapping[str, object]], output: str, title: str | None = None) -> None:
    """Print plain records, all with the same keys."""
    listed = list(records)
    if output == "json":
        for record in listed:
            print(json.dumps(record, ensure_ascii=False, default=plain))
        return
    if not listed:
        print(f"{title or 'rows'}: none")
        return
    from rich.table import Table as Grid

    grid = Grid(title=title, title_justify="left")
    for name, value in listed[0].items():
        grid.add_column(name, justify="right" if isinstance(value, int | float) else "left")
    for record in listed:
        grid.add_row(*(_shown(v) for v in record.values()))
    console().print(grid)


def json_lines(reader: pa.RecordBatchReader) -> Iterator[str]:
    """Each row as one JSON object."""
    for batch in reader:
        for row in batch.to_pylist():
            yield json.dumps(row, ensure_ascii=False, default=plain)


def plain(value: object) -> object:
    """A value that JSON does not know, as one that it does."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value)


def _print_csv(reader: pa.RecordBatchReader) -> None:
    nested = [f.name for f in reader.schema if pa.types.is_nested(f.type) or pa.types.is_binary(f.type)]
    if nested:
        raise InvalidRequest(
            f"column {nested[0]!r} has no CSV form",
            subject=nested[0],
            hint="leave it out by --columns, or use --output json",
        )
    with csv.CSVWriter(sys.stdout.buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _print_table(reader: pa.RecordBatchReader) -> None:
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid()
    for field in reader.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        grid.add_column(escape(field.name), justify="right" if number else "left")
    rows = 0
    for batch in reader:
        rows += batch.num_rows
        for row in batch.to_pylist():
            grid.add_row(*(escape(_shown(v)) for v in row.values()))
    screen = console()
    screen.print(grid)
    screen.print(f"{rows:,} row{'' if rows == 1 else 's'}", style="dim")


def _shown(value: object) -> str:
    if value is None:
        return "∅"
    if isinstance(value, str):
        text = value
    elif isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, default=plain)
    else:
        text = str(plain(value)) if not isinstance(value, int | float) else str(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
