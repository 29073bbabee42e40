"""Accepted data in the canonical Arrow type of its column, or a refusal that names the value at fault.

Law: no value changes; NOT NULL, the lengths of CHAR, VARCHAR, BINARY and VARBINARY, and the digits of DECIMAL hold
afterwards, at every depth.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns import nested
from paimon.domain.columns.accept import bare_type
from paimon.domain.errors import InvalidRequest
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import MAX_LENGTH, DataType
from paimon.domain.types.text import format_type

_WIDE_DIGITS = 76


def converted(array: pa.Array, data_type: DataType, name: str) -> pa.Array:
    """An array of an accepted type as its column holds it; `name` is for messages.

    Raises
    ------
    InvalidRequest
        If a value does not fit.
    """
    plain = _decoded(array)
    try:
        made = _converted(plain, data_type, name)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
        raise InvalidRequest(
            f"column {name!r} holds a value that does not fit {format_type(data_type)}: {error}", subject=name,
            hint="change the data, or the column's type",
        ) from error
    _check(made, data_type, name)
    return made


def _decoded(array: pa.Array) -> pa.Array:
    """The values themselves, without dictionaries, extensions and run ends."""
    while bare_type(array.type) != array.type:
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        else:
            array = pc.run_end_decode(array)
    return array


def _converted(array: pa.Array, data_type: DataType, name: str) -> pa.Array:
    target = arrow_type(data_type)
    if isinstance(data_type, (*dt.NESTED_TYPES, dt.VariantType)):
        return _nested(array, data_type, target, name)
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
        raise pa.ArrowInvalid(f"{value!r} needs double precision")
    return made


def _nested(array: pa.Array, data_type: DataType, target: pa.DataType, name: str) -> pa.Array:
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
            values = converted(nested.list_values(array), element, f"{name}[]")
            return nested.rebuilt_list(array, values, target)
        case dt.VectorType(element=element, length=length):
            lengths = pc.list_value_length(array)
            if pc.any(pc.not_equal(lengths, length)).as_py():
                raise pa.ArrowInvalid(f"not every vector has {length} elements")
            return nested.rebuilt_vector(array, converted(nested.list_values(array), element, f"{name}[]"), target)
        case dt.MapType(key=key, value=value):
            keys, items = nested.map_entries(array)
            key = key.with_nullable(False)
            made = (converted(keys, key, f"{name} key"), converted(items, value, f"{name} value"))
            return nested.rebuilt_map(array, *made, target)
        case dt.MultisetType(element=element):
            keys, items = nested.map_entries(array)
            counts = converted(items, dt.IntType(nullable=False), f"{name} count")
            return nested.rebuilt_map(array, converted(keys, element, f"{name} element"), counts, target)
    return array.cast(target)


def _row(array: pa.Array, fields: tuple[dt.DataField, ...], target: pa.StructType, name: str) -> pa.Array:
    """Fields by name; a NOT NULL field must have values only where the row itself has one."""
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
        children.append(converted(child, inner, path))
    return nested.rebuilt_struct(array, children, target)


def _check_not_null(array: pa.Array, name: str) -> None:
    if array.null_count:
        nulls = "1 null" if array.null_count == 1 else f"{array.null_count} nulls"
        raise InvalidRequest(
            f"column {name!r} is NOT NULL and holds {nulls}", subject=name, hint="give every value"
        )


def _check(array: pa.Array, data_type: DataType, name: str) -> None:
    """What a type forbids beyond what its Arrow type can say, for one level."""
    if not data_type.nullable:
        _check_not_null(array, name)
    if isinstance(data_type, (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES)) and data_type.length != MAX_LENGTH:
        of_text = isinstance(data_type, dt.CHARACTER_TYPES)
        longest = pc.max(pc.utf8_length(array) if of_text else pc.binary_length(array)).as_py()
        if longest is not None and longest > data_type.length:
            unit = "characters" if of_text else "bytes"
            raise InvalidRequest(
                f"column {name!r} holds a value of {longest} {unit} and is {format_type(data_type)}", subject=name,
                hint="cut the value, or widen the column",
            )
