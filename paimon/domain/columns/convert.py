"""Conversion of accepted data to the canonical Arrow type of its column.

Invariant: no value changes. NOT NULL, the lengths of CHAR, VARCHAR, BINARY and VARBINARY, and the digits of DECIMAL
hold afterwards, at every depth. A value that does not fit is refused by name.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns import nested
from paimon.domain.columns.plain import decode_array
from paimon.domain.errors import InvalidRequest
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import MAX_LENGTH, DataType
from paimon.domain.types.type_text import format_type

_WIDE_DIGITS = 76


def convert_array(array: pa.Array, data_type: DataType, name: str) -> pa.Array:
    """Convert an array that `can_accept` accepts to the canonical type of its column; refuse values that do not fit."""
    try:
        made = _convert_array(decode_array(array), data_type, name)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
        raise _misfit_error(name, data_type, error) from error
    _check(made, data_type, name)
    return made


def _misfit_error(name: str, data_type: DataType, reason: Exception) -> InvalidRequest:
    return InvalidRequest(
        f"Column {name!r} contains a value that does not fit {format_type(data_type)}: {reason}",
        subject=name,
        hint="change the data, or the column's type",
    )


def _convert_array(array: pa.Array, data_type: DataType, name: str) -> pa.Array:
    target = arrow_type(data_type)
    if isinstance(data_type, (*dt.NESTED_TYPES, dt.VariantType)):
        return _convert_nested(array, data_type, target, name)
    if array.type.equals(target):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if isinstance(data_type, dt.DecimalType):
        return _decimal(array, target)
    if isinstance(data_type, dt.FloatType) and not pa.types.is_integer(array.type):
        return _single(array, target)
    return array.cast(target)


def _decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_integer(array.type):
        # Arrow wants room for every value of the integer type, whatever the values are.
        array = array.cast(pa.decimal256(_WIDE_DIGITS, target.scale))
    return array.cast(target)


def _single(array: pa.Array, target: pa.DataType) -> pa.Array:
    made = array.cast(target, safe=False)
    changed = pc.and_(pc.not_equal(made.cast(array.type), array), pc.invert(pc.is_nan(array)))
    if pc.any(changed).as_py():
        value = array.filter(changed)[0].as_py()
        raise pa.ArrowInvalid(f"{value!r} needs the precision of DOUBLE")
    return made


def _convert_nested(array: pa.Array, data_type: DataType, target: pa.DataType, name: str) -> pa.Array:
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    match data_type:
        case dt.RowType(fields=fields):
            return _row(array, fields, target, name)
        case dt.VariantType():
            blob = dt.VarBinaryType(nullable=False)
            parts = (dt.DataField(0, "value", blob), dt.DataField(1, "metadata", blob))
            return _row(array, parts, target, name)
        case dt.ArrayType(element=element):
            values = convert_array(nested.list_values(array), element, f"{name}[]")
            return nested.rebuild_list(array, values, target)
        case dt.VectorType(element=element, length=length):
            lengths = pc.list_value_length(array)
            if pc.any(pc.not_equal(lengths, length)).as_py():
                raise pa.ArrowInvalid(f"not every vector has {length} elements")
            return nested.rebuild_vector(array, convert_array(nested.list_values(array), element, f"{name}[]"), target)
        case dt.MapType(key=key, value=value):
            keys, items = nested.map_entries(array)
            key = key.with_nullable(False)
            made = (convert_array(keys, key, f"{name} key"), convert_array(items, value, f"{name} value"))
            return nested.rebuild_map(array, *made, target)
        case dt.MultisetType(element=element):
            keys, items = nested.map_entries(array)
            counts = convert_array(items, dt.IntType(nullable=False), f"{name} count")
            return nested.rebuild_map(array, convert_array(keys, element, f"{name} element"), counts, target)
    return array.cast(target)


def _row(array: pa.Array, fields: tuple[dt.DataField, ...], target: pa.StructType, name: str) -> pa.Array:
    """Convert fields by name; a NOT NULL field needs values only where the row itself is not null."""
    given = dict(zip((f.name for f in array.type), nested.struct_children(array), strict=True))
    children = []
    for field in fields:
        inner, path = field.type, f"{name}.{field.name}"
        child = given.get(field.name)
        if child is None:
            child = pa.nulls(len(array), arrow_type(inner))
        if not inner.nullable and array.null_count:
            _check_not_null(child.filter(array.is_valid()), path)
            inner = inner.with_nullable(True)
        children.append(convert_array(child, inner, path))
    return nested.rebuild_struct(array, children, target)


def _check_not_null(array: pa.Array, name: str) -> None:
    if array.null_count:
        nulls = "1 null" if array.null_count == 1 else f"{array.null_count} nulls"
        raise InvalidRequest(
            f"Column {name!r} is NOT NULL but contains {nulls}", subject=name, hint="give a value for each row"
        )


def _check(array: pa.Array, data_type: DataType, name: str) -> None:
    """Check what a type forbids beyond its Arrow type, for one level."""
    if not data_type.nullable:
        _check_not_null(array, name)
    if isinstance(data_type, (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES)) and data_type.length != MAX_LENGTH:
        of_text = isinstance(data_type, dt.CHARACTER_TYPES)
        longest = pc.max(pc.utf8_length(array) if of_text else pc.binary_length(array)).as_py()
        if longest is not None and longest > data_type.length:
            unit = "characters" if of_text else "bytes"
            raise InvalidRequest(
                f"Column {name!r} contains a value of {longest} {unit}, but its type is {format_type(data_type)}",
                subject=name,
                hint="cut the value, or widen the column",
            )
    if isinstance(data_type, dt.DecimalType):
        _check_digits(array, data_type, name)


def _check_digits(array: pa.Array, data_type: dt.DecimalType, name: str) -> None:
    """Check the digits of each value: Arrow does not hold an array to the precision of its type."""
    for value in pc.min_max(array).as_py().values():
        digits = 0 if value is None else len(value.as_tuple().digits)
        if digits > data_type.precision:
            raise InvalidRequest(
                f"Column {name!r} contains a value of {digits} digits, but its type is {format_type(data_type)}",
                subject=name,
                hint="round the value, or widen the column",
            )
