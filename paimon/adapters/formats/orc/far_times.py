"""The way through pyorc, row by row, for the times that Arrow's ORC reader and writer cannot carry.

Law: slower, but any time that the type allows survives. Arrow reads all times as 64-bit nanoseconds, which end in 1677
and 2262; and before 1970 it writes negative fractions of a second, which no other reader understands.
Source: pyorc's converters exchange seconds and nanoseconds as they stand in the file; ORC-763 tells why ORC itself
loses the last second before 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Context, Decimal
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyorc
from pyorc.converters import ORCConverter

from paimon.adapters.formats.nested import rebuild
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType

_NANOS = 1_000_000_000
_SMALL_NANOS = 999_999
_WIDE = Context(prec=76)  # Python's own refuses more than 28 digits
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": _NANOS}


class _Nanos(ORCConverter):  # type: ignore[misc]
    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, timezone: object) -> int:
        return seconds * _NANOS + nanoseconds

    @staticmethod
    def to_orc(nanos: int, timezone: object) -> tuple[int, int]:
        seconds, rest = divmod(nanos, _NANOS)
        if seconds == -1 and rest > _SMALL_NANOS:
            # ORC rounds stored seconds towards zero, and so takes this second for the first one of 1970. All readers
            # add seconds and nanoseconds: the second before, with more than a second of nanoseconds, says the same.
            return -2, rest + _NANOS
        return seconds, rest


class _Days(ORCConverter):  # type: ignore[misc]
    @staticmethod
    def from_orc(days: int) -> int:
        return days

    @staticmethod
    def to_orc(days: int) -> int:
        return days


_CONVERTERS = {
    pyorc.TypeKind.TIMESTAMP: _Nanos,
    pyorc.TypeKind.TIMESTAMP_INSTANT: _Nanos,
    pyorc.TypeKind.DATE: _Days,
}
_KINDS: Mapping[type[DataType], Any] = {
    dt.BooleanType: pyorc.Boolean,
    dt.TinyIntType: pyorc.TinyInt,
    dt.SmallIntType: pyorc.SmallInt,
    dt.IntType: pyorc.Int,
    dt.TimeType: pyorc.Int,
    dt.BigIntType: pyorc.BigInt,
    dt.FloatType: pyorc.Float,
    dt.DoubleType: pyorc.Double,
    dt.CharType: pyorc.String,
    dt.VarCharType: pyorc.String,
    dt.BinaryType: pyorc.Binary,
    dt.VarBinaryType: pyorc.Binary,
    dt.BlobType: pyorc.Binary,
    dt.DateType: pyorc.Date,
    dt.TimestampType: pyorc.Timestamp,
    dt.LocalZonedTimestampType: pyorc.TimestampInstant,
}


def read_column(source: pa.NativeFile, field: DataField, index: int, path: str) -> Iterator[pa.Array]:
    """One top-level column, the one at `index`, in canonical type, stripe by stripe."""
    source.seek(0)
    try:
        for stripe in pyorc.Reader(source, column_indices=[index], converters=_CONVERTERS).iter_stripes():
            yield to_array([_internal(row[0], field.type) for row in stripe], field.type)
    except OverflowError as error:
        what = f"times beyond 1677 to 2262 in the nanosecond column {field.name!r} of {path}"
        raise Unsupported(what) from error
    except (RuntimeError, ValueError) as error:  # how pyorc tells of damaged data
        raise CorruptTable(path, f"has a column {field.name!r} that cannot be decoded: {error}") from error


def has_early_fractions(array: pa.Array, data_type: DataType) -> bool:
    """Whether there is a time before 1970 with a fraction of a second, at any depth."""
    found = False

    def look(leaf: pa.Array, leaf_type: DataType) -> pa.Array:
        nonlocal found
        if isinstance(leaf_type, dt.TIMESTAMP_TYPES) and leaf.type.unit != "s":
            ticks = leaf.cast(pa.int64()).fill_null(0).to_numpy()
            found = found or bool(np.any((ticks < 0) & (ticks % _UNITS[leaf.type.unit] != 0)))
        return leaf

    if isinstance(data_type, (*dt.TIMESTAMP_TYPES, *dt.NESTED_TYPES)):
        rebuild(array, data_type, look)
    return found


class RowWriter:
    """An ORC file in memory, of the same column kinds as Arrow would write (names and attributes are not kept)."""

    def __init__(self, fields: tuple[DataField, ...], settings: Mapping[str, Any]) -> None:
        self._fields = fields
        self._file = BytesIO()
        schema = pyorc.Struct(**{f"c{i}": _kind(f.type) for i, f in enumerate(fields)})
        self._writer = pyorc.Writer(self._file, schema, converters=_CONVERTERS, **settings)

    def write(self, columns: Iterable[pa.Array]) -> None:
        """Writes the rows of these columns, which are canonical."""
        values = [_external(c, f.type) for c, f in zip(columns, self._fields, strict=True)]
        self._writer.writerows(zip(*values, strict=True))

    def size_bytes(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def close(self) -> bytes:
        """The file."""
        self._writer.close()
        return self._file.getvalue()


def _kind(data_type: DataType) -> Any:
    match data_type:
        case dt.RowType(fields=fields):
            return pyorc.Struct(**{f"c{i}": _kind(f.type) for i, f in enumerate(fields)})
        case dt.ArrayType(element=element):
            return pyorc.Array(_kind(element))
        case dt.MapType(key=key, value=value):
            return pyorc.Map(_kind(key), _kind(value))
        case dt.MultisetType(element=element):
            return pyorc.Map(_kind(element), pyorc.Int())
        case dt.DecimalType(precision=precision, scale=scale):
            return pyorc.Decimal(precision, scale)
    return _KINDS[type(data_type)]()


def _external(array: pa.Array, data_type: DataType) -> list[Any]:
    values = to_values(array, data_type)
    if isinstance(data_type, (*dt.NESTED_TYPES, dt.CharType)):
        return [_given(value, data_type) for value in values]
    return values


def _given(value: Any, data_type: DataType) -> Any:
    """An internal value as pyorc takes it."""
    if value is None:
        return None
    match data_type:
        case dt.RowType(fields=fields):
            return tuple(_given(v, f.type) for v, f in zip(value, fields, strict=True))
        case dt.ArrayType(element=element):
            return [_given(v, element) for v in value]
        case dt.MapType(key=key, value=inner):
            return {_given(k, key): _given(v, inner) for k, v in value}
        case dt.MultisetType(element=element):
            return {_given(k, element): v for k, v in value}
        case dt.CharType(length=length):
            return value.ljust(length)
    return value


def _internal(value: Any, data_type: DataType) -> Any:
    """What pyorc gives as an internal value."""
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
            return value.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    return value
