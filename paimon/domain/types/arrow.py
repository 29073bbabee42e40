"""Conversions between data types of the format and Arrow types.

Invariant: every data type has one canonical Arrow type. `fields_from_arrow(arrow_schema(f))` is `f` up to ids, column
descriptions and defaults. What Arrow cannot express (CHAR(n), TIME(p), MULTISET, BLOB …) is text in the field
metadata `paimon.type`. An Arrow type without metadata becomes the nearest data type that holds all its values.
Source: `ArrowFieldTypeConversion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import pyarrow as pa

from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.field_ids import assign_ids
from paimon.domain.types.type_text import MAX_DEPTH, format_type, parse_type

TYPE_METADATA = b"paimon.type"
DESCRIPTION_METADATA = b"description"

_VARIANT_MARK = b"variant"
"""The metadata of the field `metadata` by which Spark knows a VARIANT from a ROW."""
_PLAIN: dict[type[DataType], pa.DataType] = {
    dt.BooleanType: pa.bool_(),
    dt.TinyIntType: pa.int8(),
    dt.SmallIntType: pa.int16(),
    dt.IntType: pa.int32(),
    dt.BigIntType: pa.int64(),
    dt.FloatType: pa.float32(),
    dt.DoubleType: pa.float64(),
    dt.CharType: pa.string(),
    dt.VarCharType: pa.string(),
    dt.BinaryType: pa.binary(),
    dt.VarBinaryType: pa.binary(),
    dt.BlobType: pa.binary(),
    dt.DateType: pa.date32(),
    dt.TimeType: pa.time32("ms"),
    dt.VariantType: pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata={_VARIANT_MARK: b"true"}),
        ]
    ),
}
_FROM_PLAIN: dict[pa.DataType, DataType] = {
    pa.bool_(): dt.BooleanType(),
    pa.int8(): dt.TinyIntType(),
    pa.int16(): dt.SmallIntType(),
    pa.int32(): dt.IntType(),
    pa.int64(): dt.BigIntType(),
    pa.uint8(): dt.SmallIntType(),
    pa.uint16(): dt.IntType(),
    pa.uint32(): dt.BigIntType(),
    pa.uint64(): dt.DecimalType(20, 0),
    pa.float16(): dt.FloatType(),
    pa.float32(): dt.FloatType(),
    pa.float64(): dt.DoubleType(),
    pa.string(): dt.VarCharType(),
    pa.large_string(): dt.VarCharType(),
    pa.string_view(): dt.VarCharType(),
    pa.binary(): dt.VarBinaryType(),
    pa.large_binary(): dt.VarBinaryType(),
    pa.binary_view(): dt.VarBinaryType(),
    pa.date32(): dt.DateType(),
    pa.date64(): dt.DateType(),
    pa.time32("s"): dt.TimeType(0),
    pa.time32("ms"): dt.TimeType(3),
    pa.time64("us"): dt.TimeType(3),
    pa.time64("ns"): dt.TimeType(3),
}
_UNIT_PRECISIONS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
UNIT_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""Nanoseconds of an Arrow unit of time."""


def timestamp_unit(precision: int) -> str:
    """Return the Arrow unit that holds timestamps of a precision (0 to 9 digits).

    >>> [timestamp_unit(precision) for precision in (0, 3, 6, 9)]
    ['s', 'ms', 'us', 'ns']
    """
    return next(unit for unit, digits in _UNIT_PRECISIONS.items() if precision <= digits)


def arrow_type(data_type: DataType) -> pa.DataType:
    """Return the canonical Arrow type of a data type; nullability inside nested types is kept.

    >>> arrow_type(dt.DecimalType(10, 2))
    Decimal128Type(decimal128(10, 2))
    """
    match data_type:
        case dt.DecimalType():
            return pa.decimal128(data_type.precision, data_type.scale)
        case dt.TimestampType():
            return pa.timestamp(timestamp_unit(data_type.precision))
        case dt.LocalZonedTimestampType():
            return pa.timestamp(timestamp_unit(data_type.precision), tz="UTC")
        case dt.ArrayType():
            return pa.list_(_part("element", data_type.element))
        case dt.VectorType():
            return pa.list_(_part("element", data_type.element), data_type.length)
        case dt.MapType():
            return pa.map_(arrow_type(data_type.key), _part("value", data_type.value))
        case dt.MultisetType():
            return pa.map_(arrow_type(data_type.element), pa.field("value", pa.int32(), nullable=False))
        case dt.RowType():
            return pa.struct([_part(f.name, f.type) for f in data_type.fields])
    return _PLAIN[type(data_type)]


def _part(name: str, data_type: DataType) -> pa.Field:
    return pa.field(name, arrow_type(data_type), nullable=data_type.nullable)


def arrow_field(column: DataField) -> pa.Field:
    """Return the Arrow field of a column."""
    kind, metadata = _type_and_metadata(column.type)
    return pa.field(column.name, kind, column.type.nullable, metadata)


