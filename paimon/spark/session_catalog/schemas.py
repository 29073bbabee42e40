"""Convert the columns, the properties and the changes of Spark's statements to those of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, frozen
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
    _parse_datatype_json_string,
)

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.schema import changes as to
from paimon.domain.schema.external_paths import list_copied_options
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.domain.types.ddl import to_fields
from paimon.spark.session_catalog.defaults import read_default
from paimon.spark.session_catalog.jvm import Jvm, to_python_type
from paimon.spark.types import quote_column, to_batch_schema

PRIMARY_KEY = "primary-key"
_PROVIDER, _LOCATION, _COMMENT, _OPTION = "provider", "location", "comment", "option."
LENGTHS = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of the metadata of a column under which Spark has its type with the lengths of texts."""
_IGNORED = frozenset({"owner", "external", "is_managed_location", "table_type", "collation"})
"""Properties that Spark adds by itself."""


@frozen
class Declaration:
    """A table that a statement creates."""

    fields: tuple[DataField, ...]
    schema: StructType
    primary_keys: tuple[str, ...]
    partition_keys: tuple[str, ...]
    options: Mapping[str, str]
    comment: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `Catalog.create_table` next to name and columns."""
        return {
            "primary_keys": self.primary_keys,
            "partition_keys": self.partition_keys,
            "options": self.options,
            "comment": self.comment,
        }


def read_declaration(jvm: Jvm, columns: Any, transforms: Any, properties: Any, constraints: Any = ()) -> Declaration:
    """Return what a CREATE TABLE declares; refuse a provider, a location and transforms that tables do not have."""
    given = jvm.read_json(properties)
    # `saveAsTable` gives the provider of the session where the caller gives none.
    default_provider = str(jvm.spark.conf.get("spark.sql.sources.default"))
    if given.get(_PROVIDER, "paimon").lower() not in {"paimon", default_provider.lower()}:
        name = given[_PROVIDER]
        raise InvalidRequest(f"This catalog has no tables of {name!r}.", subject=name, hint="write USING paimon")
    if _LOCATION in given:
        hint = "leave out LOCATION: the warehouse decides where its tables are"
        raise InvalidRequest("A table of this catalog takes no location.", subject=given[_LOCATION], hint=hint)
    plain = {k.removeprefix(_OPTION): v for k, v in given.items() if k not in _IGNORED | {_PROVIDER, _COMMENT}}
    described = jvm.read_json(columns)
    schema = StructType([
        StructField(c["name"], _parse_datatype_json_string(c["type"]), c["nullable"]) for c in described
    ])  # fmt: skip
    return Declaration(
        tuple(
            _to_field(jvm, schema[n], found, columns[n] if found["default"] else None)
            for n, found in enumerate(described)
        ),
        schema,
        _read_keys(constraints, _split_names(plain.pop(PRIMARY_KEY, ""))),
        tuple(_to_partition_key(transform) for transform in transforms),
        plain,
        given.get(_COMMENT),
    )


def add_options(declared: Declaration, options: Mapping[str, str]) -> Declaration:
    """Return a declaration with more table options, among them the primary key."""
    plain = {**declared.options, **options}
    keys = plain.pop(PRIMARY_KEY, None)
    primary_keys = declared.primary_keys if keys is None else _split_names(keys)
    return evolve(declared, options=plain, primary_keys=primary_keys)


def copy_declaration(model: TableSchema, declared: Declaration) -> Declaration:
    """Return the declaration of a table like another one; what the statement itself declares takes precedence."""
    return evolve(
        declared,
        fields=model.fields,
        primary_keys=declared.primary_keys or model.primary_keys,
        options={**list_copied_options(model.options), **declared.options},
        comment=declared.comment if declared.comment is not None else model.comment,
    )


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _to_partition_key(transform: Any) -> str:
    if str(transform.name()) != "identity":
        hint = "use the column itself; give the options bucket and bucket-key in TBLPROPERTIES"
        raise Unsupported(f"PARTITIONED BY {transform.toString()}", hint=hint)
    return str(transform.references()[0].fieldNames()[0])


def _read_keys(constraints: Any, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of the constraint PRIMARY KEY, or those that the properties give; refuse other constraints."""
    keys = given
    for constraint in constraints:
        if constraint.getClass().getSimpleName() != "PrimaryKey":
            raise Unsupported(str(constraint.toDDL()), hint="check the rows before they are written")
        keys = tuple(str(column.fieldNames()[0]) for column in constraint.columns())
        if given not in ((), keys):
            wrong = f"The table has two primary keys: {', '.join(given)}, and {', '.join(keys)}."
            raise InvalidRequest(wrong, subject=PRIMARY_KEY, hint="give PRIMARY KEY or the property 'primary-key'")
    return keys


