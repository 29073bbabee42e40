"""Changes of columns and of fields in nested rows.

Law: each function answers all fields of the table anew and leaves every other field as it was, ids included; keys
keep their type and stay NOT NULL. Source: `SchemaManager.updateNestedColumn` and its siblings.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, did_you_mean
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.declare import check_default
from paimon.domain.schema.rules.layout import flag
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.casting import can_cast, casts_implicitly, same_text
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.ids import assign_ids
from paimon.domain.types.text import format_type

Path = tuple[str, ...]
Fields = tuple[DataField, ...]


@frozen
class Position:
    """A place among siblings: ``first``, ``last``, or ``before`` / ``after`` the field `reference`."""

    place: str
    reference: str | None = None

    @classmethod
    def first(cls) -> Position:
        """In front."""
        return cls("first")

    @classmethod
    def last(cls) -> Position:
        """At the end."""
        return cls("last")

    @classmethod
    def before(cls, name: str) -> Position:
        """In front of another."""
        return cls("before", name)

    @classmethod
    def after(cls, name: str) -> Position:
        """Behind another."""
        return cls("after", name)


def add(
    schema: TableSchema, path: Path, data_type: DataType, comment: str | None, position: Position
) -> tuple[Fields, int]:
    """The fields with a new one, and the highest id."""
    if not data_type.nullable:
        raise InvalidRequest(
            f"the new column {'.'.join(path)!r} is NOT NULL, but stored rows have no value for it",
            subject=path[-1], hint="add it as nullable",
        )
    (made,), highest = assign_ids((DataField(0, path[-1], data_type, comment),), schema.highest_field_id + 1)

    def insert(fields: Fields, name: str) -> Fields:
        _refuse_existing(fields, name)
        return _placed(fields, made, position)

    return _edit(schema.fields, path, insert), highest


def default_position(schema: TableSchema, path: Path) -> Position:
    """Where a new column goes: last, or before the partition columns at the end where an option says so."""
    names, partition = schema.names, set(schema.partition_keys)
    if len(path) == 1 and partition and flag(TableOptions.of(schema.options), "add-column-before-partition"):
        return Position.before(next(n for n in names if n in partition))
    return Position.last()


def rename(schema: TableSchema, path: Path, new_name: str) -> Fields:
    """The fields with one of another name."""
    _refuse_keys(path, schema.partition_keys, "renamed", "partition")

    def change(fields: Fields, name: str) -> Fields:
        column = _find(fields, name)
        _refuse_existing(fields, new_name)
        return _swapped(fields, column, evolve(column, name=new_name))

    return _edit(schema.fields, path, change)


def drop(schema: TableSchema, path: Path) -> Fields:
    """The fields without one."""
    _refuse_keys(path, schema.partition_keys, "dropped", "partition")
    _refuse_keys(path, schema.primary_keys, "dropped", "primary key")

    def change(fields: Fields, name: str) -> Fields:
        column = _find(fields, name)
        if len(fields) == 1:
            raise InvalidRequest(f"{'.'.join(path)!r} is the last field and cannot be dropped", subject=name)
        return tuple(f for f in fields if f is not column)

    return _edit(schema.fields, path, change)


def set_type(schema: TableSchema, path: Path, data_type: DataType, keep_nullability: bool) -> Fields:
    """The fields with one of another type, into which stored values can be cast."""
    _refuse_keys(path, schema.partition_keys, "given another type", "partition")
    _refuse_keys(path, schema.primary_keys, "given another type", "primary key")
    options = TableOptions.of(schema.options)

    def change(fields: Fields, name: str) -> Fields:
        column = _find(fields, name)
        nullable = column.type.nullable if keep_nullability else data_type.nullable
        # A type that reads the same keeps the ids of its nested fields.
        wanted = (column.type if same_text(column.type, data_type) else data_type).with_nullable(nullable)
        _check_nullability(column, wanted.nullable, options, path)
        _check_cast(column.type, wanted, options, path)
        changed = evolve(column, type=wanted)
        check_default(changed)
        return _swapped(fields, column, changed)

    return _edit(schema.fields, path, change)


def set_nullability(schema: TableSchema, path: Path, nullable: bool) -> Fields:
    """The fields with one that may, or must not, be null."""
    _refuse_keys(path, schema.primary_keys, "made nullable or not", "primary key")

    def change(fields: Fields, name: str) -> Fields:
        column = _find(fields, name)
        _check_nullability(column, nullable, TableOptions.of(schema.options), path)
        return _swapped(fields, column, evolve(column, type=column.type.with_nullable(nullable)))

    return _edit(schema.fields, path, change)


def set_comment(schema: TableSchema, path: Path, comment: str | None) -> Fields:
    """The fields with one of another comment."""
    return _edit(schema.fields, path, lambda fields, name: _replaced(fields, name, description=comment))


def set_default(schema: TableSchema, path: Path, default: str | None) -> Fields:
    """The fields with one of another default value."""

    def change(fields: Fields, name: str) -> Fields:
        changed = _replaced(fields, name, default_value=default)
        check_default(_find(changed, name))
        return changed

    return _edit(schema.fields, path, change)


def move(schema: TableSchema, path: Path, position: Position) -> Fields:
    """The fields with one in another place."""

    def change(fields: Fields, name: str) -> Fields:
        column = _find(fields, name)
        if position.reference == name:
            raise InvalidRequest(f"column {name!r} cannot be moved next to itself", subject=name)
        return _placed(tuple(f for f in fields if f is not column), column, position)

    return _edit(schema.fields, path, change)


def _edit(fields: Fields, path: Path, change: Callable[[Fields, str], Fields]) -> Fields:
    """The fields after `change(siblings, name)` was applied where the path leads."""
    name, *rest = path
    if not rest:
        return change(fields, name)
    column = _find(fields, name)
    return _swapped(fields, column, evolve(column, type=_edit_type(column.type, tuple(rest), change)))


def _edit_type(data_type: DataType, path: Path, change: Callable[[Fields, str], Fields]) -> DataType:
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
    raise NotFound("field", path[0], hint=f"{format_type(data_type)} has no fields")


def _edit_parts(parts: Fields, path: Path, change: Callable[[Fields, str], Fields]) -> tuple[DataType, ...]:
    changed = _edit(parts, path, change)
    if [f.name for f in changed] != [f.name for f in parts]:
        raise InvalidRequest(f"{path[0]!r} is part of an array or map, not a field", subject=path[0])
    return tuple(f.type for f in changed)


def _find(fields: Fields, name: str) -> DataField:
    for column in fields:
        if column.name == name:
            return column
    raise NotFound("column", name, hint=did_you_mean(name, [f.name for f in fields]))


def _swapped(fields: Fields, old: DataField, new: DataField) -> Fields:
    return tuple(new if f is old else f for f in fields)


def _replaced(fields: Fields, name: str, **parts: str | None) -> Fields:
    column = _find(fields, name)
    return _swapped(fields, column, evolve(column, **parts))  # type: ignore[arg-type]


def _placed(others: Fields, column: DataField, position: Position) -> Fields:
    if position.reference is None:
        return (column, *others) if position.place == "first" else (*others, column)
    at = others.index(_find(others, position.reference)) + (position.place == "after")
    return (*others[:at], column, *others[at:])


def _refuse_existing(fields: Fields, name: str) -> None:
    if any(f.name == name for f in fields):
        raise AlreadyExists("column", name)


def _refuse_keys(path: Path, keys: tuple[str, ...], done: str, kind: str) -> None:
    if len(path) == 1 and path[0] in keys:
        raise InvalidRequest(f"the {kind} column {path[0]!r} cannot be {done}", subject=path[0])


def _check_nullability(column: DataField, nullable: bool, options: TableOptions, path: Path) -> None:
    key = "alter-column-null-to-not-null.disabled"
    if column.type.nullable and not nullable and flag(options, key):
        raise InvalidRequest(
            f"column {'.'.join(path)!r} may hold nulls and cannot become NOT NULL", subject=column.name,
            hint=f"if it holds none, set option {key!r} to false",
        )


def _check_cast(held: DataType, wanted: DataType, options: TableOptions, path: Path) -> None:
    only_implicit = flag(options, "disable-explicit-type-casting")
    if casts_implicitly(held, wanted) or (can_cast(held, wanted) and not only_implicit):
        return
    raise InvalidRequest(
        f"column {'.'.join(path)!r} of type {format_type(held)} cannot become {format_type(wanted)}", subject=path[-1],
        hint="option 'disable-explicit-type-casting' forbids it" if only_implicit else "add a new column instead",
    )
