"""Convert the statistics in the tail of an ORC file to ColumnStats.

Invariant: a bound is returned only if it holds for every value as it is read. Floating columns have none (writers leave
NaN out), and CHAR columns have none (bounds are padded with blanks, values are not).
Source: ORC specification v1, "Column Statistics".
"""

from __future__ import annotations

from decimal import Context, Decimal

from paimon.adapters.formats.guards.orc_tail import OrcTail
from paimon.adapters.formats.protobuf import Part, decode
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import NESTED_TYPES, DataField, DataType

# Numbers of members in ORC's protobuf message ColumnStatistics, and in its parts.
_VALUES, _HAS_NULL = 1, 10
_INT, _STRING, _DECIMAL, _DATE, _TIMESTAMP = 2, 4, 6, 7, 9
_MIN_MILLIS, _MAX_MILLIS = 3, 4
_NANOS = 1_000_000
_NEAR_MILLIS = (-(2**63) // _NANOS + 2, 2**63 // _NANOS - 2)
_WIDE = Context(prec=76)  # the default context refuses more than 28 digits
_INTS = (*dt.INTEGER_TYPES, dt.TimeType)
_CHAR_KIND = 17


def read_file_stats(tail: OrcTail, column: DataField) -> ColumnStats:
    """Return the statistics of a column in the whole file."""
    span = tail.spans.get(column.name)
    if span is None or not tail.statistics or isinstance(column.type, NESTED_TYPES):
        return ColumnStats()
    found = read_column_bounds(tail.statistics[span.start], column.type, tail.rows)
    return ColumnStats(null_count=found.null_count) if tail.kinds[span.start] == _CHAR_KIND else found


def read_column_bounds(encoded: bytes, data_type: DataType, rows: int) -> ColumnStats:
    """Return the statistics of one column in one stripe. Bounds are internal values, None if unknown."""
    parts = decode(encoded)
    values = next((p.as_int for p in parts if p.number == _VALUES), None)
    null_count = None if values is None else rows - values
    if any(p.number == _HAS_NULL and p.value == 0 for p in parts):
        null_count = 0
    if values == 0:
        return ColumnStats(null_count=null_count)
    kind = _kind(data_type)
    inner = next((decode(p.as_bytes) for p in parts if p.number == kind), None)
    if inner is None:
        return ColumnStats(null_count=null_count)
    return ColumnStats(_read_bound(inner, 1, data_type), _read_bound(inner, 2, data_type), null_count)


def has_wide_timestamps(encoded: bytes) -> bool:
    """Return whether a timestamp column has, or may have, values that do not fit into 64-bit nanoseconds."""
    parts = decode(encoded)
    if any(p.number == _VALUES and p.value == 0 for p in parts):
        return False
    inner = next((decode(p.as_bytes) for p in parts if p.number == _TIMESTAMP), [])
    millis = {p.number: p.as_signed for p in inner if p.number in (_MIN_MILLIS, _MAX_MILLIS)}
    if len(millis) < 2:
        return True
    return millis[_MIN_MILLIS] < _NEAR_MILLIS[0] or millis[_MAX_MILLIS] > _NEAR_MILLIS[1]


def _kind(data_type: DataType) -> int:
    if isinstance(data_type, _INTS):
        return _INT
    if isinstance(data_type, dt.VarCharType):
        return _STRING
    if isinstance(data_type, dt.DecimalType):
        return _DECIMAL
    if isinstance(data_type, dt.DateType):
        return _DATE
    return _TIMESTAMP if isinstance(data_type, dt.TIMESTAMP_TYPES) else -1


def _read_bound(inner: list[Part], field: int, data_type: DataType) -> int | str | Decimal | None:
    """Return the bound in this field. Bounds of times are in whole milliseconds, so they are widened by one."""
    if isinstance(data_type, dt.TIMESTAMP_TYPES):
        part = next((p for p in inner if p.number == field + 2), None)
        widening = -_NANOS if field == 1 else _NANOS
        return None if part is None else part.as_signed * _NANOS + widening
    part = next((p for p in inner if p.number == field), None)
    if part is None:
        return None
    if isinstance(data_type, dt.VarCharType):
        return part.as_bytes.decode()
    if isinstance(data_type, dt.DecimalType):
        return Decimal(part.as_bytes.decode()).quantize(Decimal(1).scaleb(-data_type.scale), context=_WIDE)
    return part.as_signed
