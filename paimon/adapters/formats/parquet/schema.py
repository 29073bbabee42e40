"""How columns lie in a Parquet file: the Arrow schema given to the writer, with Paimon's ids on every level.

Law: every column, ROW field, list element, map key and map value carries its id; the physical forms are Java's,
which for TIMESTAMP of precision 0 is milliseconds and for 7 to 9 is INT96 (handed over as twelve bytes, see
`footer`). Source: `ParquetSchemaConverter`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from paimon.adapters.formats.nested import rebuild
from paimon.adapters.formats.parquet.required import has_required_part, without_hidden_nulls
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.ids import element_id, key_id, value_id

INT96 = pa.binary(12)
_COUNT = dt.IntType(nullable=False)
_FIELD_ID = b"PARQUET:field_id"
_JULIAN_EPOCH_DAY = 2_440_588
_DAY_NANOS = 86_400_000_000_000


def is_int96(data_type: DataType) -> bool:
    """Whether the type is stored as INT96."""
    return isinstance(data_type, dt.TIMESTAMP_TYPES) and data_type.precision > 6


def write_schema(fields: Iterable[DataField]) -> pa.Schema:
    """The Arrow schema that makes pyarrow write these columns as Java does."""
    return pa.schema([_named(f.name, f.id, f.type, f.id, 1) for f in fields])


def physical(array: pa.Array, data_type: DataType) -> pa.Array:
    """A canonical array in the form that `write_schema` asks for."""
    if has_required_part(data_type):
        array = without_hidden_nulls(array, data_type.with_nullable(True))
    return rebuild(array, data_type, _physical_leaf) if _changes(data_type) else array


def int96_leaves(fields: Iterable[DataField]) -> frozenset[int]:
    """Positions of the leaves that are INT96, in the order of the file's leaf columns."""
    leaves = [leaf for f in fields for leaf in leaf_types(f.type)]
    return frozenset(i for i, leaf in enumerate(leaves) if is_int96(leaf))


def leaf_types(data_type: DataType) -> list[DataType]:
    """The types of a type's leaves, as a Parquet file orders them."""
    match data_type:
        case dt.RowType(fields=fields):
            return [leaf for f in fields for leaf in leaf_types(f.type)]
        case dt.ArrayType() | dt.VectorType():
            return leaf_types(data_type.element)
        case dt.MapType(key=key, value=value):
            return leaf_types(key) + leaf_types(value)
        case dt.MultisetType(element=element):
            return [*leaf_types(element), _COUNT]
        case dt.VariantType():
            return [dt.VarBinaryType(), dt.VarBinaryType()]
    return [data_type]


def _named(name: str, field_id: int, data_type: DataType, owner: int, depth: int) -> pa.Field:
    """A field; `owner` is the field that derived ids count from, `depth` the level within it."""
    kind = _stored_type(data_type, owner, depth)
    return pa.field(name, kind, data_type.nullable, {_FIELD_ID: str(field_id).encode()})


def _stored_type(data_type: DataType, owner: int, depth: int) -> pa.DataType:
    match data_type:
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            return INT96 if is_int96(data_type) else arrow_type(_at_least_millis(data_type))
        case dt.ArrayType() | dt.VectorType():
            return pa.list_(_named("element", element_id(owner, depth), data_type.element, owner, depth + 1))
        case dt.MapType(key=key, value=value):
            return _stored_map(key, value, owner, depth)
        case dt.MultisetType(element=element):
            return _stored_map(element, _COUNT, owner, depth)
        case dt.RowType(fields=fields):
            return pa.struct([_named(f.name, f.id, f.type, f.id, 1) for f in fields])
        case dt.VariantType():
            blob = dt.VarBinaryType(nullable=False)
            return pa.struct([_named("value", 0, blob, 0, 1), _named("metadata", 1, blob, 1, 1)])
    return arrow_type(data_type)


def _stored_map(key: DataType, value: DataType, owner: int, depth: int) -> pa.DataType:
    return pa.map_(
        _named("key", key_id(owner, depth), key.with_nullable(False), owner, depth + 1),
        _named("value", value_id(owner, depth), value, owner, depth + 1),
    )


def _at_least_millis(data_type: dt.TimestampType | dt.LocalZonedTimestampType) -> DataType:
    return type(data_type)(max(data_type.precision, 3))


def _changes(data_type: DataType) -> bool:
    """Whether the stored form differs from the canonical one anywhere in the type."""
    match data_type:
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            return data_type.precision == 0 or data_type.precision > 6
        case dt.VectorType():
            return True
        case dt.ArrayType() | dt.MultisetType():
            return _changes(data_type.element)
        case dt.MapType(key=key, value=value):
            return _changes(key) or _changes(value)
        case dt.RowType(fields=fields):
            return any(_changes(f.type) for f in fields)
    return False


def _physical_leaf(array: pa.Array, data_type: DataType) -> pa.Array:
    if is_int96(data_type):
        return _int96(array)
    if isinstance(data_type, dt.TIMESTAMP_TYPES) and data_type.precision == 0:
        return array.cast(arrow_type(_at_least_millis(data_type)))
    return array


def _int96(array: pa.Array) -> pa.Array:
    """Nanoseconds of the day and Julian day; the former is never negative, also before 1970."""
    nanos = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    cells = np.empty(len(array), dtype=np.dtype([("nanos", "<i8"), ("day", "<i4")]))
    days = nanos // _DAY_NANOS
    cells["nanos"] = nanos - days * _DAY_NANOS
    cells["day"] = days + _JULIAN_EPOCH_DAY
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(INT96, len(array), [validity, pa.py_buffer(cells)])
