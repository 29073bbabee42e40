"""Cast columns to the types of a table, as INSERT of Spark does under its ANSI store assignment.

Invariant: numbers and times lose digits only, and a number that is too large is refused. Texts are those of Spark's
casts. Dates and times of day are those of a time zone, the session's. A pair of types without a rule is not cast, and
is refused where the rows are written.
Source: `Cast.canANSIStoreAssign` of Spark. Unlike there, NaN is refused for DECIMAL, an infinite FLOAT is not made of a
finite DOUBLE, and a TIME does not become a timestamp of the current day.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.assignment.evaluate_columnar import fit_values
from paimon.domain.columns import nested
from paimon.domain.columns.accept import can_accept, is_list
from paimon.domain.columns.casts import numbers, text, times
from paimon.domain.columns.time_text import format_times
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.type_text import format_type

_FLOATS = (dt.FloatType, dt.DoubleType)
_NUMBERS = (*dt.INTEGER_TYPES, *_FLOATS, dt.DecimalType)
_WIDE_DIGITS = 76
_SURPLUS_ZEROS = r"\.?0+$"
_YEAR_10000_DAYS = 2_932_897


def can_store(data_type: DataType, arrow: pa.DataType) -> bool:
    """Return whether INSERT stores values of an Arrow type, as Spark sends them, in a column; a cast may be needed."""
    types = pa.types
    match data_type:
        case _ if isinstance(data_type, _NUMBERS):
            return _is_number(arrow) or bool(types.is_null(arrow))
        case dt.CharType() | dt.VarCharType():
            is_moment = types.is_date(arrow) or types.is_timestamp(arrow) or types.is_time(arrow)
            is_plain = types.is_boolean(arrow) or types.is_binary(arrow) or types.is_large_binary(arrow)
            return bool(_is_number(arrow) or is_moment or is_plain or can_accept(data_type, arrow))
        case dt.DateType() | dt.TimeType():
            return bool(types.is_timestamp(arrow) or can_accept(data_type, arrow))
        case _ if isinstance(data_type, dt.TIMESTAMP_TYPES):
            return bool(types.is_timestamp(arrow) or types.is_date(arrow) or types.is_null(arrow))
        case dt.ArrayType(element=element) if is_list(arrow):
            return can_store(element, arrow.value_type)
        case dt.MapType(key=key, value=value) if types.is_map(arrow):
            return can_store(key, arrow.key_type) and can_store(value, arrow.item_type)
        case dt.RowType(fields=fields) if types.is_struct(arrow):
            return _can_store_row(fields, arrow)
    return can_accept(data_type, arrow)


def _can_store_row(fields: tuple[DataField, ...], arrow: pa.StructType) -> bool:
    given = {f.name: f.type for f in arrow}
    known = {f.name: f for f in fields}
    return (
        len(given) == arrow.num_fields
        and set(given) <= set(known)
        and all(f.type.nullable for f in fields if f.name not in given)
        and all(can_store(known[name].type, inner) for name, inner in given.items())
    )


def _is_number(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow))


def store_array(array: pa.Array, column: DataField, zone: str) -> pa.Array:
    """Cast values that `can_store` accepts to a column, or refuse them; text lengths are not checked."""
    try:
        return _store(array, column, zone)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequest(
            f"Column {column.name!r} of type {format_type(column.type)} cannot be set: {error}",
            subject=column.name,
            hint="change the data, or the column's type",
        ) from error


def _store(array: pa.Array, column: DataField, zone: str) -> pa.Array:
    kind = column.type
    if pa.types.is_null(array.type):
        return array
    if isinstance(kind, (dt.ArrayType, dt.MapType, dt.RowType)):
        return _store_nested(array, column, zone)
    if isinstance(kind, _NUMBERS):
        return array if array.type.equals(arrow_type(kind)) else _store_number(array, column)
    if isinstance(kind, dt.CHARACTER_TYPES):
        return array if can_accept(kind, array.type) else _to_text(array, zone)
    return _store_time(array, kind, zone) if pa.types.is_temporal(array.type) else array


def _store_time(array: pa.Array, kind: DataType, zone: str) -> pa.Array:
    """Cast dates, times of day and timestamps to each other; digits that the column lacks are cut off."""
    types = pa.types
    if types.is_date(array.type) and isinstance(kind, dt.TIMESTAMP_TYPES):
        array = array.cast(pa.timestamp("us"))
    if types.is_time(array.type) and isinstance(kind, dt.TimeType):
        return array.cast(arrow_type(kind), safe=False)
    if not types.is_timestamp(array.type):
        return array
    if isinstance(kind, dt.LocalZonedTimestampType):
        return _cut_timestamps(array if array.type.tz is not None else _to_instants(array, zone), kind)
    local = _to_local(array, zone)
    match kind:
        case dt.DateType():
            return pc.floor_temporal(local, unit="day").cast(pa.date32())
        case dt.TimeType():
            return times.to_time(local)
        case dt.TimestampType():
            return _cut_timestamps(local, kind)
    return local


def _cut_timestamps(array: pa.Array, kind: times.TimestampKind) -> pa.Array:
    try:
        return times.to_timestamp(array, kind)
    except Unsupported as error:
        raise pa.ArrowInvalid(error.feature) from error


def _store_number(array: pa.Array, column: DataField) -> pa.Array:
    kind, given = column.type, array.type
    is_integer = pa.types.is_integer(given)
    if isinstance(kind, dt.INTEGER_TYPES):
        return array if is_integer else _drop_fraction(array).cast(arrow_type(kind))
    if isinstance(kind, _FLOATS) and is_integer:
        return array.cast(arrow_type(kind), safe=False)
    if isinstance(kind, dt.DecimalType) and pa.types.is_floating(given):
        return _to_decimal(array, column)
    return fit_values(array, column)


def _drop_fraction(array: pa.Array) -> pa.Array:
    if pa.types.is_floating(array.type):
        return pc.trunc(array)
    # Arrow cannot truncate DECIMAL(p, p): no digit is left for the whole part.
    return pc.trunc(array.cast(pa.decimal256(_WIDE_DIGITS, array.type.scale)))


def _to_decimal(array: pa.Array, column: DataField) -> pa.Array:
    made = numbers.to_decimal(array, arrow_type(column.type))
    if made.null_count > array.null_count:
        lost = array.filter(pc.and_(made.is_null(), array.is_valid()))[0].as_py()
        raise pa.ArrowInvalid(f"{lost!r} does not fit")
    return made


def _to_text(array: pa.Array, zone: str) -> pa.Array:
    types, kind = pa.types, array.type
    if types.is_floating(kind):
        return text.format_values(array, dt.DoubleType())
    if types.is_decimal(kind):
        return text.format_values(array, dt.DecimalType(kind.precision, kind.scale))
    if types.is_binary(kind) or types.is_large_binary(kind):
        return text.format_values(array.cast(pa.binary()), dt.VarBinaryType())
    if types.is_timestamp(kind):
        local = _to_local(array, zone)
        days = pc.floor_temporal(local, unit="day").cast(pa.date32())
        return _sign_large_years(pc.replace_substring_regex(format_times(local), _SURPLUS_ZEROS, ""), days)
    if types.is_time(kind):
        return pc.replace_substring_regex(array.cast(pa.string()), _SURPLUS_ZEROS, "")
    return _sign_large_years(format_times(array), array) if types.is_date(kind) else array.cast(pa.string())


def _sign_large_years(texts: pa.Array, days: pa.Array) -> pa.Array:
    """Write a plus before years of more than four digits."""
    is_large = pc.greater_equal(days.cast(pa.int32()), _YEAR_10000_DAYS)
    return pc.if_else(is_large, pc.binary_join_element_wise("+", texts, ""), texts) if is_large.true_count else texts


def _to_local(array: pa.Array, zone: str) -> pa.Array:
    """Return instants as local times of a zone; times without a zone are returned unchanged."""
    kind = array.type
    if kind.tz is None:
        return array
    return pc.local_timestamp(array.cast(pa.timestamp(kind.unit, _check_zone(zone))))


def _check_zone(zone: str) -> str:
    if not zone:
        hint = "set spark.sql.session.timeZone, or call paimon.spark.register(spark)"
        raise InvalidRequest(
            "The time zone of the session is unknown.", subject="spark.sql.session.timeZone", hint=hint
        )
    return zone


def _to_instants(local: pa.Array, zone: str) -> pa.Array:
    """Return the instants of local times: the first of two, and after a gap those of the time before the gap."""
    early = pc.assume_timezone(local, _check_zone(zone), ambiguous="earliest", nonexistent="earliest")
    instants = pa.timestamp(local.type.unit, "UTC")
    late = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest")
    in_gap = pc.not_equal(early, late)
    if not in_gap.true_count:
        return early.cast(instants)
    offset = pc.subtract(pc.local_timestamp(early), early.cast(instants).cast(local.type))
    return pc.if_else(in_gap, pc.subtract(local, offset).cast(instants), early.cast(instants))


def _store_nested(array: pa.Array, column: DataField, zone: str) -> pa.Array:
    """Cast the values inside; the fields of a row keep their names and their order."""

    def _store_inner(inner: pa.Array, data_type: DataType, name: str) -> pa.Array:
        return store_array(inner, DataField(column.id, name, data_type), zone)

    match column.type:
        case dt.ArrayType(element=element):
            values = _store_inner(nested.list_values(array), element, f"{column.name}[]")
            return nested.rebuild_list(array, values, pa.list_(values.type))
        case dt.MapType(key=key, value=value):
            keys, items = nested.map_entries(array)
            keys = _store_inner(keys, key, f"{column.name} key")
            items = _store_inner(items, value, f"{column.name} value")
            return nested.rebuild_map(array, keys, items, pa.map_(keys.type, items.type))
    assert isinstance(column.type, dt.RowType)
    known = {f.name: f.type for f in column.type.fields}
    names = [f.name for f in array.type]
    children = [
        _store_inner(child, known[name], f"{column.name}.{name}")
        for name, child in zip(names, nested.struct_children(array), strict=True)
    ]
    made = pa.struct([pa.field(name, child.type) for name, child in zip(names, children, strict=True)])
    return nested.rebuild_struct(array, children, made)
