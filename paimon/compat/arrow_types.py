"""Conversions between the types of pypaimon and Arrow.

Source: `PyarrowFieldParser` in `pypaimon.schema.data_types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from paimon.compat.data_types import (
    ArrayType,
    AtomicInteger,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    VectorType,
    from_paimon_type,
    to_paimon_type,
)
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type, fields_from_arrow


class PyarrowFieldParser:
    """Convert between fields and Arrow."""

    @staticmethod
    def from_paimon_type(data_type: DataType) -> pa.DataType:
        """Return the Arrow type in which pypaimon returns a type."""
        return arrow_type_of(to_paimon_type(data_type))

    @staticmethod
    def from_paimon_field(data_field: DataField) -> pa.Field:
        """Return the Arrow field of a field."""
        metadata = {b"description": data_field.description.encode()} if data_field.description else None
        kind = PyarrowFieldParser.from_paimon_type(data_field.type)
        return pa.field(data_field.name, kind, nullable=data_field.type.nullable, metadata=metadata)

    @staticmethod
    def from_paimon_schema(data_fields: Iterable[DataField]) -> pa.Schema:
        """Return the Arrow schema of fields."""
        return pa.schema([PyarrowFieldParser.from_paimon_field(field) for field in data_fields])

    @staticmethod
    def to_paimon_type(pa_type: pa.DataType, nullable: bool) -> DataType:
        """Return the type that holds all values of an Arrow type."""
        return PyarrowFieldParser.to_paimon_field(0, pa.field("value", pa_type, nullable=nullable)).type

    @staticmethod
    def to_paimon_field(field_idx: int, pa_field: pa.Field) -> DataField:
        """Return the field of an Arrow field, with this id."""
        made = PyarrowFieldParser.to_paimon_schema(pa.schema([pa_field]))[0]
        made.id = field_idx
        return made

    @staticmethod
    def to_paimon_schema(pa_schema: pa.Schema) -> list[DataField]:
        """Return the fields of an Arrow schema, with ids that are unique."""
        counter = AtomicInteger(-1)
        made = []
        for column in pa_schema:
            number = counter.increment_and_get()
            description = (column.metadata or {}).get(b"description")
            text = None if description is None else description.decode()
            made.append(DataField(number, column.name, _type_of(column, counter), text))
        return made


def _type_of(column: pa.Field, counter: AtomicInteger) -> DataType:
    """Return the type of an Arrow field; nested fields take their ids from the counter."""
    kind, nullable = column.type, column.nullable
    types = pa.types
    if types.is_large_binary(kind):
        return AtomicType("BLOB", nullable)
    if types.is_time(kind):
        return AtomicType("TIME(0)", nullable)
    if types.is_fixed_size_list(kind):
        return VectorType(nullable, _type_of(kind.value_field, counter), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        return ArrayType(nullable, _type_of(kind.value_field, counter))
    if types.is_map(kind):
        return MapType(nullable, _type_of(kind.key_field, counter), _type_of(kind.item_field, counter))
    plain = fields_from_arrow(pa.schema([column]))[0].type
    if not isinstance(plain, dt.RowType):
        return from_paimon_type(plain)
    parts = []
    for part in kind:
        inner = _type_of(part, counter)
        parts.append(DataField(counter.increment_and_get(), part.name, inner))
    return RowType(nullable, parts)


def arrow_schema_of(fields: Sequence[dt.DataField]) -> pa.Schema:
    """Return the Arrow schema in which pypaimon returns columns."""
    return pa.schema([_arrow_field_of(field.name, field.type, field.description) for field in fields])


def _arrow_field_of(name: str, data_type: dt.DataType, description: str | None = None) -> pa.Field:
    metadata = {b"description": description.encode()} if description else None
    return pa.field(name, arrow_type_of(data_type), nullable=data_type.nullable, metadata=metadata)


def arrow_type_of(data_type: dt.DataType) -> pa.DataType:
    """Return the Arrow type in which pypaimon returns a type: its parts have other names than in this library."""
    match data_type:
        case dt.BlobType():
            return pa.large_binary()
        case dt.ArrayType():
            return pa.list_(_arrow_field_of("item", data_type.element))
        case dt.VectorType():
            return pa.list_(arrow_type_of(data_type.element), data_type.length)
        case dt.MapType():
            key = pa.field("key", arrow_type_of(data_type.key), nullable=False)
            return pa.map_(key, _arrow_field_of("value", data_type.value))
        case dt.RowType():
            return pa.struct([_arrow_field_of(f.name, f.type) for f in data_type.fields])
    return arrow_type(data_type)


def to_plain_texts(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type with `string` in place of `large_string`, also in its children."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(to_plain_texts(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(to_plain_texts(kind.key_type), to_plain_texts(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(to_plain_texts(kind.value_type), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(to_plain_texts(kind.value_type))
    return kind
