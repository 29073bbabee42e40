"""Errors of DuckDB as errors of the library: the object at fault, and the nearest name."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable

import duckdb

from paimon.adapters.queries.shared_files import FILE_NAME
from paimon.domain.errors import CorruptTable, InvalidRequest, PaimonError, StorageError, did_you_mean
from paimon.domain.predicate.field_paths import DEFAULT, suggest_column
from paimon.ports.queries import TYPE_NAMES
from paimon.ports.temp import is_temp_full, to_temp_error

_POSITION = re.compile(r"\n+LINE \d+:.*", re.DOTALL)
_SIMILAR = re.compile(r"(?:Candidate (?:bindings|tables):|Did you mean) (.*?)\??$", re.MULTILINE)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_NO_COLUMN = "Column {!r} does not exist in this part of the query."
_MISSING: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (re.compile(r'[Cc]olumn "([^"]*)" (?:was )?not found'), _NO_COLUMN.format),
    (re.compile(r'does not have a column named "([^"]*)"'), _NO_COLUMN.format),
    (
        re.compile(r'Column "([^"]*)" does not exist on (?:left|right) side of join'),
        "Column {!r} of USING is not in both tables.".format,
    ),
    (re.compile(r'Referenced table "([^"]*)" not found'), "Table {!r} is not in this part of the query.".format),
    (re.compile(r"Function with name (\S+) does not exist"), "Function {!r} does not exist.".format),
    (re.compile(r"Type with name (\S+) does not exist"), "Type {!r} does not exist.".format),
)
"""What DuckDB says about a name that it does not know, and the message for it."""


def to_file_error(error: Exception, path: str) -> CorruptTable:
    """Return an error of DuckDB about one of its files as one of this library."""
    reason = FILE_NAME.sub(path, _POSITION.sub("", str(error)).partition(" Error: ")[2] or str(error))
    return CorruptTable(path, f"cannot be read as Parquet: {reason.strip().splitlines()[0]}")


def to_paimon_error(error: Exception) -> PaimonError:
    """Return an error of DuckDB as one of this library."""
    text = _POSITION.sub("", str(error)).strip()
    kind, colon, message = text.partition(" Error: ")
    first = (message if colon else text).splitlines()[0].rstrip("!.") if text else type(error).__name__
    if is_temp_full(error):
        return to_temp_error(tempfile.gettempdir(), "the query cannot spill rows", error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return StorageError("query", first, hint="raise memory-budget, or set a limit on the rows of the query")
    for pattern, describe in _MISSING:
        name = pattern.search(first)
        if name:
            return InvalidRequest(describe(name[1]), subject=name[1], hint=_find_hint(name[1], text))
    near = _SIMILAR.search(text)
    hint = f"did you mean {near[1]}?" if near else None
    return InvalidRequest(f"The query failed: {first}.", subject=kind or None, hint=hint)


def _find_hint(name: str, text: str) -> str | None:
    """Return a hint with the nearest of the names that DuckDB suggests; for a type, the usual types are added."""
    near = _SIMILAR.search(text)
    known = _QUOTED.findall(near[1]) if near else []
    if "Type with name" in text:
        return did_you_mean(name.upper(), [*TYPE_NAMES, *known])
    return suggest_column(name, known) if known or name.upper() == DEFAULT else None
