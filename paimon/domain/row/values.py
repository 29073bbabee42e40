"""Internal values: one Python object a cell, for keys, partitions, statistics and reference functions.

Invariant: `to_array(to_values(array)) == array` for canonical arrays. Internal values are: bool; int (also for DATE:
epoch days, TIME: milliseconds of the day, TIMESTAMP: *nanoseconds* since the epoch); float; Decimal of the exact scale;
str; bytes; list for ARRAY and VECTOR; list of (key, value) for MAP and MULTISET; tuple for ROW, and (value, metadata)
for VARIANT; None for null.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from paimon.domain.types.arrow import UNIT_NANOS, arrow_type
from paimon.domain.types.arrow_arrays import make_array
from paimon.domain.types.data_types import (
    NESTED_TYPES,
    TIMESTAMP_TYPES,
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    VariantType,
    VectorType,
)
from paimon.domain.types.time_range import far_time_error

__all__ = ["to_array", "to_values"]


def to_values(array: pa.Array | pa.ChunkedArray, data_type: DataType) -> list[Any]:
    """Return the cells of a canonical Arrow array as internal values.

    >>> to_values(pa.array([1, None], pa.date32()), DateType())
    [1, None]
    """
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in to_values(chunk, data_type)]
    if isinstance(data_type, TIMESTAMP_TYPES):
        nanos = UNIT_NANOS[array.type.unit]
        return [None if v is None else v * nanos for v in array.cast(pa.int64()).to_pylist()]
    if isinstance(data_type, DateType | TimeType):
        return list(array.cast(pa.int32()).to_pylist())
    if isinstance(data_type, (*NESTED_TYPES, VariantType)):
        return _nested_values(array, data_type)
    return list(array.to_pylist())


def _nested_values(array: pa.Array, data_type: DataType) -> list[Any]:
    match data_type:
        case ArrayType(element=element):
            return _slices(array, to_values(array.values, element))
        case MapType(key=key, value=value):
            return _slices(array, list(zip(to_values(array.keys, key), to_values(array.items, value), strict=True)))
        case MultisetType(element=element):
            counts = to_values(array.items, IntType())
            return _slices(array, list(zip(to_values(array.keys, element), counts, strict=True)))
        case VectorType(element=element, length=length):
            inner = to_values(array.values, element)
            starts = range(array.offset * length, (array.offset + len(array)) * length, length)
            return _set_nulls(array, [inner[start : start + length] for start in starts])
        case RowType(fields=fields):
            columns = [to_values(array.field(i), f.type) for i, f in enumerate(fields)]
            return _set_nulls(array, list(zip(*columns, strict=True)) if columns else [()] * len(array))
        case _:
            names = ("value", "metadata")
            return _set_nulls(array, list(zip(*(array.field(name).to_pylist() for name in names), strict=True)))


def _slices(array: pa.Array, inner: list[Any]) -> list[Any]:
    offsets = array.offsets.to_pylist()
    return _set_nulls(array, [inner[start:end] for start, end in itertools.pairwise(offsets)])


def _set_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if array.null_count == 0:
        return values
    return [v if valid else None for v, valid in zip(values, array.is_valid().to_pylist(), strict=True)]


def to_array(values: Sequence[Any], data_type: DataType) -> pa.Array:
    """Return internal values as a canonical array; Unsupported for times beyond Arrow. Sums may have more digits."""
    target = arrow_type(data_type)
    if isinstance(data_type, DecimalType):
        return make_array(list(values), pa.decimal128(38, data_type.scale)).view(target)
    return make_array([_arrow_value(v, data_type, target) for v in values], target)


def _arrow_value(value: Any, data_type: DataType, target: pa.DataType) -> Any:
    if value is None:
        return None
    match data_type:
        case _ if isinstance(data_type, TIMESTAMP_TYPES):
            return _to_ticks(value, data_type, target.unit)
        case ArrayType(element=element) | VectorType(element=element):
            return [_arrow_value(v, element, target.value_type) for v in value]
        case MapType(key=key, value=item):
            return [(_arrow_value(k, key, target.key_type), _arrow_value(v, item, target.item_type)) for k, v in value]
        case MultisetType(element=element):
            return [(_arrow_value(k, element, target.key_type), v) for k, v in value]
        case RowType(fields=fields):
            pairs = zip(fields, value, strict=True)
            return {f.name: _arrow_value(v, f.type, target.field(i).type) for i, (f, v) in enumerate(pairs)}
        case VariantType():
            return {"value": value[0], "metadata": value[1]}
        case _:
            return value


def _to_ticks(nanos: int, data_type: TimestampType | LocalZonedTimestampType, unit: str) -> int:
    ticks = nanos // UNIT_NANOS[unit]
    if not -(2**63) <= ticks < 2**63:
        raise far_time_error(data_type)
    return ticks
