"""Schema changes as values, and their application to a schema.

Invariant: changes apply in order, all or none. The result is a schema that `check_schema` accepts. Ids are never used
twice, and no change alters what stored rows mean.
Source: `SchemaChange`, `SchemaManager.generateTableSchema`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.options.layout_options import FILE_FORMATS
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema import change_columns as columns
from paimon.domain.schema.change_columns import ColumnPath, Position
from paimon.domain.schema.change_options import check_option_changes, rename_references, set_option
from paimon.domain.schema.table_schema import NEWEST_VERSION, TableSchema
from paimon.domain.schema.validate import check_schema
from paimon.domain.text_checks import check_names
from paimon.domain.types.data_types import DataType
from paimon.domain.types.type_text import parse_type

__all__ = [
    "AddColumn",
    "DropColumn",
    "DropPrimaryKey",
    "MoveColumn",
    "Position",
    "RemoveOption",
    "RenameColumn",
    "SchemaChange",
    "SetColumnComment",
    "SetColumnDefault",
    "SetColumnNullability",
    "SetColumnType",
    "SetComment",
    "SetOption",
    "apply_changes",
]


def _path(value: str | Sequence[str]) -> ColumnPath:
    return (value,) if isinstance(value, str) else check_names(value, "column path")


def _type(value: DataType | str) -> DataType:
    if isinstance(value, str):
        return parse_type(value)
    if not isinstance(value, DataType):
        raise InvalidRequest(
            f"Value {value!r} is not a data type", subject="type", hint="write the type as SQL text, such as 'INT'"
        )
    return value


@frozen
class AddColumn:
    """Add a column, or a field of a nested row.

    Parameters
    ----------
    path : str or sequence of str
        The column's name; for nested fields all names from the column down, with ``element``, ``key`` or ``value``
        where an array or map is entered: ``("items", "element", "price")``.
    type : DataType or str
        Must be nullable, because old rows have no value.
    comment : str, optional
        The column's comment.
    position : Position, optional
        The place among its siblings; last by default.
    """

    path: ColumnPath = field(converter=_path)
    type: DataType = field(converter=_type)
    comment: str | None = None
    position: Position | None = None


@frozen
class RenameColumn:
    """Rename a column or nested field; keys and options follow.

    Parameters
    ----------
    path : str or sequence of str
        See `AddColumn`.
    new_name : str
        The new last name of the path.
    """

    path: ColumnPath = field(converter=_path)
    new_name: str


@frozen
class DropColumn:
    """Drop a column or nested field; its stored values are never read again.

    Parameters
    ----------
    path : str or sequence of str
        See `AddColumn`.
    missing_ok : bool
        Whether a column that does not exist is ignored.
    """

    path: ColumnPath = field(converter=_path)
    missing_ok: bool = False


@frozen
class SetColumnType:
    """Change the type of a column or nested field.

    Parameters
    ----------
    path : str or sequence of str
        See `AddColumn`.
    type : DataType or str
        A type that stored values can be cast to.
    keep_nullability : bool
        Whether null stays allowed, or forbidden, as it is now.
    allow_lossy : bool
        Whether stored values that do not fit may be lost; else they end the change.
    """

    path: ColumnPath = field(converter=_path)
    type: DataType = field(converter=_type)
    keep_nullability: bool = True
    allow_lossy: bool = False


@frozen
class SetColumnNullability:
    """Allow or forbid null in a column or nested field."""

    path: ColumnPath = field(converter=_path)
    nullable: bool


@frozen
class SetColumnComment:
    """Change a column's comment; None removes it."""

    path: ColumnPath = field(converter=_path)
    comment: str | None


@frozen
class SetColumnDefault:
    """Change a column's default, the text of a literal that is written where a row has no value.

    None removes the default. Stored rows do not change.
    """

    path: ColumnPath = field(converter=_path)
    default: str | None


@frozen
class MoveColumn:
    """Move a column or nested field among its siblings."""

    path: ColumnPath = field(converter=_path)
    position: Position


@frozen
class SetOption:
    """Set a table option."""

    key: str
    value: str


@frozen
class RemoveOption:
    """Reset a table option to its default."""

    key: str


@frozen
class SetComment:
    """Change the table's comment; None removes it."""

    comment: str | None


@frozen
class DropPrimaryKey:
    """Remove the primary key of a table, which is allowed before its first snapshot only."""


SchemaChange = (
    AddColumn
    | RenameColumn
    | DropColumn
    | SetColumnType
    | SetColumnNullability
    | SetColumnComment
    | SetColumnDefault
    | MoveColumn
    | SetOption
    | RemoveOption
    | SetComment
    | DropPrimaryKey
)


