"""Casts of columns, for reads of files that were written before a type change.

Invariant: casts equal Java's, value by value, except where the modules in `paimon.domain.columns.casts` document a
difference. The fields of nested ROWs are matched by field id, at every depth. A cast without a rule is Unsupported.
Source: `CastExecutors` and its rules.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.columns import nested
from paimon.domain.columns.casts import numbers, text, times
from paimon.domain.columns.casts.parse import parse_texts
from paimon.domain.errors import Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataType
from paimon.domain.types.type_text import format_type

_NUMBERS = (*dt.INTEGER_TYPES, dt.FloatType, dt.DoubleType, dt.DecimalType)
_TIMES = (dt.DateType, dt.TimeType, *dt.TIMESTAMP_TYPES)


def cast_column(array: pa.Array | pa.ChunkedArray, source: DataType, target: DataType) -> pa.Array | pa.ChunkedArray:
    """Cast a canonical array from the type of the stored values to the type of the column now.

    A missing cast, or a time that Arrow cannot represent, raises `Unsupported`. A text that is not a value of the
    target type raises `InvalidRequest`; Java fails there too.
    """
    kind = arrow_type(target)
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([cast_column(chunk, source, target) for chunk in array.chunks], kind)
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    made = _cast(array, source, target)
    return made if made.type.equals(kind) else made.cast(kind)


def _cast(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    kind = arrow_type(target)
    match source, target:
        case dt.RowType(), dt.RowType():
            return _row(array, source, target)
        case dt.ArrayType(element=given), dt.ArrayType(element=wanted):
            return nested.rebuild_list(array, cast_column(nested.list_values(array), given, wanted), kind)
        case dt.VectorType(element=given), dt.VectorType(element=wanted):
            return nested.rebuild_vector(array, cast_column(nested.list_values(array), given, wanted), kind)
        case dt.MapType(), dt.MapType():
            keys, items = nested.map_entries(array)
            made = cast_column(keys, source.key, target.key), cast_column(items, source.value, target.value)
            return nested.rebuild_map(array, *made, kind)
        case dt.MultisetType(element=given), dt.MultisetType(element=wanted):
            keys, counts = nested.map_entries(array)
            return nested.rebuild_map(array, cast_column(keys, given, wanted), counts, kind)
    if source.with_nullable(True) == target.with_nullable(True):
        return array
    return _atomic(array, source, target)


def _row(array: pa.StructArray, source: dt.RowType, target: dt.RowType) -> pa.StructArray:
    held_fields = zip(source.fields, nested.struct_children(array), strict=True)
    given = {field.id: (field, child) for field, child in held_fields}
    children = []
    for field in target.fields:
        if field.id in given:
            held, child = given[field.id]
            children.append(cast_column(child, held.type, field.type))
        else:
            children.append(pa.nulls(len(array), arrow_type(field.type)))
    return nested.rebuild_struct(array, children, arrow_type(target))


def _atomic(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if isinstance(target, dt.CHARACTER_TYPES):
        return _to_text(array, source, target)
    if isinstance(target, dt.BYTES_TYPES) and isinstance(source, (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES)):
        return text.fit_bytes_length(array.cast(pa.binary()), target)
    if isinstance(target, (*_NUMBERS, *_TIMES, dt.BooleanType)):
        if isinstance(source, dt.CHARACTER_TYPES):
            return parse_texts(array, target)
        if isinstance(target, _TIMES):
            return _to_time(array, source, target)
        if isinstance(source, (*_NUMBERS, dt.BooleanType, *dt.TIMESTAMP_TYPES)):
            return _to_number(array, source, target)
    raise _no_rule(source, target)


def _no_rule(source: DataType, target: DataType) -> Unsupported:
    return Unsupported(
        f"reading {format_type(source)} as {format_type(target)}", hint="change the type of the column back"
    )


def _to_number(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    kind = arrow_type(target)
    if isinstance(source, dt.TIMESTAMP_TYPES):
        if isinstance(target, dt.IntType | dt.BigIntType):
            return times.to_seconds(array, kind)
        raise _no_rule(source, target)
    match target:
        case dt.BooleanType():
            if not isinstance(source, dt.INTEGER_TYPES):
                raise _no_rule(source, target)
            return numbers.to_boolean(array)
        case dt.DecimalType():
            return numbers.to_decimal(array, kind)
        case dt.FloatType() | dt.DoubleType():
            return numbers.to_floating(array, kind)
    return numbers.to_integer(array, kind)


def _to_time(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    of_timestamp = isinstance(source, dt.TIMESTAMP_TYPES)
    match target:
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            if isinstance(source, (*_TIMES, dt.IntType, dt.BigIntType)):
                return times.to_timestamp(array, target)
        case dt.DateType() if of_timestamp:
            return times.to_date(array, zoned=isinstance(source, dt.LocalZonedTimestampType))
        case dt.TimeType() if of_timestamp or isinstance(source, dt.TimeType):
            return times.to_time(array)
    raise _no_rule(source, target)


def _to_text(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return texts; Java cuts them to the length of the type, except those of bytes and of nested values."""
    match source:
        case dt.ArrayType(element=element):
            parts = _as_texts(nested.list_values(array), element)
            return text.join_elements(nested.count_entries(array), parts, array.is_valid())
        case dt.MapType(key=key, value=value):
            keys, values = nested.map_entries(array)
            entries = text.join_entries(_as_texts(keys, key), _as_texts(values, value))
            return text.join_elements(nested.count_entries(array), entries, array.is_valid(), "{}")
        case dt.RowType(fields=fields):
            children = zip(nested.struct_children(array), fields, strict=True)
            return text.join_fields([_as_texts(child, field.type) for child, field in children], array.is_valid())
        case dt.VectorType() | dt.MultisetType() | dt.VariantType() | dt.BlobType():
            raise _no_rule(source, target)
        case _ if isinstance(source, dt.BYTES_TYPES):
            return text.format_values(array, source)
        case _:
            texts = array if isinstance(source, dt.CHARACTER_TYPES) else text.format_values(array, source)
    return text.fit_text_length(texts, target)


def _as_texts(array: pa.Array, source: DataType) -> pa.Array:
    return cast_column(array, source, dt.VarCharType())
