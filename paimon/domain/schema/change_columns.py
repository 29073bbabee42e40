"""Changes of columns and of fields in nested rows.

Invariant: each function returns all fields of the table and keeps every other field as it was, ids included. Keys keep
their type and stay NOT NULL.
Source: `SchemaManager.updateNestedColumn` and its siblings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, did_you_mean
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.declare import check_default
from paimon.domain.schema.rules.layout import read_flag
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.casting import can_cast, can_cast_implicitly, has_same_text
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.field_ids import assign_ids
from paimon.domain.types.type_text import format_type

ColumnPath = tuple[str, ...]
"""A column, or a nested field below it: the names from the column down."""
Column = str | Sequence[str]
"""A column by its name, or a nested field by its path: ``"place.city"``, or ``("place", "city")``."""
Fields = tuple[DataField, ...]


@frozen
class Position:
    """A place among sibling fields; use the class methods to build it.

    Parameters
    ----------
    place : str
        ``first``, ``last``, ``before`` or ``after``.
    reference : str, optional
        The sibling that ``before`` and ``after`` refer to.
    """

    place: str
    reference: str | None = None

    @classmethod
    def first(cls) -> Position:
        """Return the place in front of all siblings."""
        return cls("first")

    @classmethod
    def last(cls) -> Position:
        """Return the place after all siblings."""
        return cls("last")

    @classmethod
    def before(cls, name: str) -> Position:
        """Return the place in front of the sibling `name`."""
        return cls("before", name)

    @classmethod
    def after(cls, name: str) -> Position:
        """Return the place after the sibling `name`."""
        return cls("after", name)


def to_column_path(schema: TableSchema, name: Column) -> ColumnPath:
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


_BEFORE_PARTITION = "add-column-before-partition"
_NO_NEW_NOT_NULL = "alter-column-null-to-not-null.disabled"
_ONLY_IMPLICIT_CASTS = "disable-explicit-type-casting"
OPTIONS_OF_CHANGES = (_BEFORE_PARTITION, _NO_NEW_NOT_NULL, _ONLY_IMPLICIT_CASTS)
"""The options that decide which changes of columns are allowed, and where new columns are."""


def add_field(
    schema: TableSchema, path: ColumnPath, data_type: DataType, comment: str | None, position: Position
) -> tuple[Fields, int]:
    """Add a nullable field at a path with its new name; return all fields and the highest id."""
    if not data_type.nullable:
        raise InvalidRequest(
            f"New column {'.'.join(path)!r} is NOT NULL, but stored rows have no value for it",
            subject=path[-1],
            hint="add the column as nullable",
        )
    (made,), highest = assign_ids((DataField(0, path[-1], data_type, comment),), schema.highest_field_id + 1)

    def insert(fields: Fields, name: str) -> Fields:
        """Insert the new field among its siblings."""
        _refuse_existing(fields, name)
        return _insert_at_position(fields, made, position)

    return _edit(schema.fields, path, insert), highest


def default_position(schema: TableSchema, path: ColumnPath) -> Position:
    """Return the place of a new column: last, or in front of trailing partition columns where an option asks for it."""
    names, partition = schema.names, set(schema.partition_keys)
    if len(path) == 1 and partition and read_flag(TableOptions.of(schema.options), _BEFORE_PARTITION):
        return Position.before(next(n for n in names if n in partition))
    return Position.last()


def rename_field(schema: TableSchema, path: ColumnPath, new_name: str) -> Fields:
    """Rename a field."""
    _refuse_keys(path, schema.partition_keys, "renamed", "partition")

    def change(fields: Fields, name: str) -> Fields:
        """Rename the field among its siblings."""
        column = _find(fields, name)
        _refuse_existing(fields, new_name)
        return _swap_field(fields, column, evolve(column, name=new_name))

    return _edit(schema.fields, path, change)


def drop_field(schema: TableSchema, path: ColumnPath) -> Fields:
    """Drop a field that is neither part of a key nor the only field of its row."""
    _refuse_keys(path, schema.partition_keys, "dropped", "partition")
    _refuse_keys(path, schema.primary_keys, "dropped", "primary key")

    def change(fields: Fields, name: str) -> Fields:
        """Drop the field from its siblings."""
        column = _find(fields, name)
        if len(fields) == 1:
            raise InvalidRequest(
                f"Column {'.'.join(path)!r} cannot be dropped, because it is the only one", subject=name
            )
        return tuple(f for f in fields if f is not column)

    return _edit(schema.fields, path, change)


def set_type(schema: TableSchema, path: ColumnPath, data_type: DataType, keep_nullability: bool) -> Fields:
    """Set a type that stored values can be cast to; `keep_nullability` ignores that of `data_type`."""
    _refuse_keys(path, schema.partition_keys, "given another type", "partition")
    _refuse_keys(path, schema.primary_keys, "given another type", "primary key")
    options = TableOptions.of(schema.options)

    def change(fields: Fields, name: str) -> Fields:
        """Change the type of the field among its siblings."""
        column = _find(fields, name)
        nullable = column.type.nullable if keep_nullability else data_type.nullable
        # A type that reads the same keeps the ids of its nested fields.
        wanted = (column.type if has_same_text(column.type, data_type) else data_type).with_nullable(nullable)
        _check_nullability(column, wanted.nullable, options, path)
        _check_cast(column.type, wanted, options, path)
        changed = evolve(column, type=wanted)
        check_default(changed)
        return _swap_field(fields, column, changed)

    return _edit(schema.fields, path, change)


def set_nullability(schema: TableSchema, path: ColumnPath, nullable: bool) -> Fields:
    """Allow or forbid null in a field."""
    _refuse_keys(path, schema.primary_keys, "made nullable or not", "primary key")

    def change(fields: Fields, name: str) -> Fields:
        """Change the nullability of the field among its siblings."""
        column = _find(fields, name)
        _check_nullability(column, nullable, TableOptions.of(schema.options), path)
        return _swap_field(fields, column, evolve(column, type=column.type.with_nullable(nullable)))

    return _edit(schema.fields, path, change)


def set_comment(schema: TableSchema, path: ColumnPath, comment: str | None) -> Fields:
    """Change the comment of a field; None removes it."""
    return _edit(schema.fields, path, lambda fields, name: _change_field(fields, name, description=comment))


def set_default(schema: TableSchema, path: ColumnPath, default: str | None) -> Fields:
    """Change the default value of a field: the text of an SQL literal. None removes the default."""

    def change(fields: Fields, name: str) -> Fields:
        """Change the default of the field among its siblings."""
        changed = _change_field(fields, name, default_value=default)
        check_default(_find(changed, name))
        return changed

    return _edit(schema.fields, path, change)


def move_field(schema: TableSchema, path: ColumnPath, position: Position) -> Fields:
    """Move a field among its siblings. A position that refers to the field itself is refused."""

    def change(fields: Fields, name: str) -> Fields:
        """Move the field among its siblings."""
        column = _find(fields, name)
        if position.reference == name:
            raise InvalidRequest(f"Column {name!r} cannot be moved next to itself", subject=name)
        return _insert_at_position(tuple(f for f in fields if f is not column), column, position)

    return _edit(schema.fields, path, change)


def _edit(fields: Fields, path: ColumnPath, change: Callable[[Fields, str], Fields]) -> Fields:
    """Apply ``change(siblings, name)`` where the path leads, and return all fields."""
    name, *rest = path
    if not rest:
        return change(fields, name)
    column = _find(fields, name)
    return _swap_field(fields, column, evolve(column, type=_edit_type(column.type, tuple(rest), change)))


def _edit_type(data_type: DataType, path: ColumnPath, change: Callable[[Fields, str], Fields]) -> DataType:
    match data_type:
        case dt.RowType(fields=fields):
            return evolve(data_type, fields=_edit(fields, path, change))
        case dt.ArrayType() | dt.MultisetType():
            (element,) = _edit_parts((DataField(-1, "element", data_type.element),), path, change)
            return evolve(data_type, element=element)
        case dt.MapType():
            parts = (DataField(-1, "key", data_type.key), DataField(-1, "value", data_type.value))
            key, value = _edit_parts(parts, path, change)
            return evolve(data_type, key=key, value=value)
    raise NotFound("field", path[0], hint=f"the type {format_type(data_type)} has no fields")


def _edit_parts(parts: Fields, path: ColumnPath, change: Callable[[Fields, str], Fields]) -> tuple[DataType, ...]:
    changed = _edit(parts, path, change)
    if [f.name for f in changed] != [f.name for f in parts]:
        raise InvalidRequest(
            f"Path part {path[0]!r} is the element, key or value of a collection, not a field", subject=path[0]
        )
    return tuple(f.type for f in changed)


def _find(fields: Fields, name: str) -> DataField:
    for column in fields:
        if column.name == name:
            return column
    raise NotFound("column", name, hint=did_you_mean(name, [f.name for f in fields]))


def _swap_field(fields: Fields, old: DataField, new: DataField) -> Fields:
    return tuple(new if f is old else f for f in fields)


def _change_field(fields: Fields, name: str, **parts: str | None) -> Fields:
    column = _find(fields, name)
    return _swap_field(fields, column, evolve(column, **parts))  # type: ignore[arg-type]


def _insert_at_position(others: Fields, column: DataField, position: Position) -> Fields:
    if position.reference is None:
        return (column, *others) if position.place == "first" else (*others, column)
    at = others.index(_find(others, position.reference)) + (position.place == "after")
    return (*others[:at], column, *others[at:])


def _refuse_existing(fields: Fields, name: str) -> None:
    if any(f.name == name for f in fields):
        raise AlreadyExists("column", name)


def _refuse_keys(path: ColumnPath, keys: tuple[str, ...], done: str, kind: str) -> None:
    if len(path) == 1 and path[0] in keys:
        raise InvalidRequest(f"Column {path[0]!r} cannot be {done}, because it is a {kind} column", subject=path[0])


def _check_nullability(column: DataField, nullable: bool, options: TableOptions, path: ColumnPath) -> None:
    if column.type.nullable and not nullable and read_flag(options, _NO_NEW_NOT_NULL):
        raise InvalidRequest(
            f"Column {'.'.join(path)!r} may contain nulls and cannot become NOT NULL",
            subject=column.name,
            hint=f"if it contains none, set option {_NO_NEW_NOT_NULL!r} to false",
        )


def _check_cast(held: DataType, wanted: DataType, options: TableOptions, path: ColumnPath) -> None:
    only_implicit = read_flag(options, _ONLY_IMPLICIT_CASTS)
    if can_cast_implicitly(held, wanted) or (can_cast(held, wanted) and not only_implicit):
        return
    raise InvalidRequest(
        f"Column {'.'.join(path)!r} of type {format_type(held)} cannot become {format_type(wanted)}",
        subject=path[-1],
        hint="set 'disable-explicit-type-casting' to false to allow explicit casts"
        if only_implicit
        else "add a new column instead",
    )