def _to_field(jvm: Jvm, column: StructField, described: Mapping[str, Any], with_default: Any) -> DataField:
    """Return a column; `with_default` is the one of Java if it has a default."""
    name, text = column.name, None
    if described["generated"]:
        raise Unsupported(f"GENERATED of column {name!r}", hint="compute the column in the INSERT")
    if with_default is not None:
        text = read_default(jvm, name, str(with_default.defaultValue().getSql()), with_default.dataType())
    made = to_field(name, column.dataType, column.nullable)
    return evolve(made, description=described["comment"], default_value=text)


def to_field(name: str, kind: DataType, nullable: bool) -> DataField:
    """Return a column of a table for one of Spark."""
    (made,) = to_fields(to_batch_schema(StructType([StructField(name, kind, nullable)])))
    return evolve(made, type=_add_lengths(made.type, kind))


def _add_lengths(made: dt.DataType, kind: DataType) -> dt.DataType:
    """Return a type of a table with the lengths of `CHAR` and `VARCHAR` in Spark's type, which Arrow lacks."""
    match kind, made:
        case CharType(), _:
            return dt.CharType(kind.length, nullable=made.nullable)
        case VarcharType(), _:
            return dt.VarCharType(kind.length, nullable=made.nullable)
        case ArrayType(), dt.ArrayType():
            return evolve(made, element=_add_lengths(made.element, kind.elementType))
        case MapType(), dt.MapType():
            key, value = _add_lengths(made.key, kind.keyType), _add_lengths(made.value, kind.valueType)
            return evolve(made, key=key, value=value)
        case StructType(), dt.RowType():
            pairs = zip(made.fields, kind, strict=True)
            return evolve(made, fields=tuple(evolve(f, type=_add_lengths(f.type, c.dataType)) for f, c in pairs))
    return made


def list_lengths(kind: DataType, stored: dt.DataType) -> dict[str, str]:
    """Return the metadata of a column with `CHAR` or `VARCHAR` in it, by which Spark pads and checks its texts."""
    declared = _declare_type(kind, stored)
    return {} if declared == kind else {LENGTHS: _format_type(declared)}


def _declare_type(kind: DataType, stored: dt.DataType) -> DataType:
    match kind, stored:
        case StringType(), dt.CharType():
            return CharType(stored.length)
        case StringType(), dt.VarCharType() if stored.length < dt.MAX_LENGTH:
            return VarcharType(stored.length)
        case ArrayType(), dt.ArrayType():
            return ArrayType(_declare_type(kind.elementType, stored.element), kind.containsNull)
        case MapType(), dt.MapType():
            key, value = _declare_type(kind.keyType, stored.key), _declare_type(kind.valueType, stored.value)
            return MapType(key, value, kind.valueContainsNull)
        case StructType(), dt.RowType():
            pairs = zip(kind, stored.fields, strict=True)
            return StructType([StructField(f.name, _declare_type(f.dataType, s.type), f.nullable) for f, s in pairs])
    return kind


def _format_type(kind: DataType) -> str:
    """Return a type as Spark parses it, also with names that need quotes."""
    match kind:
        case ArrayType():
            return f"array<{_format_type(kind.elementType)}>"
        case MapType():
            return f"map<{_format_type(kind.keyType)},{_format_type(kind.valueType)}>"
        case StructType():
            return f"struct<{','.join(f'{quote_column(f.name)}:{_format_type(f.dataType)}' for f in kind)}>"
    return str(kind.simpleString())


