"""Read and write rows with pyorc, for the times that Arrow's ORC reader and writer cannot represent.

Arrow reads all times as 64-bit nanoseconds, which end in 1677 and 2262. Before 1970 it writes negative fractions of a
second, which no other reader understands. pyorc is slower, because it converts row by row.

Invariant: a time is read as it was written, or is Unsupported (nanoseconds outside of 1677 to 2262).
Source: pyorc's converters exchange seconds and nanoseconds as stored. ORC-763 describes why ORC itself loses the last
second before 1970.
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

from paimon.adapters.formats.nested import rebuild_leaves
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType

_NANOS = 1_000_000_000
_SMALL_NANOS = 999_999
"""ORC adds one second to a stored time before 1970 whose fraction is larger, and readers subtract it again."""
_WIDE = Context(prec=76)  # the default context refuses more than 28 digits
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": _NANOS}


class _Nanos(ORCConverter):  # type: ignore[misc]
    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, timezone: object) -> int:
        """Return the nanoseconds since 1970. The time zone is not used."""
        return seconds * _NANOS + nanoseconds

    @staticmethod
    def to_orc(nanos: int, timezone: object) -> tuple[int, int]:
        """Return the seconds and nanoseconds to store."""
        seconds, rest = divmod(nanos, _NANOS)
        if seconds == -1 and rest > _SMALL_NANOS:
            # -1 would be stored as 0, from which readers subtract nothing. The same time, as -2 and more than a second
            # of nanoseconds, is stored as -1, from which they do.
            return -2, rest + _NANOS
        return seconds, rest


class _Days(ORCConverter):  # type: ignore[misc]
    @staticmethod
    def from_orc(days: int) -> int:
        """Return the days since 1970."""
        return days

    @staticmethod
    def to_orc(days: int) -> int:
        """Return the days to store."""
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
    """Read the column at `index`, one array per stripe; Unsupported for nanoseconds that Arrow lacks."""
    source.seek(0)
    try:
        for stripe in pyorc.Reader(source, column_indices=[index], converters=_CONVERTERS).iter_stripes():
            yield to_array([_from_pyorc(row[0], field.type) for row in stripe], field.type)
    except Unsupported as error:
        raise Unsupported(f"column {field.name!r}: {error.feature}", hint=error.hint) from error
    except (RuntimeError, ValueError) as error:  # pyorc's errors for damaged data
        raise CorruptTable(path, f"has a column {field.name!r} that cannot be decoded: {error}") from error


def has_early_fractions(array: pa.Array, data_type: DataType) -> bool:
    """Return whether there is a time before 1970 with a fraction of a second, at any depth."""
    found = False

    def look(leaf: pa.Array, leaf_type: DataType) -> pa.Array:
        """Look at the times of a leaf, and return it unchanged."""
        nonlocal found
        if isinstance(leaf_type, dt.TIMESTAMP_TYPES) and leaf.type.unit != "s":
            ticks = leaf.cast(pa.int64()).fill_null(0).to_numpy()
            found = found or bool(np.any((ticks < 0) & (ticks % _UNITS[leaf.type.unit] != 0)))
        return leaf

    if isinstance(data_type, (*dt.TIMESTAMP_TYPES, *dt.NESTED_TYPES)):
        rebuild_leaves(array, data_type, look)
    return found


class PyorcRowWriter:
    """Write rows to an ORC file in memory, with the column kinds of Arrow and the options of `pyorc.Writer`."""

    def __init__(self, fields: tuple[DataField, ...], settings: Mapping[str, Any]) -> None:
        self._fields = fields
        self._file = BytesIO()
        schema = pyorc.Struct(**{f"c{i}": _pyorc_type(f.type) for i, f in enumerate(fields)})
        self._writer = pyorc.Writer(self._file, schema, converters=_CONVERTERS, **settings)

    def write(self, columns: Iterable[pa.Array]) -> None:
        """Write the rows of canonical columns."""
        values = [_to_pyorc_values(c, f.type) for c, f in zip(columns, self._fields, strict=True)]
        self._writer.writerows(zip(*values, strict=True))

    def size_bytes(self) -> int:
        """Return the bytes written so far."""
        return self._file.tell()

    def close(self) -> bytes:
        """Finish the file and return its bytes."""
        self._writer.close()
        return self._file.getvalue()


def _pyorc_type(data_type: DataType) -> Any:
    match data_type:
        case dt.RowType(fields=fields):
            return pyorc.Struct(**{f"c{i}": _pyorc_type(f.type) for i, f in enumerate(fields)})
        case dt.ArrayType(element=element):
            return pyorc.Array(_pyorc_type(element))
        case dt.MapType(key=key, value=value):
            return pyorc.Map(_pyorc_type(key), _pyorc_type(value))
        case dt.MultisetType(element=element):
            return pyorc.Map(_pyorc_type(element), pyorc.Int())
        case dt.DecimalType(precision=precision, scale=scale):
            return pyorc.Decimal(precision, scale)
    return _KINDS[type(data_type)]()


def _to_pyorc_values(array: pa.Array, data_type: DataType) -> list[Any]:
    values = to_values(array, data_type)
    if isinstance(data_type, (*dt.NESTED_TYPES, dt.CharType)):
        return [_to_pyorc(value, data_type) for value in values]
    return values


def _to_pyorc(value: Any, data_type: DataType) -> Any:
    """Convert an internal value to the form that pyorc writes."""
    if value is None:
        return None
    match data_type:
        case dt.RowType(fields=fields):
            return tuple(_to_pyorc(v, f.type) for v, f in zip(value, fields, strict=True))
        case dt.ArrayType(element=element):
            return [_to_pyorc(v, element) for v in value]
        case dt.MapType(key=key, value=inner):
            return {_to_pyorc(k, key): _to_pyorc(v, inner) for k, v in value}
        case dt.MultisetType(element=element):
            return {_to_pyorc(k, element): v for k, v in value}
        case dt.CharType(length=length):
            return value.ljust(length)
    return value


def _from_pyorc(value: Any, data_type: DataType) -> Any:
    """Convert a value that pyorc reads to an internal value."""
    if value is None:
        return None
    match data_type:
        case dt.RowType(fields=fields):
            return tuple(_from_pyorc(v, f.type) for v, f in zip(value, fields, strict=True))
        case dt.ArrayType(element=element):
            return [_from_pyorc(v, element) for v in value]
        case dt.MapType(key=key, value=inner):
            return [(_from_pyorc(k, key), _from_pyorc(v, inner)) for k, v in value.items()]
        case dt.MultisetType(element=element):
            return [(_from_pyorc(k, element), v) for k, v in value.items()]
        case dt.CharType():
            return value.rstrip(" ")
        case dt.DecimalType(scale=scale):
            return value.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    return value
