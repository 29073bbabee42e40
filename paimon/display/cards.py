"""Describe tables, scans, catalogs and rows as reports, of which notebooks show cards.

Invariant: a report is made of values that were read before; nothing here reads files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from paimon.display.text_table import to_text_columns
from paimon.domain.markup import format_count, shorten_text
from paimon.domain.report import Grid, Lines, Report
from paimon.domain.scan.scan_plan import Plan
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.secrets import redact_option, redact_secrets, remove_password
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.text_layout import ELLIPSIS, TextColumn
from paimon.domain.types.type_text import format_type

PREVIEW_ROWS = 10
PREVIEW_COLUMNS = 20
"""What a card shows of rows."""
_OPTIONS = 6
"""More options than this are folded behind a line that opens them."""
_COLUMNS = 16
"""More columns than this are folded, too."""
_MOST_COLUMNS = 1_000
_TABLES = 12
_OPTION_LENGTH = 80


def report_table(definition: TableDefinition, snapshot: Snapshot | str | None) -> Report:
    """Describe a table; `snapshot` is the latest one, None if there is none, or why it is unknown."""
    schema = definition.schema
    options = [(key, redact_option(key, value)) for key, value in sorted(definition.options.values.items())]
    listed = "\n".join(f"{key} = {shorten_text(value, _OPTION_LENGTH)}" for key, value in options)
    facts = {
        "location": remove_password(definition.location),
        "snapshot": snapshot if isinstance(snapshot, str) else "none yet" if snapshot is None else snapshot.summary,
        "primary key": ", ".join(schema.primary_keys),
        "partitioned by": ", ".join(schema.partition_keys),
        "branch": definition.branch if definition.branch != "main" else "",
        "comment": schema.comment or "",
        "options": listed if len(options) <= _OPTIONS else "",
    }
    folded = _make_grid(["option", "value"], options, format_count(len(options), "option"))
    return Report(
        definition.table_name,
        "primary-key table" if schema.primary_keys else "append table",
        facts.items(),
        (*((folded,) if len(options) > _OPTIONS else ()), _make_columns_grid(definition)),
    )


def _make_columns_grid(definition: TableDefinition) -> Grid:
    schema = definition.schema
    rows = []
    for field in schema.fields[:_MOST_COLUMNS]:
        roles = ["primary key"] * (field.name in schema.primary_keys)
        roles += ["partition"] * (field.name in schema.partition_keys)
        rows.append([field.name, format_type(field.type), ", ".join(roles), field.description or ""])
    names = ["column", "type", "", "comment"] if any(row[-1] for row in rows) else ["column", "type", ""]
    return _make_grid(names, rows, format_count(len(rows), "column") if len(rows) > _COLUMNS else "")


def _make_grid(names: Sequence[str], rows: Sequence[Sequence[str]], summary: str = "") -> Grid:
    """Make a grid of the first texts of each row."""
    columns = (TextColumn(name, False, tuple(row[n] for row in rows)) for n, name in enumerate(names))
    return Grid(tuple(columns), summary)


MORE_ROWS = "head(n) returns more"
"""The note on a card that shows the first rows of several."""


def report_scan(
    title: str, arguments: Mapping[str, object], plan: Plan | str, preview: tuple[pa.Table, int, str] | str
) -> Report:
    """Describe a scan: its arguments, what it reads, and its first rows.

    `preview` has the first rows, how many columns in their middle are left out, and how to get more rows. A string as
    `plan` or `preview` says why it is not known.
    """
    facts = list(_format_arguments(arguments))
    if isinstance(plan, Plan):
        facts += [("snapshot", "none yet" if plan.snapshot is None else plan.snapshot.summary), ("reads", plan.summary)]
    else:
        facts += [("plan", plan)]
    if isinstance(preview, str):
        return Report(title, "Scan", facts, () if preview == plan else (f"preview: {preview}",))
    return Report(title, "Scan", facts, _list_rows(*preview))


def report_rows(
    title: str, kind: str, rows: pa.Table | str, arguments: Mapping[str, object] | None = None, most: int = PREVIEW_ROWS
) -> Report:
    """Describe rows that were read (one more than `most` if there are more); a string as `rows` is a reason."""
    facts = _format_arguments(arguments or {})
    if isinstance(rows, str):
        return Report(redact_secrets(title, {}), kind, facts, (rows,))
    more = MORE_ROWS if rows.num_rows > most else ""
    return Report(redact_secrets(title, {}), kind, facts, _list_rows(rows.slice(0, most), 0, more))


def report_arrow_table(rows: pa.Table) -> Report:
    """Describe a table of pyarrow: its number of rows, and the first ones."""
    kind, hidden, more = format_count(rows.num_rows, "row"), rows.num_rows - PREVIEW_ROWS, ""
    if hidden > 0:
        rows, more = rows.slice(0, PREVIEW_ROWS), f"and {hidden:,} more"
    return Report("pyarrow.Table", kind, parts=_list_rows(rows, 0, more))


def report_text(title: str, kind: str, text: str) -> Report:
    """Describe the text that a statement returns, such as a plan."""
    return Report(redact_secrets(title, {}), kind, parts=(Lines(text),))


def _list_rows(rows: pa.Table, left_out: int, more: str) -> tuple[Grid, str]:
    """Return the grid of rows and the note below it; columns in the middle are left out."""
    if rows.num_columns > PREVIEW_COLUMNS:
        half, names = PREVIEW_COLUMNS // 2, range(rows.num_columns)
        left_out += rows.num_columns - PREVIEW_COLUMNS
        rows = rows.select([*names[:half], *names[-half:]])
    columns = _render_columns(rows)
    if left_out:
        columns.insert(len(columns) // 2, TextColumn(ELLIPSIS, False, (ELLIPSIS,) * rows.num_rows))
    shown = format_count(rows.num_rows, "row") if rows.num_rows else "no rows"
    notes = [f"the first {shown}, {more}" if more else shown]
    notes += [f"{format_count(left_out, 'column')} in the middle left out"] if left_out else []
    return Grid(tuple(columns)), "; ".join(notes)


def _render_columns(rows: pa.Table) -> list[TextColumn]:
    """Render columns as text. One with a value that is not valid, such as a text that is not UTF-8, is unknown."""
    found: list[TextColumn] = []
    for field in rows.schema:
        try:
            found += to_text_columns(rows.select([len(found)]))
        except (pa.ArrowException, ValueError):
            found.append(TextColumn(field.name, False, ("?",) * rows.num_rows, str(field.type)))
    return found


def report_catalog(warehouse: str, databases: Mapping[str, Sequence[str] | str] | str, left_out: int) -> Report:
    """Describe a catalog: names by database, or a string that says why not; `left_out` counts databases."""
    location = remove_password(warehouse)
    if isinstance(databases, str):
        return Report(location, "Catalog", [("databases", databases)])
    facts = [(name, _format_table_names(tables)) for name, tables in databases.items()]
    note = f"and {format_count(left_out, 'more database')}" if left_out else "" if facts else "no databases yet"
    return Report(location, "Catalog", facts, (note,) if note else ())


def _format_table_names(tables: Sequence[str] | str) -> str:
    if isinstance(tables, str):
        return tables
    more = [f"and {len(tables) - _TABLES:,} more"] if len(tables) > _TABLES else []
    names = ", ".join([*tables[:_TABLES], *more])
    return f"{format_count(len(tables), 'table')}: {names}" if tables else "no tables"


def report_arguments(kind: str, title: str, arguments: Mapping[str, object]) -> Report:
    """Describe an object that only holds arguments: `kind` is its class's name, `title` its table's."""
    return Report(title, kind, _format_arguments(arguments))


def _format_arguments(arguments: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(name, _format_argument(value)) for name, value in arguments.items()]


def _format_argument(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return redact_secrets(text, {})
