"""Change the schema of a table: the shared part of the `Table` methods that alter it.

Invariant: a call writes one new version of the schema with all its changes, or nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from attrs import evolve

from paimon.domain.errors import InvalidRequest, PaimonWarning
from paimon.domain.options.validate import check_options
from paimon.domain.schema.changes import Position, SchemaChange, SetColumnType, SetOption
from paimon.domain.schema.parse_changes import parse_schema_changes
from paimon.domain.schema.rules.layout import explain_key_scope
from paimon.domain.schema.table_schema import TableSchema
from paimon.operations.evolve import alter_table
from paimon.operations.table_context import TableContext

Column = str | Sequence[str]
"""A column by its name, or a nested field by its path: ``"place.city"``, or ``("place", "city")``."""


def change_schema(
    context: TableContext, changes: Iterable[SchemaChange | str], allow_unknown_options: bool, allow_lossy: bool = False
) -> TableContext:
    """Apply changes in order to the newest schema of a table, write its next version, and return the table with it.

    Strings are clauses of ``ALTER TABLE``. `allow_lossy` permits type changes that lose stored values. Dynamic options
    stay in effect. A refused change leaves the schema unchanged. Warns if keys become unique only within a partition.
    """
    parsed: list[SchemaChange] = []
    for change in changes:
        parsed += parse_schema_changes(change) if isinstance(change, str) else [change]
    for option in (c for c in parsed if isinstance(c, SetOption)):
        if not isinstance(option.key, str):
            raise InvalidRequest(f"Option name {option.key!r} is not a text.", subject="option", hint="give a str")
        check_options({option.key: option.value}, allow_unknown_options)
    if allow_lossy:
        parsed = [evolve(c, allow_lossy=True) if isinstance(c, SetColumnType) else c for c in parsed]
    schema = alter_table(context, parsed)
    scope = explain_key_scope(schema)
    if scope is not None and explain_key_scope(context.schema) is None:
        warnings.warn(f"Table {context.table.table_name!r}: {scope}", PaimonWarning, stacklevel=3)
    return context.at_schema(schema)


def to_column_path(schema: TableSchema, name: Column) -> tuple[str, ...]:
    """Return the path of a column: a name with dots is that of a nested field, unless a column has this very name."""
    if not isinstance(name, str):
        return tuple(name)
    names, parts = schema.names, name.split(".")
    return tuple(parts) if name not in names and parts[0] in names and all(parts) else (name,)


def to_position(first: bool, after: str | None, before: str | None) -> Position | None:
    """Return the position that at most one of the arguments names; None where none does."""
    if first + (after is not None) + (before is not None) > 1:
        raise InvalidRequest("A column has one position.", subject="position", hint="give one of first, after, before")
    if first:
        return Position.first()
    if after is not None:
        return Position.after(after)
    return None if before is None else Position.before(before)
