"""Schema evolution: the methods of `Table` that change its columns, options and comment.

Invariant: each method writes one new version of the schema with all its changes, or nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Self

from attrs import evolve

from paimon.domain.errors import InvalidRequest, PaimonWarning
from paimon.domain.options.setting import option_text
from paimon.domain.options.validate import check_options
from paimon.domain.schema import changes as to
from paimon.domain.schema.parse_changes import parse_schema_changes
from paimon.domain.schema.rules.layout import explain_key_scope
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataType
from paimon.operations.evolve import alter_table
from paimon.ports.engine import Engine

Column = str | Sequence[str]
"""A column by its name, or a nested field by its path: ``"place.city"``, or ``("place", "city")``."""


class SchemaEvolution:
    """The part of `Table` that changes its schema; mixed into it.

    Every method returns the table at its new schema. The handle that it is called on keeps its columns.
    """

    __slots__ = ()
    engine: Engine
    definition: TableDefinition

    def _with_definition(self, definition: TableDefinition) -> Self:
        raise NotImplementedError

    def alter(self, *changes: to.SchemaChange | str, allow_unknown_options: bool = False) -> Self:
        """Change columns, options or the comment, all in one new version of the schema.

        Parameters
        ----------
        *changes : str or SchemaChange
            SQL text, one clause of ``ALTER TABLE`` each (``"ADD COLUMN x INT AFTER id"``, ``"SET ('bucket' = '4')"``),
            or changes such as ``paimon.AddColumn("x", "INT")``. They apply in order.
        allow_unknown_options : bool
            Accept options that this library does not know.

        Returns
        -------
        Table
            The table at its new schema; dynamic options stay on top.

        Raises
        ------
        InvalidRequest, Unsupported
            A text that cannot be read, or a change that would break the table or its stored rows. Nothing was changed.
        NotFound, AlreadyExists
            A column that does not exist, or exists already. Nothing was changed.

        Warns
        -----
        PaimonWarning
            Keys become unique within a partition only.

        Examples
        --------
        >>> orders = orders.alter("ADD COLUMN note STRING", "DROP COLUMN old")               # doctest: +SKIP
        """
        parsed: list[to.SchemaChange] = []
        for change in changes:
            parsed += parse_schema_changes(change) if isinstance(change, str) else [change]
        for option in (c for c in parsed if isinstance(c, to.SetOption)):
            if not isinstance(option.key, str):
                raise InvalidRequest(f"Option name {option.key!r} is not a text.", subject="option", hint="give a str")
            check_options({option.key: option.value}, allow_unknown_options)
        schema = alter_table(self.engine, self.definition, parsed)
        scope = explain_key_scope(schema)
        if scope is not None and explain_key_scope(self.definition.schema) is None:
            warnings.warn(f"Table {self.definition.identifier!r}: {scope}", PaimonWarning, stacklevel=2)
        return self._with_definition(self.definition.at_schema(schema))

    def add_column(
        self,
        name: Column,
        type: DataType | str,
        *,
        comment: str | None = None,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> Self:
        """Add a column, which is null in the rows that are stored.

        Parameters
        ----------
        name : str or sequence of str
            Its name; ``"place.zip"`` adds a field to the ROW column `place`.
        type : DataType or str
            A Paimon type such as ``"DECIMAL(10, 2)"``; it must be nullable.
        comment : str
            What the column is about.
        first, after, before
            Where it goes, at most one: in front, or next to another column; by default at the end.

        Returns
        -------
        Table
            The table at its new schema.
        """
        return self.alter(to.AddColumn(self._path(name), type, comment, _position(first, after, before)))

    def rename_column(self, name: Column, new_name: str) -> Self:
        """Give a column another name; keys and options follow. Stored rows do not change."""
        return self.alter(to.RenameColumn(self._path(name), new_name))

    def drop_column(self, name: Column) -> Self:
        """Remove a column; its stored values are never read again, also not by a new column of that name."""
        return self.alter(to.DropColumn(self._path(name)))

    def alter_column_type(self, name: Column, type: DataType | str) -> Self:
        """Give a column another type, into which stored values are cast when they are read.

        Whether it may be null stays as it is, unless `type` says ``NOT NULL``.
        """
        change = to.SetColumnType(self._path(name), type)
        return self.alter(evolve(change, keep_nullability=change.type.nullable))

    def alter_column_nullability(self, name: Column, nullable: bool) -> Self:
        """Allow nulls in a column, or forbid them (see `alter-column-null-to-not-null.disabled`)."""
        return self.alter(to.SetColumnNullability(self._path(name), nullable))

    def alter_column_comment(self, name: Column, comment: str | None) -> Self:
        """Set a column's comment; None removes it."""
        return self.alter(to.SetColumnComment(self._path(name), comment))

    def alter_column_default(self, name: Column, default: object) -> Self:
        """Set what is written where a row has no value; None removes it. Stored rows do not change."""
        return self.alter(to.SetColumnDefault(self._path(name), None if default is None else option_text(default)))

    def move_column(
        self, name: Column, *, first: bool = False, after: str | None = None, before: str | None = None
    ) -> Self:
        """Move a column in front, or next to another; without any of these to the end."""
        position = _position(first, after, before) or to.Position.last()
        return self.alter(to.MoveColumn(self._path(name), position))

    def set_options(self, options: Mapping[str, object], *, allow_unknown_options: bool = False) -> Self:
        """Store table options; `with_options` sets them for one handle alone.

        Parameters
        ----------
        options : mapping
            Values by key; they are stored as text.
        allow_unknown_options : bool
            Accept options that this library does not know.

        Returns
        -------
        Table
            The table with these options.
        """
        changes = [to.SetOption(key, option_text(value)) for key, value in options.items()]
        return self.alter(*changes, allow_unknown_options=allow_unknown_options)

    def reset_options(self, *keys: str) -> Self:
        """Set table options back to their defaults."""
        return self.alter(*(to.RemoveOption(key) for key in keys))

    def set_comment(self, comment: str | None) -> Self:
        """Set the comment of the table; None removes it."""
        return self.alter(to.SetComment(comment))

    def _path(self, name: Column) -> tuple[str, ...]:
        """The path of a column: a name with dots is one of a nested field, unless a column has that very name."""
        if not isinstance(name, str):
            return tuple(name)
        names, parts = self.definition.schema.names, name.split(".")
        return tuple(parts) if name not in names and parts[0] in names and all(parts) else (name,)


def _position(first: bool, after: str | None, before: str | None) -> to.Position | None:
    if first + (after is not None) + (before is not None) > 1:
        raise InvalidRequest("A column has one position.", subject="position", hint="give one of first, after, before")
    if first:
        return to.Position.first()
    if after is not None:
        return to.Position.after(after)
    return None if before is None else to.Position.before(before)
