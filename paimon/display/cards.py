"""Make the cards that notebooks show of tables, scans, catalogs, results and builders.

Invariant: a card is made of values that were read before; nothing here reads files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from paimon.domain.columns.time_text import format_times
from paimon.domain.markup import (
    Column,
    format_card,
    format_count,
    format_details,
    format_grid,
    format_note,
    shorten_text,
)
from paimon.domain.scan.scan_plan import Plan
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.secrets import redact_option, redact_secrets, remove_password
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.type_text import format_type

_OPTIONS = 6
"""More options than this are folded behind a line that opens them."""
_COLUMNS = 16
"""More columns than this are folded, too."""
_MOST_COLUMNS = 1_000
_TABLES = 12
_CELL_LENGTH = 80


def table_card(definition: TableDefinition, snapshot: Snapshot | str | None) -> str:
    """Make the HTML card of a table: keys, partitions, options, snapshot, location, columns.

    `snapshot` is the latest one: None if there is none yet, a string that says why it cannot be read.
    """
    schema = definition.schema
    options = [(key, redact_option(key, value)) for key, value in sorted(definition.options.values.items())]
    listed = "\n".join(f"{key} = {shorten_text(value, _CELL_LENGTH)}" for key, value in options)
    facts = {
        "location": remove_password(definition.location),
        "snapshot": snapshot if isinstance(snapshot, str) else "none yet" if snapshot is None else snapshot.summary,
        "primary key": ", ".join(schema.primary_keys),
        "partitioned by": ", ".join(schema.partition_keys),
        "branch": definition.branch if definition.branch != "main" else "",
        "comment": schema.comment or "",
        "options": listed if len(options) <= _OPTIONS else "",
    }
    folded = format_details(
        format_count(len(options), "option"), format_grid([Column("option"), Column("value")], options)
    )
    return format_card(
        definition.table_name,
        "primary-key table" if schema.primary_keys else "append table",
        [(label, text) for label, text in facts.items() if text],
        folded if len(options) > _OPTIONS else "",
        _format_columns_grid(definition),
    )


def _format_columns_grid(definition: TableDefinition) -> str:
    schema = definition.schema
    commented = any(f.description for f in schema.fields)
    rows = []
    for field in schema.fields[:_MOST_COLUMNS]:
        roles = ["primary key"] * (field.name in schema.primary_keys)
        roles += ["partition"] * (field.name in schema.partition_keys)
        row = [field.name, format_type(field.type), ", ".join(roles)]
        rows.append([*row, field.description or ""] if commented else row)
    heads = [Column("column"), Column("type"), Column(""), *([Column("comment")] if commented else [])]
    grid = format_grid(heads, rows)
    return format_details(format_count(len(rows), "column"), grid) if len(rows) > _COLUMNS else grid


MORE_ROWS = "head(n) returns more"
"""The note on a card that shows the first rows of several."""


def scan_card(
    title: str, arguments: Mapping[str, object], plan: Plan | str, preview: tuple[pa.Table, int, str] | str
) -> str:
    """Make the HTML card of a scan: its arguments, what it reads, and its first rows.

    `preview` has the first rows, how many columns in their middle are left out, and how to get more rows. A string as
    `plan` or `preview` says why it is not known.
    """
    facts = [(name, _format_argument(value)) for name, value in arguments.items()]
    if isinstance(plan, Plan):
        facts += [("snapshot", "none yet" if plan.snapshot is None else plan.snapshot.summary), ("reads", plan.summary)]
    else:
        facts += [("plan", plan)]
    if isinstance(preview, str):
        return format_card(title, "Scan", facts, *([format_note(f"preview: {preview}")] if preview != plan else []))
    return format_card(title, "Scan", facts, _format_rows_grid(*preview))


def result_card(title: str, rows: pa.Table | str, most: int) -> str:
    """Make the HTML card of the result of a statement: its first rows, or a string that says why there are none.

    `rows` has one row more than the `most` that are shown, if the result has more.
    """
    if isinstance(rows, str):
        body = format_note(rows)
    else:
        body = _format_rows_grid(rows.slice(0, most), 0, MORE_ROWS if rows.num_rows > most else "")
    return format_card(redact_secrets(title, {}), "Result", [], body)


def _format_rows_grid(rows: pa.Table, left_out: int, more: str) -> str:
    columns = [Column(f.name, str(f.type), _is_number(f.type)) for f in rows.schema]
    cells = [[_format_cell(value) for value in column] for column in rows.columns]
    if left_out:
        columns.insert(len(columns) // 2, Column("…"))
        cells.insert(len(cells) // 2, ["…"] * rows.num_rows)
    shown = format_count(rows.num_rows, "row") if rows.num_rows else "no rows"
    notes = [f"the first {shown}, {more}" if more else shown]
    notes += [f"{format_count(left_out, 'column')} in the middle left out"] if left_out else []
    return format_grid(columns, list(zip(*cells, strict=True))) + format_note("; ".join(notes))


def catalog_card(warehouse: str, databases: Mapping[str, Sequence[str] | str] | str, left_out: int) -> str:
    """Make the HTML card of a catalog: its table names by database. A string says why they are not known.

    `left_out` counts the databases that are not listed.
    """
    location = remove_password(warehouse)
    if isinstance(databases, str):
        return format_card(location, "Catalog", [("databases", databases)])
    rows = [[name, *_format_table_names(tables)] for name, tables in databases.items()]
    grid = format_grid([Column("database"), Column("tables", is_number=True), Column("")], rows)
    notes = format_note(f"and {format_count(left_out, 'more database')}") if left_out else ""
    return format_card(location, "Catalog", [], grid if rows else format_note("no databases yet"), notes)


def _format_table_names(tables: Sequence[str] | str) -> list[str]:
    if isinstance(tables, str):
        return ["?", tables]
    more = [f"and {len(tables) - _TABLES:,} more"] if len(tables) > _TABLES else []
    return [f"{len(tables):,}", ", ".join([*tables[:_TABLES], *more])]


def arguments_card(kind: str, title: str, arguments: Mapping[str, object]) -> str:
    """Make the HTML card of an object that only holds arguments, such as a builder.

    `kind` is the name of its class, and `title` that of its table.
    """
    return format_card(title, kind, [(name, _format_argument(value)) for name, value in arguments.items()])


def _format_argument(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return redact_secrets(text, {})


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _format_cell(value: Any) -> str | None:
    """Return a value as a short text. A value that Python types cannot hold is shown as Arrow writes it."""
    if not value.is_valid:
        return None
    try:
        if pa.types.is_date(value.type) or pa.types.is_timestamp(value.type):
            return str(format_times(pa.array([value]))[0].as_py())
        if pa.types.is_temporal(value.type):
            return str(value.cast(pa.string()).as_py())
        found = value.as_py()
    except (pa.ArrowException, ValueError, OverflowError, UnicodeDecodeError):
        return "?"
    if isinstance(found, bytes):
        return shorten_text(f"0x{found[:_CELL_LENGTH].hex()}", _CELL_LENGTH)
    return shorten_text(str(found), _CELL_LENGTH)