def read_changes(jvm: Jvm, fields: Iterable[StructField], given: Iterable[Any]) -> list[to.SchemaChange]:
    """Return the changes of an ALTER TABLE of columns `fields`; refuse those that a table does not have."""
    types, given = {field.name: field.dataType for field in fields}, list(given)
    kinds = [str(change.getClass().getSimpleName()) for change in given]
    if kinds.count("DeleteColumn") == len(types) and "AddColumn" in kinds:
        hint = "rename, drop and add columns, or ALTER COLUMN … TYPE: rows that exist would lose all values"
        raise Unsupported("ALTER TABLE … REPLACE COLUMNS", hint=hint)
    return [
        _read_default(jvm, types, change) if kind == "UpdateColumnDefaultValue" else _read_change(change)
        for kind, change in zip(kinds, given, strict=True)
    ]


def _read_default(jvm: Jvm, types: Mapping[str, DataType], change: Any) -> to.SchemaChange:
    path, sql = tuple(str(name) for name in change.fieldNames()), str(change.newDefaultValue() or "")
    if not sql or len(path) > 1:
        return to.SetColumnDefault(path, sql or None)
    return to.SetColumnDefault(path, read_default(jvm, path[0], sql, jvm.to_java_type(types[path[0]])))


def _read_change(change: Any) -> to.SchemaChange:
    kind = str(change.getClass().getSimpleName())
    match kind:
        case "SetProperty" if change.property() == _COMMENT:
            return to.SetComment(str(change.value()))
        case "SetProperty":
            return to.SetOption(str(change.property()), str(change.value()))
        case "RemoveProperty" if change.property() == _COMMENT:
            return to.SetComment(None)
        case "RemoveProperty":
            return to.RemoveOption(str(change.property()))
    if kind.endswith("Constraint"):
        hint = "a primary key is given when a table is created; check rows before they are written"
        raise Unsupported(f"{kind} of ALTER TABLE on Spark", hint=hint)
    if not kind.endswith("Column") and not kind.startswith("UpdateColumn"):
        raise Unsupported(f"{kind} of ALTER TABLE on Spark", hint="use paimon.spark.connect(…).sql, or Table.alter")
    return _read_column_change(kind, change, tuple(str(name) for name in change.fieldNames()))


def _read_column_change(kind: str, change: Any, path: tuple[str, ...]) -> to.SchemaChange:
    match kind:
        case "AddColumn" if change.defaultValue() is not None:
            hint = "add the column, then ALTER COLUMN … SET DEFAULT: rows that exist have null in it"
            raise Unsupported(f"DEFAULT of the new column {path[-1]!r}", hint=hint)
        case "AddColumn":
            made = to_field(path[-1], to_python_type(change.dataType()), bool(change.isNullable()))
            return to.AddColumn(path, made.type, change.comment(), _to_position(change.position()))
        case "RenameColumn":
            return to.RenameColumn(path, str(change.newName()))
        case "DeleteColumn":
            return to.DropColumn(path)
        case "UpdateColumnType":
            made = to_field(path[-1], to_python_type(change.newDataType()), True)
            return to.SetColumnType(path, made.type, keep_nullability=True)
        case "UpdateColumnNullability":
            return to.SetColumnNullability(path, bool(change.nullable()))
        case "UpdateColumnComment":
            return to.SetColumnComment(path, change.newComment())
        case "UpdateColumnPosition":
            return to.MoveColumn(path, _to_position(change.position()))
    raise Unsupported(f"{kind} of ALTER TABLE on Spark", hint="use paimon.spark.connect(…).sql, or Table.alter")


def _to_position(given: Any) -> to.Position:
    if given is None:
        return to.Position.last()
    text = str(given.getClass().getSimpleName())
    return to.Position.first() if text == "First" else to.Position.after(str(given.column()))
