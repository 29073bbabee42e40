"""Columns with times beyond 1677 to 2262, which Arrow's ORC reader squeezes into 64-bit nanoseconds and thereby ruins.

Law: slower, but any time that the type allows comes back; used for those columns only whose statistics show such times.
Source: pyorc's converters hand out seconds and nanoseconds as they stand in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyorc
from pyorc.converters import ORCConverter

from paimon.domain.row.values import to_array
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType

_NANOS = 1_000_000_000


class _Nanos(ORCConverter):  # type: ignore[misc]
    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, timezone: object) -> int:
        return seconds * _NANOS + nanoseconds


class _Days(ORCConverter):  # type: ignore[misc]
    @staticmethod
    def from_orc(days: int) -> int:
        return days


_CONVERTERS = {
    pyorc.TypeKind.TIMESTAMP: _Nanos,
    pyorc.TypeKind.TIMESTAMP_INSTANT: _Nanos,
    pyorc.TypeKind.DATE: _Days,
}


def read_column(source: pa.NativeFile, field: DataField) -> Iterator[pa.Array]:
    """One top-level column in canonical type, stripe by stripe."""
    source.seek(0)
    reader = pyorc.Reader(source, column_names=[field.name], converters=_CONVERTERS)
    for stripe in reader.iter_stripes():
        yield to_array([_internal(row[0], field.type) for row in stripe], field.type)


def _internal(value: Any, data_type: DataType) -> Any:
    if value is None:
        return None
    match data_type:
        case dt.RowType(fields=fields):
            return tuple(_internal(v, f.type) for v, f in zip(value, fields, strict=True))
        case dt.ArrayType(element=element):
            return [_internal(v, element) for v in value]
        case dt.MapType(key=key, value=inner):
            return [(_internal(k, key), _internal(v, inner)) for k, v in value.items()]
        case dt.MultisetType(element=element):
            return [(_internal(k, element), v) for k, v in value.items()]
        case dt.CharType():
            return value.rstrip(" ")
        case dt.DecimalType(scale=scale):
            return value.quantize(Decimal(1).scaleb(-scale))
    return value
