"""Rows on the terminal: as a drawn table, as JSON lines, as CSV.

Law: JSON lines hold every value exactly (decimals, times, binary values and what JSON lacks as text); the drawn table
may cut long ones.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import csv

from paimon.cli.progress import counted
from paimon.domain.errors import InvalidRequest
from paimon.table import WriteResult

_WIDEST = 60
_PIPE_WIDTH = 1_000
"""Columns of a drawn table that goes to a file or a pipe, where nothing should be cut to a screen."""


def console() -> Any:
    """A rich console; InvalidRequest where rich is not installed."""
    _need_rich()
    from rich.console import Console

    return Console(soft_wrap=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


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
    numeric = [all(isinstance(r[name], int | float | None) for r in listed) for name in listed[0]]
    grid = _grid(list(listed[0]), numeric, title)
    for record in listed:
        grid.add_row(*(_cell(v) for v in record.values()))
    console().print(grid)


def json_lines(reader: pa.RecordBatchReader) -> Iterator[str]:
    """Each row as one JSON object."""
    exact = pa.schema([pa.field(f.name, _exact(f.type)) for f in reader.schema])
    for batch in reader:
        for row in batch.cast(exact).to_pylist():
            yield _json(row)


def _json(row: Mapping[str, object]) -> str:
    try:
        return json.dumps(row, ensure_ascii=False, default=plain, allow_nan=False)
    except ValueError:
        return json.dumps(_without_nan(row), ensure_ascii=False, default=plain)


def _without_nan(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _without_nan(held) for key, held in value.items()}
    return [_without_nan(held) for held in value] if isinstance(value, list | tuple) else value


def _exact(kind: pa.DataType) -> pa.DataType:
    """The type with texts for dates and timestamps, which Python's own cannot all hold."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_exact(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_exact(kind.key_type), _exact(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _exact(f.type)) for f in kind])
    return kind


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
    sys.stdout.flush()
    with csv.CSVWriter(sys.stdout.buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            sys.stdout.buffer.flush()


def _print_table(reader: pa.RecordBatchReader) -> None:
    numeric = [_is_number(f.type) for f in reader.schema]
    grid = _grid(reader.schema.names, numeric)
    exact = pa.schema([pa.field(f.name, _exact(f.type)) for f in reader.schema])
    rows = 0
    for batch in counted(reader, "reading"):
        rows += batch.num_rows
        for row in batch.cast(exact).to_pylist():
            grid.add_row(*(_cell(v) for v in row.values()))
    screen = console()
    screen.print(grid)
    screen.print(f"{rows:,} row{'' if rows == 1 else 's'}", style="dim")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _grid(names: Sequence[str], numeric: Sequence[bool], title: str | None = None) -> Any:
    _need_rich()
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid(title=title and escape(title), title_justify="left")
    for name, number in zip(names, numeric, strict=True):
        grid.add_column(escape(name), justify="right" if number else "left", no_wrap=number)
    return grid


def _need_rich() -> None:
    try:
        import rich  # noqa: F401
    except ModuleNotFoundError as missing:
        raise InvalidRequest(
            "drawn tables need rich", subject="rich", hint="pip install 'paimon-lake[cli]', or ask for --output json"
        ) from missing


def _cell(value: object) -> str:
    from rich.markup import escape

    return escape(_shown(value))


def _shown(value: object) -> str:
    if value is None:
        return "∅"
    if isinstance(value, str):
        text = value
    elif isinstance(value, dict | list):
        text = _json_text(value)
    else:
        text = str(value) if isinstance(value, int | float) else str(plain(value))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _json_text(value: object) -> str:
    return json.dumps(_without_nan(value), ensure_ascii=False, default=plain)
