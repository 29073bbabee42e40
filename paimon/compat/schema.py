"""Schemas and their changes by the names of pypaimon.

Source: `pypaimon.schema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from enum import Enum
from typing import Any

import pyarrow as pa
from attrs import define, field

import paimon
from paimon.compat.data_types import DataField, DataType, PyarrowFieldParser, from_paimon_field, to_paimon_type
from paimon.compat.file_io import FileIO
from paimon.compat.options import CoreOptions, split_names
from paimon.domain.schema.table_schema import TableSchema as PaimonSchema
from paimon.domain.schema.table_schema import schema_from_json


class Schema:
    """The columns, keys and options of a table to create."""

    def __init__(
        self,
        fields: list[DataField] | None = None,
        partition_keys: list[str] | None = None,
        primary_keys: list[str] | None = None,
        options: dict[str, Any] | None = None,
        comment: str | None = None,
    ) -> None:
        self.fields = fields if fields is not None else []
        self.partition_keys = partition_keys if partition_keys is not None else []
        self.primary_keys = primary_keys if primary_keys is not None else []
        self.options = options if options is not None else {}
        self.comment = comment
        nullable = str(self.options.get("primary-key.nullable", "false")).lower() == "true"
        if nullable and not self.primary_keys:
            raise ValueError("Option 'primary-key.nullable' can only be enabled for a table with primary keys.")
        for column in self.fields:
            if column.name in self.primary_keys:
                column.type.nullable = nullable
        producer = self.options.get("changelog-producer", "none")
        if producer != "none" and not self.primary_keys:
            raise ValueError(
                f"Cannot set 'changelog-producer' to '{producer}' on a table without primary keys. "
                "Changelog producer requires primary keys to be defined."
            )

    @staticmethod
    def from_pyarrow_schema(
        pa_schema: pa.Schema,
        partition_keys: list[str] | None = None,
        primary_keys: list[str] | None = None,
        options: dict[str, Any] | None = None,
        comment: str | None = None,
    ) -> Schema:
        """Return the schema of a table with the columns of an Arrow schema."""
        fields = PyarrowFieldParser.to_paimon_schema(pa_schema)
        return Schema(fields, partition_keys, primary_keys, options, comment)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Schema({self.fields!r}, primary_keys={self.primary_keys!r}, partition_keys={self.partition_keys!r})"


@define
class TableSchema:
    """One version of the schema of a table."""

    PAIMON_07_VERSION = 1
    PAIMON_08_VERSION = 2
    CURRENT_VERSION = 3

    version: int = 3
    id: int = 0
    fields: list[DataField] = field(factory=list)
    highest_field_id: int = 0
    partition_keys: list[str] = field(factory=list)
    primary_keys: list[str] = field(factory=list)
    options: dict[str, str] = field(factory=dict)
    comment: str | None = None
    time_millis: int = 0

    @staticmethod
    def from_schema(schema_id: int, schema: Schema) -> TableSchema:
        """Return a declared schema with a number."""
        numbers = [column.id for column in schema.fields]
        return TableSchema(
            id=schema_id,
            fields=schema.fields,
            highest_field_id=max(numbers, default=-1),
            partition_keys=schema.partition_keys,
            primary_keys=schema.primary_keys,
            options=schema.options,
            comment=schema.comment,
        )

    @staticmethod
    def from_json(json_str: str) -> TableSchema:
        """Parse the content of the file of a schema."""
        return from_paimon_schema(schema_from_json(json_str.encode("utf8"), "schema"))

    @staticmethod
    def from_path(file_io: FileIO, schema_path: str) -> TableSchema:
        """Read the file of a schema."""
        try:
            return TableSchema.from_json(file_io.read_file_utf8(schema_path))
        except FileNotFoundError as error:
            raise RuntimeError(f"Schema file not found: {schema_path}") from error

    @property
    def bucket_keys(self) -> list[str]:
        """The columns of the option `bucket-key`, else the primary key without partition columns."""
        given = [name.strip() for name in self.options.get("bucket-key", "").split(",") if name.strip()]
        known = [column.name for column in self.fields]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"Bucket key {unknown[0]!r} is not a column. Known are: {', '.join(known)}")
        return given or [key for key in self.primary_keys if key not in self.partition_keys]

    @property
    def logical_bucket_key_fields(self) -> list[DataField]:
        """The columns that determine a fixed bucket, in the order of the keys."""
        fields = {column.name: column for column in self.fields}
        return [fields[key] for key in self.bucket_keys]

    def cross_partition_update(self) -> bool:
        """Return whether the primary key lacks a partition column."""
        return bool(self.primary_keys) and not set(self.partition_keys) <= set(self.primary_keys)

    def to_schema(self) -> Schema:
        """Return the schema to create such a table."""
        return Schema(
            deepcopy(self.fields),
            list(self.partition_keys),
            list(self.primary_keys),
            dict(self.options),
            self.comment,
        )

    def copy(self, new_options: Mapping[str, str] | None = None) -> TableSchema:
        """Return the same schema with other options."""
        made = deepcopy(self)
        made.options = dict(self.options if new_options is None else new_options)
        return made


def from_paimon_schema(schema: PaimonSchema, options: Mapping[str, str] | None = None) -> TableSchema:
    """Return the schema of pypaimon for one of this library, with the effective options of a handle if given."""
    return TableSchema(
        version=schema.version,
        id=schema.id,
        fields=from_paimon_fields(schema.fields),
        highest_field_id=schema.highest_field_id,
        partition_keys=list(schema.partition_keys),
        primary_keys=list(schema.primary_keys),
        options=dict(schema.options if options is None else options),
        comment=schema.comment,
        time_millis=schema.time_millis,
    )


def from_paimon_fields(fields: Sequence[Any]) -> list[DataField]:
    """Return the fields of pypaimon for those of this library."""
    return [from_paimon_field(column) for column in fields]


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
