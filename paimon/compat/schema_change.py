"""Changes of schemas as pypaimon builds them, and their conversion to those of this library.

Source: `pypaimon.schema.schema_change`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from attrs import define

import paimon
from paimon.compat.core_options import CoreOptions
from paimon.compat.data_types import DataType, to_paimon_type
from paimon.compat.option_values import split_names

Names = str | list[str]


class MoveType(Enum):
    """Where a column moves."""

    FIRST = "FIRST"
    AFTER = "AFTER"
    BEFORE = "BEFORE"
    LAST = "LAST"


@define
class Move:
    """A new position of a column."""

    FIELD_FIELD_NAME = "fieldName"
    FIELD_REFERENCE_FIELD_NAME = "referenceFieldName"
    FIELD_TYPE = "type"

    field_name: str
    reference_field_name: str | None = None
    type: MoveType = MoveType.FIRST

    @staticmethod
    def first(field_name: str) -> Move:
        """Return the position before all columns."""
        return Move(field_name, None, MoveType.FIRST)

    @staticmethod
    def after(field_name: str, reference_field_name: str) -> Move:
        """Return the position after another column."""
        return Move(field_name, reference_field_name, MoveType.AFTER)

    @staticmethod
    def before(field_name: str, reference_field_name: str) -> Move:
        """Return the position before another column."""
        return Move(field_name, reference_field_name, MoveType.BEFORE)

    @staticmethod
    def last(field_name: str) -> Move:
        """Return the position after all columns."""
        return Move(field_name, None, MoveType.LAST)


class SchemaChange:
    """The base of all changes, with functions that make them."""

    @staticmethod
    def set_option(key: str, value: str) -> SetOption:
        """Return the change that sets a table option."""
        return SetOption(key, value)

    @staticmethod
    def remove_option(key: str) -> RemoveOption:
        """Return the change that sets a table option back to its default."""
        return RemoveOption(key)

    @staticmethod
    def update_comment(comment: str | None) -> UpdateComment:
        """Return the change of the comment of the table."""
        return UpdateComment(comment)

    @staticmethod
    def add_column(
        field_name: Names, data_type: DataType, comment: str | None = None, move: Move | None = None
    ) -> AddColumn:
        """Return the change that adds a column."""
        return AddColumn(_path(field_name), data_type, comment, move)

    @staticmethod
    def rename_column(field_name: Names, new_name: str) -> RenameColumn:
        """Return the change that gives a column another name."""
        return RenameColumn(_path(field_name), new_name)

    @staticmethod
    def drop_column(field_name: Names) -> DropColumn:
        """Return the change that removes a column."""
        return DropColumn(_path(field_name))

    @staticmethod
    def update_column_type(
        field_name: Names, new_data_type: DataType, keep_nullability: bool = False
    ) -> UpdateColumnType:
        """Return the change of the type of a column."""
        return UpdateColumnType(_path(field_name), new_data_type, keep_nullability)

    @staticmethod
    def update_column_nullability(field_name: Names, new_nullability: bool) -> UpdateColumnNullability:
        """Return the change that allows or forbids nulls."""
        return UpdateColumnNullability(_path(field_name), new_nullability)

    @staticmethod
    def update_column_comment(field_name: Names, comment: str) -> UpdateColumnComment:
        """Return the change of the comment of a column."""
        return UpdateColumnComment(_path(field_name), comment)

    @staticmethod
    def update_column_default_value(field_names: list[str], default_value: str) -> UpdateColumnDefaultValue:
        """Return the change of the default of a column."""
        return UpdateColumnDefaultValue(_path(field_names), default_value)

    @staticmethod
    def update_column_position(move: Move) -> UpdateColumnPosition:
        """Return the change of the position of a column."""
        return UpdateColumnPosition(move)

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        raise NotImplementedError


def _path(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _position(move: Move) -> paimon.Position:
    column = move.reference_field_name or ""
    match move.type:
        case MoveType.FIRST:
            return paimon.Position.first()
        case MoveType.AFTER:
            return paimon.Position.after(column)
        case MoveType.BEFORE:
            return paimon.Position.before(column)
    return paimon.Position.last()


@define
class SetOption(SchemaChange):
    """Set the option `key`."""

    key: str
    value: str

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        return paimon.SetOption(self.key, str(self.value))


@define
class RemoveOption(SchemaChange):
    """Set the option `key` back to its default."""

    key: str

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        return paimon.RemoveOption(self.key)


@define
class UpdateComment(SchemaChange):
    """Set the comment of the table."""

    comment: str | None = None

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        return paimon.SetComment(self.comment)


@define
class AddColumn(SchemaChange):
    """Add a column."""

    field_names: list[str]
    data_type: DataType
    comment: str | None = None
    move: Move | None = None

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        position = None if self.move is None else _position(self.move)
        return paimon.AddColumn(tuple(self.field_names), to_paimon_type(self.data_type), self.comment, position)


@define
class RenameColumn(SchemaChange):
    """Give a column another name."""

    field_names: list[str]
    new_name: str

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        return paimon.RenameColumn(tuple(self.field_names), self.new_name)


@define
class DropColumn(SchemaChange):
    """Remove a column."""

    field_names: list[str]

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        return paimon.DropColumn(tuple(self.field_names))


@define
class UpdateColumnType(SchemaChange):
    """Give a column another type."""

    field_names: list[str]
    new_data_type: DataType
    keep_nullability: bool = False

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        new_type = to_paimon_type(self.new_data_type)
        return paimon.SetColumnType(tuple(self.field_names), new_type, self.keep_nullability)


@define
class UpdateColumnNullability(SchemaChange):
    """Allow or forbid nulls in a column."""

    field_names: list[str]
    new_nullability: bool

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        return paimon.SetColumnNullability(tuple(self.field_names), self.new_nullability)


@define
class UpdateColumnComment(SchemaChange):
    """Set the comment of a column."""

    field_names: list[str]
    new_comment: str

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        return paimon.SetColumnComment(tuple(self.field_names), self.new_comment)


@define
class UpdateColumnDefaultValue(SchemaChange):
    """Set the default of a column."""

    field_names: list[str]
    new_default_value: str

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        return paimon.SetColumnDefault(tuple(self.field_names), self.new_default_value)


@define
class UpdateColumnPosition(SchemaChange):
    """Move a column."""

    move: Move

    def to_paimon(self) -> paimon.SchemaChange:
        """Return the change of this library."""
        return paimon.MoveColumn((self.move.field_name,), _position(self.move))


def check_fixed_options(changes: Sequence[SchemaChange], table: paimon.Table) -> list[SchemaChange]:
    """Refuse to change options that cannot change, as pypaimon does: also to remove one that is not set."""
    repeated = {"type": ("table",), "primary-key": table.primary_keys, "partition": table.partition_keys}
    fixed = CoreOptions.IMMUTABLE_OPTIONS - set(repeated) if table.snapshot() is not None else frozenset()
    wanted = []
    for change in changes:
        removes = isinstance(change, RemoveOption) and change.key in fixed | set(repeated)
        sets = isinstance(change, SetOption) and change.key in fixed and table.options.get(change.key) != change.value
        if removes or sets:
            key = change.key  # type: ignore[attr-defined]
            raise paimon.InvalidRequest(f"Option '{key}' cannot change", subject=key)
        given = split_names(str(change.value)) if isinstance(change, SetOption) and change.key in repeated else None
        if given is None or given != list(repeated[change.key]):  # type: ignore[attr-defined]
            wanted.append(change)
    return wanted
