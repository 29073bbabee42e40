"""The Arrow types that a column accepts from users.

Invariant: a type is accepted if its values can be values of the column without a change of kind: integers for
all numbers, decimals for DECIMAL, floats for the other numbers, texts for texts, times for times of the same kind.
`convert` checks whether each value fits.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.columns.plain import plain_type
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

_NUMBERS = (*dt.INTEGER_TYPES, dt.FloatType, dt.DoubleType, dt.DecimalType)


def can_accept(data_type: DataType, arrow: pa.DataType) -> bool:
    """Return whether data of this Arrow type may be written into a column of this type."""
    arrow = plain_type(arrow)
    if pa.types.is_null(arrow):
        return True
    if isinstance(data_type, (*_NUMBERS, dt.BooleanType)):
        return _accepts_number(data_type, arrow)
    types = pa.types
    match data_type:
        case dt.CharType() | dt.VarCharType():
            return bool(types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow))
        case dt.BinaryType() | dt.VarBinaryType() | dt.BlobType():
            return _is_binary(arrow)
        case dt.DateType():
            return bool(types.is_date(arrow))
        case dt.TimeType():
            return bool(types.is_time(arrow))
        case dt.TimestampType():
            return bool(types.is_timestamp(arrow)) and arrow.tz is None
        case dt.LocalZonedTimestampType():
            return bool(types.is_timestamp(arrow)) and arrow.tz is not None
    return _accepts_nested(data_type, arrow)


def _accepts_number(data_type: DataType, arrow: pa.DataType) -> bool:
    types = pa.types
    match data_type:
        case dt.BooleanType():
            return bool(types.is_boolean(arrow))
        case dt.DecimalType():
            return bool(types.is_decimal(arrow) or types.is_integer(arrow))
    return bool(types.is_integer(arrow) or types.is_floating(arrow))


def _is_binary(arrow: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(arrow)
        or types.is_large_binary(arrow)
        or types.is_fixed_size_binary(arrow)
        or types.is_binary_view(arrow)
    )


def is_list(arrow: pa.DataType) -> bool:
    """Return whether an Arrow type is a list of any kind."""
    types = pa.types
    return bool(
        types.is_list(arrow)
        or types.is_large_list(arrow)
        or types.is_fixed_size_list(arrow)
        or types.is_list_view(arrow)
        or types.is_large_list_view(arrow)
    )


def _accepts_nested(data_type: DataType, arrow: pa.DataType) -> bool:
    match data_type:
        case dt.ArrayType(element=element):
            return is_list(arrow) and can_accept(element, arrow.value_type)
        case dt.VectorType(element=element, length=length):
            fits = not pa.types.is_fixed_size_list(arrow) or arrow.list_size == length
            return is_list(arrow) and fits and can_accept(element, arrow.value_type)
        case dt.MapType(key=key, value=value):
            return pa.types.is_map(arrow) and can_accept(key, arrow.key_type) and can_accept(value, arrow.item_type)
        case dt.MultisetType(element=element):
            counts = dt.IntType(nullable=False)
            return (
                pa.types.is_map(arrow) and can_accept(element, arrow.key_type) and can_accept(counts, arrow.item_type)
            )
        case dt.RowType(fields=fields):
            return pa.types.is_struct(arrow) and _accepts_row(fields, arrow)
        case dt.VariantType():
            inner = {field.name: field.type for field in arrow} if pa.types.is_struct(arrow) else {}
            return set(inner) == {"value", "metadata"} and all(_is_binary(plain_type(t)) for t in inner.values())
    return False


def _accepts_row(fields: tuple[dt.DataField, ...], arrow: pa.StructType) -> bool:
    given = {field.name: field.type for field in arrow}
    known = {field.name: field for field in fields}
    if len(given) < arrow.num_fields or not set(given) <= set(known):
        return False
    missing = (field for field in fields if field.name not in given)
    return all(field.type.nullable for field in missing) and all(
        can_accept(known[name].type, inner) for name, inner in given.items()
    )


def complete_type(arrow: pa.DataType, wanted: pa.DataType | None) -> pa.DataType:
    """Return an Arrow type without parts of the type null, which NULL, ``[]`` and ``MAP {}`` have.

    Each such part gets its type in `wanted`, the type of the target column, or string if `wanted` does not have the
    part.
    """
    types = pa.types
    if types.is_null(arrow):
        return wanted or pa.string()
    if types.is_list(arrow):
        inner = wanted.value_type if wanted is not None and types.is_list(wanted) else None
        return pa.list_(arrow.value_field.with_type(complete_type(arrow.value_type, inner)))
    if types.is_map(arrow):
        parts = (wanted.key_type, wanted.item_type) if wanted is not None and types.is_map(wanted) else (None, None)
        key, value = complete_type(arrow.key_type, parts[0]), complete_type(arrow.item_type, parts[1])
        return pa.map_(key, arrow.item_field.with_type(value))
    if types.is_struct(arrow):
        known = {f.name: f.type for f in wanted} if wanted is not None and types.is_struct(wanted) else {}
        return pa.struct([f.with_type(complete_type(f.type, known.get(f.name))) for f in arrow])
    return arrow