def apply_changes(
    schema: TableSchema,
    changes: Sequence[SchemaChange],
    has_snapshots: bool,
    formats: Collection[str] = FILE_FORMATS,
) -> TableSchema:
    """Apply changes to a schema in order, and check the result; return `schema` itself if nothing changes.

    With `has_snapshots`, the primary key and some options are fixed. Changes that alter the meaning of stored rows are
    refused. `formats` are the file formats that a table may have.
    """
    changed = schema
    for change in changes:
        apply = _APPLY.get(type(change))
        if apply is None:
            raise InvalidRequest(
                f"Value {change!r} is not a schema change",
                subject=repr(change),
                hint="pass SQL text such as 'ADD COLUMN x INT', or paimon.AddColumn('x', 'INT')",
            )
        changed = apply(changed, change)
    if changed == schema:
        return schema
    if has_snapshots:
        touched = [c.key for c in changes if isinstance(c, SetOption | RemoveOption)]
        check_option_changes(schema.options, changed.options, touched)
        if schema.primary_keys and not changed.primary_keys:
            raise InvalidRequest(
                "The primary key cannot be dropped once the table has a snapshot",
                subject="primary-key",
                hint="create a table without a primary key, and write the rows to it",
            )
    changed = evolve(changed, version=NEWEST_VERSION)
    check_schema(changed, formats)
    return changed


def find_protected_columns(schema: TableSchema, changes: Sequence[SchemaChange]) -> frozenset[int]:
    """Return the ids of the columns whose type changes without `allow_lossy`; the changes are valid."""
    ids: set[int] = set()
    for change in changes:
        if isinstance(change, SetColumnType) and not change.allow_lossy:
            ids.add(schema.field_of(change.path[0]).id)
        schema = _APPLY[type(change)](schema, change)
    return frozenset(ids)


def _add(schema: TableSchema, change: AddColumn) -> TableSchema:
    position = change.position or columns.default_position(schema, change.path)
    fields, highest = columns.add_field(schema, change.path, change.type, change.comment, position)
    return evolve(schema, fields=fields, highest_field_id=highest)


def _rename(schema: TableSchema, change: RenameColumn) -> TableSchema:
    renamed = evolve(schema, fields=columns.rename_field(schema, change.path, change.new_name))
    if len(change.path) > 1:
        return renamed
    old, new = change.path[0], change.new_name
    return evolve(
        renamed,
        primary_keys=tuple(new if k == old else k for k in schema.primary_keys),
        options=rename_references(schema.options, old, new),
    )


def _drop(schema: TableSchema, change: DropColumn) -> TableSchema:
    try:
        return evolve(schema, fields=columns.drop_field(schema, change.path))
    except NotFound:
        if change.missing_ok:
            return schema
        raise


def _set_type(schema: TableSchema, change: SetColumnType) -> TableSchema:
    return evolve(schema, fields=columns.set_type(schema, change.path, change.type, change.keep_nullability))


def _set_nullability(schema: TableSchema, change: SetColumnNullability) -> TableSchema:
    return evolve(schema, fields=columns.set_nullability(schema, change.path, change.nullable))


def _set_column_comment(schema: TableSchema, change: SetColumnComment) -> TableSchema:
    return evolve(schema, fields=columns.set_comment(schema, change.path, change.comment))


def _set_default(schema: TableSchema, change: SetColumnDefault) -> TableSchema:
    return evolve(schema, fields=columns.set_default(schema, change.path, change.default))


def _move(schema: TableSchema, change: MoveColumn) -> TableSchema:
    return evolve(schema, fields=columns.move_field(schema, change.path, change.position))


def _set_option(schema: TableSchema, change: SetOption) -> TableSchema:
    return evolve(schema, options=set_option(schema.options, change.key, change.value))


def _remove_option(schema: TableSchema, change: RemoveOption) -> TableSchema:
    return evolve(schema, options={k: v for k, v in schema.options.items() if k != change.key})


def _set_comment(schema: TableSchema, change: SetComment) -> TableSchema:
    return evolve(schema, comment=change.comment)


def _drop_primary_key(schema: TableSchema, change: DropPrimaryKey) -> TableSchema:
    buckets = TableOptions.of(schema.options)
    options = dict(schema.options)
    if buckets.bucket > 0 and not buckets.bucket_key:
        options["bucket-key"] = ",".join(schema.trimmed_primary_keys)
    return evolve(schema, primary_keys=(), options=options)


_APPLY: Mapping[type, Callable[[TableSchema, Any], TableSchema]] = {
    AddColumn: _add,
    RenameColumn: _rename,
    DropColumn: _drop,
    SetColumnType: _set_type,
    SetColumnNullability: _set_nullability,
    SetColumnComment: _set_column_comment,
    SetColumnDefault: _set_default,
    MoveColumn: _move,
    SetOption: _set_option,
    RemoveOption: _remove_option,
    SetComment: _set_comment,
    DropPrimaryKey: _drop_primary_key,
}
