"""Cases of SQL statements, and what a statement leaves: an error or rows, and the tables that changed.

The same code describes the tables of Java's connector and ours. It needs nothing but the standard library, because the
connector runs in an environment of its own.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

Run = Callable[[str], tuple[list[str], list[Mapping[str, Any]]]]
"""Run a statement; return the names of its columns and its rows, or raise."""

DATABASE = "d"
OWN_TO_A_CATALOG = ("path", "owner", "provider")
"""Options that say where a table is, or who made it."""


def read_cases(path: Path) -> dict[str, list[str]]:
    """Return the statements of each case by its name."""
    cases: dict[str, list[str]] = {}
    for block in path.read_text("utf8").split("\n-- case: ")[1:]:
        name, _, text = block.partition("\n")
        cases[name] = [line.removesuffix(";") for line in text.split(";\n") if line.strip()]
        cases[name] = [statement.strip() for statement in cases[name]]
    return cases


def run_case(statements: Iterable[str], run: Run, warehouse: Path) -> Iterator[dict[str, Any]]:
    """Run the statements of a case, and describe what each leaves.

    Parameters
    ----------
    statements : iterable of str
        The statements. A failed one does not end the case.
    run : callable
        Runs a statement in the database `d`, which is empty at first.
    warehouse : Path
        The directory of the databases.

    Yields
    ------
    dict
        ``statement``; ``error``, the first line of a message, or ``columns`` and ``rows`` of a result; ``tables``, the
        descriptions of the tables that changed, None for one that is gone.
    """
    before: dict[str, Any] = {}
    for statement in statements:
        outcome: dict[str, Any] = {"statement": statement}
        try:
            columns, rows = run(statement)
        except Exception as error:
            outcome["error"] = describe_error(str(error))
        else:
            if columns:
                outcome |= {"columns": columns, "rows": to_canonical_rows(rows)}
        after = describe_tables(run, warehouse)
        outcome["tables"] = {
            name: describe_change(before.get(name), after.get(name))
            for name in sorted({*before, *after})
            if before.get(name) != after.get(name)
        }
        before = after
        yield outcome


def describe_error(text: str) -> str:
    """Return the line of a message that says what happened: the cause, if Java reports a chain of exceptions."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return [*lines[:1], *(line for line in lines[1:2] if line.startswith(": ")), *causes][-1].removeprefix(": ")[:300]


def describe_change(before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the parts of a table that changed, and the rows that are new or gone; None for a table that is gone."""
    if after is None:
        return None
    known = before or {"rows": []}
    change = {part: value for part, value in after.items() if part != "rows" and known.get(part) != value}
    old, new = (Counter(json.dumps(row, sort_keys=True) for row in state["rows"]) for state in (known, after))
    for name, rows in (("added", new - old), ("removed", old - new)):
        if rows:
            change[name] = [json.loads(row) for row in sorted(rows.elements())]
    return change


def describe_tables(run: Run, warehouse: Path) -> dict[str, Any]:
    """Return schema and rows of each table."""
    folders = sorted(path for path in (warehouse / f"{DATABASE}.db").iterdir() if (path / "schema").is_dir())
    return {folder.name: describe_table(run, folder) for folder in folders}


def describe_table(run: Run, folder: Path) -> dict[str, Any]:
    """Return the newest schema of a table as its file has it, and the rows of a query."""
    newest = max((folder / "schema").glob("schema-*"), key=lambda path: int(path.name.removeprefix("schema-")))
    schema = json.loads(newest.read_text("utf8"))
    description = {
        "fields": schema["fields"],
        "partition keys": schema["partitionKeys"],
        "primary keys": schema["primaryKeys"],
        "options": {key: value for key, value in schema["options"].items() if key not in OWN_TO_A_CATALOG},
        "comment": schema.get("comment") or "",
    }
    try:
        description["rows"] = to_canonical_rows(run(f"SELECT * FROM {DATABASE}.`{folder.name}`")[1])
    except Exception:
        description["rows"] = ["not readable"]
    return description


def to_canonical_rows(rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return rows as JSON has them, in an order that depends on their values only."""
    values = [{name: to_canonical(value) for name, value in row.items()} for row in rows]
    return sorted(values, key=lambda row: json.dumps(row, sort_keys=True))


def to_canonical(value: Any) -> Any:
    """Return a value as JSON has it, the same for both engines."""
    if isinstance(value, float):
        return repr(value) if math.isnan(value) or math.isinf(value) else value
    if isinstance(value, datetime):
        in_utc = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return in_utc.isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, date | Decimal):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if hasattr(value, "asDict"):
        value = value.asDict()
        return {name: to_canonical(part) for name, part in value.items()}
    if isinstance(value, Mapping):
        return {str(name): to_canonical(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_canonical(part) for part in value]
    return value
