"""Which column, or field inside a ROW column, a name means.

Law: a column of exactly that name comes first; else the longest column name that is followed by a dot, then fields of
its ROW.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.types.data_types import DataField, DataType, RowType


def type_at(name: str, fields: Sequence[DataField]) -> DataType:
    """The type of a column or nested field.

    Raises
    ------
    InvalidRequest
        Where there is none, naming the nearest.
    """
    found = _find(name, fields)
    if found is None:
        known = [known for field in fields for known in _names(field, name)]
        raise InvalidRequest(f"there is no column {name!r}", subject=name, hint=did_you_mean(name, known))
    return found


def _find(name: str, fields: Sequence[DataField]) -> DataType | None:
    types = {field.name: field.type for field in fields}
    if name in types:
        return types[name]
    for first, rest in splits(name):
        outer = types.get(first)
        if isinstance(outer, RowType):
            return _find(rest, outer.fields)
    return None


def splits(name: str) -> Iterator[tuple[str, str]]:
    """A dotted name cut in two at each dot, longest first part first."""
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        yield ".".join(parts[:n]), ".".join(parts[n:])


def _names(field: DataField, like: str) -> Iterator[str]:
    yield field.name
    if "." in like and isinstance(field.type, RowType):
        yield from (f"{field.name}.{name}" for inner in field.type.fields for name in _names(inner, like))


def path_in(name: str, columns: Mapping[str, object]) -> tuple[str, str | None]:
    """The column among `columns` that a bound name lies in, and the rest of its path (None: the column itself)."""
    if name in columns:
        return name, None
    for first, rest in splits(name):
        if first in columns:
            return first, rest
    raise InvalidRequest(f"there is no column {name!r}", subject=name, hint=did_you_mean(name, columns))
