"""Resolve a name to a column, or to a field inside a ROW column.

Invariant: A column with exactly that name has precedence. Otherwise the longest column name that is followed by a dot
is chosen. The rest of the name is resolved among the fields of its ROW.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.types.data_types import DataField, DataType, RowType

DEFAULT = "DEFAULT"
"""The keyword that is the value of a column only alone; elsewhere it is read as the name of a column."""


def find_column(name: str, columns: Iterable[str]) -> str | None:
    """Return the column that a name in any case means: the one of this name, or the only one that differs in case."""
    alike = [column for column in columns if column.lower() == name.lower()]
    return name if name in alike else alike[0] if len(alike) == 1 else None


def type_at(name: str, fields: Sequence[DataField]) -> DataType:
    """Return the type of a column, or of the nested field at a path such as ``a.b``.

    Raises `InvalidRequest` for an unknown column, with the nearest name as hint.
    """
    found = _find_type(name, fields)
    if found is None:
        known = [known for field in fields for known in _list_names(field, name)]
        raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=suggest_column(name, known))
    return found


def suggest_column(name: str, known: Iterable[str]) -> str | None:
    """Return the hint for an unknown column: how to use DEFAULT, or else the nearest known name; None without one."""
    if name.upper() == DEFAULT:
        return "DEFAULT is a value only alone: in VALUES of INSERT, or after SET column ="
    return did_you_mean(name, known)


@contextmanager
def explain_quotes(condition: object) -> Iterator[None]:
    """Add to the error about an unknown column that a text of SQL is in single quotes, if a text is meant."""
    try:
        yield
    except InvalidRequest as error:
        name = error.subject
        if not isinstance(condition, str) or not error.message.startswith(f"Column {name!r} does not exist"):
            raise
        hint = hint_single_quotes(str(name), condition, error.hint)
        raise InvalidRequest(error.message, subject=name, hint=hint) from error


def hint_single_quotes(name: str, sql: str, hint: str | None) -> str | None:
    """Return the hint about an unknown column of SQL.

    If no name is near, a name in double quotes is meant as a text, and one after an operator may be.
    """
    if (hint or "").startswith(("did", DEFAULT)):
        return hint
    if f'"{name}"' in sql:
        return f"double quotes are for names; a text is in single quotes: '{name}'"
    if re.search(rf"[=<>]\s*{re.escape(name)}\b(?!\s*\()", sql):
        return f"{hint + '; ' if hint else ''}a text is in single quotes: '{name}'"
    return hint


def _find_type(name: str, fields: Sequence[DataField]) -> DataType | None:
    types = {field.name: field.type for field in fields}
    if name in types:
        return types[name]
    for first, rest in split_path(name):
        outer = types.get(first)
        if isinstance(outer, RowType):
            return _find_type(rest, outer.fields)
    return None


def split_path(name: str) -> Iterator[tuple[str, str]]:
    """Yield a dotted name split in two at each dot, with the longest first part first."""
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        yield ".".join(parts[:n]), ".".join(parts[n:])


def _list_names(field: DataField, like: str) -> Iterator[str]:
    yield field.name
    if "." in like and isinstance(field.type, RowType):
        yield from (f"{field.name}.{name}" for inner in field.type.fields for name in _list_names(inner, like))


def resolve_column(name: str, columns: Mapping[str, object]) -> tuple[str, str | None]:
    """Return the column that contains a bound name, and the path inside it; None for the column itself.

    `columns` has the known columns as keys; the values are not used.
    """
    if name in columns:
        return name, None
    for first, rest in split_path(name):
        if first in columns:
            return first, rest
    raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=suggest_column(name, columns))
