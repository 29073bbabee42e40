"""The Arrow schema of a Parquet file as given to pyarrow's writer, with Paimon's field ids on every level.

`to_stored` converts arrays to its types, without the nulls that Parquet refuses.

Invariant: every column, ROW field, list element, map key and map value carries its id. The stored types are Java's:
milliseconds for TIMESTAMP of precision 0, and INT96 for 7 to 9 (given as twelve bytes, see `footer`).
Source: `ParquetSchemaConverter`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.adapters.formats.nested import drop_offset, rebuild_leaves
from paimon.domain.columns.decimal_overflow import wrap_to_32_bits
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import UNIT_NANOS, arrow_type
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.field_ids import all_types, element_id, key_id, value_id
from paimon.domain.types.time_range import far_time_error

# Remove the hidden nulls of nested columns.
#
# Parquet refuses a NOT NULL part that has nulls, although a null parent may hide them.
#
# Invariant: the visible values of an array do not change. NOT NULL parts of the result have no nulls.


_REQUIRED_BYTES = dt.VarBinaryType(nullable=False)


def has_required_part(data_type: DataType) -> bool:
    """Return whether a nested part of the type is NOT NULL, so that it can lie under a null."""
    return any(not part.nullable or has_required_part(part) for part in _parts(data_type))


def drop_hidden_nulls(array: pa.Array, data_type: DataType, visible: pa.Array | None = None) -> pa.Array:
    """Return a canonical array of a type without nulls in NOT NULL parts, of the same length.

    Only an array of a NOT NULL type loses its own nulls. `visible` is where a null of the array would be visible; None
    means everywhere. A visible null in a NOT NULL part is InvalidRequest.
    """
    array = drop_offset(array)
    required = not data_type.nullable and array.null_count > 0
    if required and (visible is None or pc.any(pc.and_(array.is_null(), visible)).as_py()):
        raise InvalidRequest("A part of a nested column is null, but its type is NOT NULL")
    mask = array.is_null() if array.null_count and not required else None
    match data_type:
        case dt.RowType() | dt.VariantType():
            inner = array.is_valid() if visible is None else pc.and_(array.is_valid(), visible)
            parts = [drop_hidden_nulls(array.field(i), p, inner) for i, p in enumerate(_parts(data_type))]
            return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=mask)
        case dt.ArrayType(element=element):
            values = drop_hidden_nulls(array.values, element)
            return pa.ListArray.from_arrays(array.offsets, values, array.type, mask=mask)
        case dt.MapType(value=value):
            items = drop_hidden_nulls(array.items, value)
            return pa.MapArray.from_arrays(array.offsets, array.keys, items, array.type, mask=mask)
    if not required or pa.types.is_nested(array.type):
        return array
    return pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]])


def _parts(data_type: DataType) -> list[DataType]:
    match data_type:
        case dt.RowType(fields=fields):
            return [f.type for f in fields]
        case dt.VariantType():
            return [_REQUIRED_BYTES, _REQUIRED_BYTES]
        case dt.ArrayType(element=element):
            return [element]
        case dt.MapType(value=value):
            return [value]
    return []


Integers = npt.NDArray[np.int64]
INT96 = pa.binary(12)
_COUNT = dt.IntType(nullable=False)
_FIELD_ID = b"PARQUET:field_id"
_JULIAN_EPOCH_DAY = 2_440_588
_DAY_NANOS = 86_400_000_000_000
_CELL = np.dtype([("nanos", "<i8"), ("day", "<i4")])


def is_int96(data_type: DataType) -> bool:
    """Return whether the type is stored as INT96."""
    return isinstance(data_type, dt.TIMESTAMP_TYPES) and data_type.precision > 6


def make_write_schema(fields: Iterable[DataField]) -> pa.Schema:
    """Return the Arrow schema with which pyarrow writes these columns as Java does."""
    fields = tuple(fields)
    for field in fields:
        if any(isinstance(part, dt.RowType) and not part.fields for part in all_types(field.type)):
            hint = "give the ROW a field, or choose file.format=avro"
            raise Unsupported(f"column {field.name!r}: a ROW without fields in Parquet files", hint=hint)
    return pa.schema([_parquet_field(f.name, f.id, f.type, f.id, 1) for f in fields])


def to_stored(array: pa.Array, data_type: DataType) -> pa.Array:
    """Convert a canonical array to the stored type that `make_write_schema` states."""
    if has_required_part(data_type):
        array = drop_hidden_nulls(array, data_type.with_nullable(True))
    if isinstance(data_type, dt.DecimalType):
        return wrap_to_32_bits(array)
    if not _has_other_form(data_type):
        return array
    rebuilt = rebuild_leaves(array, data_type, _to_stored_leaf)
    has_vector = any(isinstance(part, dt.VectorType) for part in all_types(data_type))
    return rebuilt.cast(_with_plain_lists(rebuilt.type)) if has_vector else rebuilt


def _with_plain_lists(kind: pa.DataType) -> pa.DataType:
    """Return a type with lists of any length in place of vectors, as Java 2.x stores them."""
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_plain_lists(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_with_plain_lists(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(_with_plain_lists(kind.item_type)))
    return kind


def int96_leaves(fields: Iterable[DataField]) -> frozenset[int]:
    """Return the positions of the INT96 leaves among the leaf columns of the file."""
    leaves = [leaf for f in fields for leaf in list_leaf_types(f.type)]
    return frozenset(i for i, leaf in enumerate(leaves) if is_int96(leaf))


def list_leaf_types(data_type: DataType) -> list[DataType]:
    """Return the types of the leaves of a type, in the order of the leaf columns of a file."""
    match data_type:
        case dt.RowType(fields=fields):
            return [leaf for f in fields for leaf in list_leaf_types(f.type)]
        case dt.ArrayType() | dt.VectorType():
            return list_leaf_types(data_type.element)
        case dt.MapType(key=key, value=value):
            return list_leaf_types(key) + list_leaf_types(value)
        case dt.MultisetType(element=element):
            return [*list_leaf_types(element), _COUNT]
        case dt.VariantType():
            return [dt.VarBinaryType(), dt.VarBinaryType()]
    return [data_type]


def _parquet_field(name: str, field_id: int, data_type: DataType, owner: int, depth: int) -> pa.Field:
    """Return a field; `owner` is the field from which derived ids are counted, `depth` the level within it."""
    kind = _stored_type(data_type, owner, depth)
    return pa.field(name, kind, data_type.nullable, {_FIELD_ID: str(field_id).encode()})


def _stored_type(data_type: DataType, owner: int, depth: int) -> pa.DataType:
    match data_type:
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            return INT96 if is_int96(data_type) else arrow_type(_at_least_millis(data_type))
        case dt.ArrayType() | dt.VectorType():
            return pa.list_(_parquet_field("element", element_id(owner, depth), data_type.element, owner, depth + 1))
        case dt.MapType(key=key, value=value):
            return _stored_map(key, value, owner, depth)
        case dt.MultisetType(element=element):
            return _stored_map(element, _COUNT, owner, depth)
        case dt.RowType(fields=fields):
            return pa.struct([_parquet_field(f.name, f.id, f.type, f.id, 1) for f in fields])
        case dt.VariantType():
            blob = dt.VarBinaryType(nullable=False)
            return pa.struct([_parquet_field("value", 0, blob, 0, 1), _parquet_field("metadata", 1, blob, 1, 1)])
    return arrow_type(data_type)


def _stored_map(key: DataType, value: DataType, owner: int, depth: int) -> pa.DataType:
    return pa.map_(
        _parquet_field("key", key_id(owner, depth), key.with_nullable(False), owner, depth + 1),
        _parquet_field("value", value_id(owner, depth), value, owner, depth + 1),
    )


def _at_least_millis(data_type: dt.TimestampType | dt.LocalZonedTimestampType) -> DataType:
    return type(data_type)(max(data_type.precision, 3))


def _has_other_form(data_type: DataType) -> bool:
    """Return whether the stored form of any part of the type differs from the canonical one."""
    match data_type:
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            return data_type.precision == 0 or data_type.precision > 6
        case dt.VectorType():
            return True
        case dt.ArrayType() | dt.MultisetType():
            return _has_other_form(data_type.element)
        case dt.MapType(key=key, value=value):
            return _has_other_form(key) or _has_other_form(value)
        case dt.RowType(fields=fields):
            return any(_has_other_form(f.type) for f in fields)
    return False


def _to_stored_leaf(array: pa.Array, data_type: DataType) -> pa.Array:
    if is_int96(data_type):
        return _to_int96(array)
    if isinstance(data_type, dt.TIMESTAMP_TYPES) and data_type.precision == 0:
        return array.cast(arrow_type(_at_least_millis(data_type)))
    return array


def _to_int96(array: pa.Array) -> pa.Array:
    """Encode times as nanoseconds of the day and Julian day. The nanoseconds are never negative, also before 1970."""
    nanos = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    cells = np.empty(len(array), dtype=_CELL)
    days = nanos // _DAY_NANOS
    cells["nanos"] = nanos - days * _DAY_NANOS
    cells["day"] = days + _JULIAN_EPOCH_DAY
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(INT96, len(array), [validity, pa.py_buffer(cells)])


def from_int96(array: pa.Array, data_type: dt.TimestampType | dt.LocalZonedTimestampType, column: str) -> pa.Array:
    """Decode twelve bytes to times. Unsupported, naming the column, if the unit of the type cannot represent one."""
    target = arrow_type(data_type)
    if len(array) == array.null_count:
        return pa.nulls(len(array), target)
    cells = np.frombuffer(array.buffers()[1], _CELL)[array.offset : array.offset + len(array)]
    nulls = np.asarray(array.is_null()) if array.null_count else None
    days = cells["day"].astype(np.int64) - _JULIAN_EPOCH_DAY
    nanos = cells["nanos"]
    if nulls is not None:
        days, nanos = np.where(nulls, 0, days), np.where(nulls, 0, nanos)
    if nanos.min() < 0 or nanos.max() >= _DAY_NANOS:
        days, nanos = days + nanos // _DAY_NANOS, nanos % _DAY_NANOS
    unit = UNIT_NANOS[target.unit]
    ticks = nanos if unit == 1 else nanos // unit
    if not _has_representable_times(days, ticks, _DAY_NANOS // unit):
        raise far_time_error(data_type, column)
    return pa.array(days * (_DAY_NANOS // unit) + ticks, mask=nulls).view(target)


def _has_representable_times(days: Integers, ticks: Integers, ticks_per_day: int) -> bool:
    """Return whether all times fit into 64 bits."""
    (first, first_tick), (last, last_tick) = (divmod(end, ticks_per_day) for end in (-(2**63), 2**63 - 1))
    if first < days.min() and days.max() < last:
        return True
    return not np.any(
        (days < first)
        | (days > last)
        | ((days == first) & (ticks < first_tick))
        | ((days == last) & (ticks > last_tick))
    )