@lru_cache(maxsize=4096)  # called for every column of every file; columns are many, their types are few
def _type_and_metadata(data_type: DataType) -> tuple[pa.DataType, Mapping[bytes, bytes] | None]:
    """Return the Arrow type, and the field metadata where the Arrow type does not determine the data type."""
    kind, text = arrow_type(data_type), format_type(data_type.with_nullable(True))
    return kind, None if format_type(_data_type(kind, text)) == text else {TYPE_METADATA: text.encode()}


def arrow_schema(fields: Iterable[DataField]) -> pa.Schema:
    """Return the Arrow schema of columns."""
    return pa.schema([arrow_field(f) for f in fields])


def fields_from_arrow(schema: pa.Schema) -> tuple[DataField, ...]:
    """Return the columns of an Arrow schema, with new ids from 0; refuse Arrow types that the format does not have.

    >>> [column] = fields_from_arrow(pa.schema([("id", pa.int64())]))
    >>> column.name, column.type
    ('id', BigIntType(nullable=True))
    """
    return assign_ids(_column(field) for field in schema)[0]


def check_nesting(field: pa.Field) -> None:
    """Refuse a column whose type is deeper than a type as text may be; functions on types are recursive."""
    level = [field.type]
    for _ in range(MAX_DEPTH):
        level = [part for kind in level for part in _inner_types(kind)]
        if not level:
            return
    message = f"Column {field.name!r}: types nest deeper than {MAX_DEPTH} levels"
    raise InvalidRequest(message, subject=field.name, hint="store the values as text")


def _inner_types(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(index).type for index in range(kind.num_fields)]


def _column(field: pa.Field) -> DataField:
    check_nesting(field)
    metadata = field.metadata or {}
    data_type = _type_from_metadata(field) or _data_type(field.type, field.name)
    description = metadata.get(DESCRIPTION_METADATA)
    return DataField(
        0,
        field.name,
        data_type.with_nullable(field.nullable),
        None if description is None else description.decode("utf-8", "replace"),
    )


def _type_from_metadata(field: pa.Field) -> DataType | None:
    """Return the type in the metadata; None where the data has another type now, because metadata outlives casts."""
    text = (field.metadata or {}).get(TYPE_METADATA)
    if text is None:
        return None
    try:
        data_type = parse_type(text.decode("utf-8", "replace"))
    except PaimonError:
        return None
    return data_type if arrow_type(data_type).equals(field.type) else None


def is_variant(arrow: pa.StructType) -> bool:
    """Return whether a struct has the mark of a VARIANT; equality of Arrow types ignores it."""
    marked = [child for child in arrow if (child.metadata or {}).get(_VARIANT_MARK) == b"true"]
    return arrow == _PLAIN[dt.VariantType] and [child.name for child in marked] == ["metadata"]


def _data_type(arrow: pa.DataType, name: str) -> DataType:
    types = pa.types
    if arrow in _FROM_PLAIN:
        return _FROM_PLAIN[arrow]
    if types.is_decimal(arrow) and arrow.precision <= 38 and 0 <= arrow.scale <= arrow.precision:
        return dt.DecimalType(arrow.precision, arrow.scale)
    if types.is_timestamp(arrow):
        precision = _UNIT_PRECISIONS[arrow.unit]
        return dt.TimestampType(precision) if arrow.tz is None else dt.LocalZonedTimestampType(precision)
    if types.is_fixed_size_binary(arrow) and arrow.byte_width > 0:
        return dt.BinaryType(arrow.byte_width)
    if types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        return _data_type(arrow.value_type, name)
    if isinstance(arrow, pa.Bool8Type):
        return dt.BooleanType()
    if isinstance(arrow, pa.BaseExtensionType):
        return _data_type(arrow.storage_type, name)
    nested = _nested_data_type(arrow, name)
    if nested is not None:
        return nested
    hint = "cast the column to a type" if types.is_null(arrow) else "cast the column first"
    raise InvalidRequest(
        f"Column {name!r} has the Arrow type {arrow}, which the format does not have", subject=name, hint=hint
    )


def _nested_data_type(arrow: pa.DataType, name: str) -> DataType | None:
    types = pa.types
    if types.is_map(arrow):
        value = _data_type(arrow.item_type, f"{name}.value").with_nullable(arrow.item_field.nullable)
        return dt.MapType(_data_type(arrow.key_type, f"{name}.key"), value)
    if types.is_struct(arrow) and is_variant(arrow):
        return dt.VariantType()
    if types.is_struct(arrow):
        children = [arrow.field(i) for i in range(arrow.num_fields)]
        types_within = [_data_type(c.type, f"{name}.{c.name}").with_nullable(c.nullable) for c in children]
        return dt.RowType(DataField(0, c.name, t) for c, t in zip(children, types_within, strict=True))
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    if any(test(arrow) for test in lists):
        element = _data_type(arrow.value_type, f"{name}.element").with_nullable(arrow.value_field.nullable)
        return dt.ArrayType(element)
    return None
