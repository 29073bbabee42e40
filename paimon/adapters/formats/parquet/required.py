"""Remove the hidden nulls of nested columns.

Parquet refuses a NOT NULL part that has nulls, although a null parent may hide them.

Invariant: the visible values of an array do not change. NOT NULL parts of the result have no nulls.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon.adapters.formats.nested import drop_offset
from paimon.domain.errors import InvalidRequest
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

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
