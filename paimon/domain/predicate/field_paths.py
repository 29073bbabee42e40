"""Resolve a name to a column, to a field inside a ROW column, or to the value of one key of a MAP column.

Invariant: A column with exactly that name has precedence. Otherwise the longest column name that is followed by a dot
is chosen. The rest of the name is resolved among the fields of its ROW. At the end of a name, ``[key]`` means the value
of a text key of a MAP, or a field of a ROW: ``tags[color]``, as file indexes name it. `bind` refuses a condition on
such a path if a column has the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.types.data_types import DataField, DataType, MapType, RowType, VarCharType

DEFAULT = "DEFAULT"
"""The keyword that is the value of a column only alone; elsewhere it is read as the name of a column."""


def find_column(name: str, columns: Iterable[str]) -> str | None:
    """Return the column that a name in any case means: the one of this name, or the only one that differs in case."""
    alike = [column for column in columns if column.lower() == name.lower()]
    return name if name in alike else alike[0] if len(alike) == 1 else None


def type_at(name: str, fields: Sequence[DataField]) -> DataType:
    """Return the type of a column, nested field or map key such as ``m[key]``; else InvalidRequest."""
    found = find_type(name, fields)
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
    """Return the hint for an unknown SQL column: a name in double quotes may be meant as a text."""
    if (hint or "").startswith(("did", DEFAULT)):
        return hint
    if f'"{name}"' in sql:
        return f"double quotes are for names; a text is in single quotes: '{name}'"
    if re.search(rf"[=<>]\s*{re.escape(name)}\b(?!\s*\()", sql):
        return f"{hint + '; ' if hint else ''}a text is in single quotes: '{name}'"
    return hint


def find_type(name: str, fields: Sequence[DataField]) -> DataType | None:
    """Return the type of a column or path, or None; keys of CHAR have no path, as files may pad them."""
    types = {field.name: field.type for field in fields}
    if name in types:
        return types[name]
    for first, rest in split_path(name):
        outer = types.get(first)
        key = read_key(rest)
        if isinstance(outer, RowType):
            return find_type(rest if key is None else key, outer.fields)
        if isinstance(outer, MapType) and key is not None:
            return outer.value.with_nullable(True) if isinstance(outer.key, VarCharType) else None
    return None


def split_path(name: str) -> Iterator[tuple[str, str]]:
    """Yield a name split in two at each dot, the longest first part first, then before each bracket of a last key.

    >>> list(split_path("a.tags[x.y]"))
    [('a.tags[x', 'y]'), ('a', 'tags[x.y]'), ('a.tags', '[x.y]')]
    """
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        yield ".".join(parts[:n]), ".".join(parts[n:])
    if name.endswith("]"):
        yield from ((name[:at], name[at:]) for at, letter in enumerate(name) if letter == "[" and at)


def read_key(path: str) -> str | None:
    """Return the key in the rest of a path, ``[key]``; None for the names of fields."""
    return path[1:-1] if path.startswith("[") and path.endswith("]") else None


def name_key(column: str, key: str) -> str:
    """Return the path of the value of a key."""
    return f"{column}[{key}]"


def split_key(name: str) -> tuple[str, str] | None:
    """Return a path and the key at its end; None if it ends with a name."""
    at = name.find("[", 1)
    return (name[:at], name[at + 1 : -1]) if at > 0 and name.endswith("]") else None


def list_ancestors(name: str) -> Iterator[str]:
    """Yield the name itself, then what can contain it, the longest first: ``a.b[c]``, ``a.b``, ``a``."""
    yield name
    yield from sorted({first for first, _ in split_path(name)}, key=len, reverse=True)


def _list_names(field: DataField, like: str) -> Iterator[str]:
    yield field.name
    if "." in like and isinstance(field.type, RowType):
        yield from (f"{field.name}.{name}" for inner in field.type.fields for name in _list_names(inner, like))


def resolve_column(name: str, columns: Mapping[str, object]) -> tuple[str, str | None]:
    """Return the column of a bound name and the path inside it; `columns` has known names as keys."""
    if name in columns:
        return name, None
    for first, rest in split_path(name):
        if first in columns:
            return first, rest
    raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=suggest_column(name, columns))
