"""Which columns the rows of a call must have, so that an upsert does not replace stored values by null unseen.

Invariant: only tables that keep the newest row of a key (merge engine `deduplicate`) need columns. A column is given if
one row of the call has it. Deletes need the key alone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.row.kinds import RETRACTS, parse_row_kinds
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema

MISSING_COLUMNS = "write.missing-columns"
"""The option that allows missing columns."""
_CHOICES = ("error", "null")


def set_missing_columns(table: TableDefinition, choice: str | None) -> TableDefinition:
    """Return a table with another value of the option, ``"error"`` or ``"null"``; None keeps the table's own."""
    if choice is None:
        return table
    if choice not in _CHOICES:
        message = f"Argument 'missing_columns' is {choice!r}."
        raise InvalidRequest(message, subject="missing_columns", hint=f"use one of {', '.join(_CHOICES)}")
    return evolve(table, options=table.options.with_values({MISSING_COLUMNS: choice}))


def find_needed_columns(table: TableDefinition, opened: TableSchema | None = None) -> tuple[str, ...]:
    """Return the columns that a call must have; those that are newer than the schema `opened` may be missing.

    Columns that are NOT NULL are not listed: rows without them are refused anyway. A default is a value.
    """
    options = table.options
    keeps_newest_row = bool(table.schema.primary_keys) and options.merge_engine == "deduplicate"
    if not keeps_newest_row or options.missing_columns == "null":
        return ()
    known = {field.id for field in (opened or table.schema).fields}
    return tuple(f.name for f in table.schema.fields if f.id in known and f.type.nullable and f.default_value is None)


@frozen
class ColumnCheck:
    """The needed columns that no row of a call has had so far."""

    table: TableDefinition
    kind_column: str | None
    missing: tuple[str, ...]
    has_adds: bool = False

    @classmethod
    def of(
        cls,
        table: TableDefinition,
        kind_column: str | None = None,
        needed: tuple[str, ...] | None = None,
    ) -> Self:
        """Return the check of a call that has no rows yet."""
        return cls(
            table,
            kind_column or table.options.rowkind_field,
            find_needed_columns(table) if needed is None else needed,
        )

    @property
    def is_refused(self) -> bool:
        """Whether the rows so far would make stored values null."""
        return bool(self.missing) and self.has_adds

    def add_rows(self, rows: pa.Table, names: Collection[str] | None = None) -> Self:
        """Return the check with more rows; `names` are the columns that were given, by default those of `rows`."""
        if not self.missing or not rows.num_rows:
            return self
        given = set(rows.column_names if names is None else names)
        missing = tuple(name for name in self.missing if name not in given)
        return evolve(self, missing=missing, has_adds=self.has_adds or _has_adds(rows, self.kind_column))

    def check_given(self) -> None:
        """Raise an error if the rows so far would make stored values null."""
        if self.is_refused:
            raise missing_error(self.table, self.missing)


def missing_error(table: TableDefinition, missing: Collection[str]) -> InvalidRequest:
    """Return the error for rows without columns."""
    names = ", ".join(map(repr, missing))
    columns = f"column {names}, whose" if len(missing) == 1 else f"columns {names}, whose"
    return InvalidRequest(
        f"No row for table {table.table_name!r} has the {columns} stored values would become null.",
        subject=next(iter(missing)),
        hint=f"give the columns, or allow nulls: missing_columns=\"null\", or the option '{MISSING_COLUMNS}' = 'null'",
    )


def _has_adds(rows: pa.Table, kind_column: str | None) -> bool:
    if kind_column is None:
        return True
    if kind_column not in rows.column_names:  # the writer refuses the rows
        return False
    kinds = parse_row_kinds(rows[kind_column], kind_column)
    return bool(pc.any(pc.invert(pc.is_in(kinds, RETRACTS))).as_py())
