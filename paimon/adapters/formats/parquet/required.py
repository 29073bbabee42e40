"""Nulls that nobody sees: Parquet refuses a NOT NULL part that has nulls, though only a null parent may hide them.

Law: what can be seen of an array is kept; a NOT NULL part of it has no null any more, or had one that could be
seen, which is an InvalidRequest.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon.adapters.formats.nested import whole
from paimon.domain.errors import InvalidRequest
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

_REQUIRED_BYTES = dt.VarBinaryType(nullable=False)


def has_required_part(data_type: DataType) -> bool:
    """Whether something inside of the type is NOT NULL and can lie under a null."""
    return any(not part.nullable or has_required_part(part) for part in _parts(data_type))


def without_hidden_nulls(array: pa.Array, data_type: DataType, visible: pa.Array | None = None) -> pa.Array:
    """The array with no nulls in NOT NULL parts.

    `visible` tells where a null of its own would be seen (None: everywhere); only a NOT NULL array loses its own.
    """
    array = whole(array)
    required = not data_type.nullable and array.null_count > 0
    if required and (visible is None or pc.any(pc.and_(array.is_null(), visible)).as_py()):
        raise InvalidRequest("a part of a nested column is null though its type is NOT NULL")
    mask = array.is_null() if array.null_count and not required else None
    match data_type:
        case dt.RowType() | dt.VariantType():
            inner = array.is_valid() if visible is None else pc.and_(array.is_valid(), visible)
            parts = [without_hidden_nulls(array.field(i), p, inner) for i, p in enumerate(_parts(data_type))]
            return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=mask)
        case dt.ArrayType(element=element):
            values = without_hidden_nulls(array.values, element)
            return pa.ListArray.from_arrays(array.offsets, values, array.type, mask=mask)
        case dt.MapType(value=value):
            items = without_hidden_nulls(array.items, value)
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
