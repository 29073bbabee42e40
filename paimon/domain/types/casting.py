"""Type changes: which types the values of a column may become when its type changes.

Invariant: `can_cast_implicitly` implies `can_cast`; a cast that neither allows is refused. `paimon.domain.columns.cast`
holds the casts themselves. Nested types become texts only; their fields change one by one.
Source: `DataTypeCasts`, `CastExecutors`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import MAX_LENGTH, DataType
from paimon.domain.types.type_text import format_type

_NUMERIC = (*dt.INTEGER_TYPES, dt.FloatType, dt.DoubleType, dt.DecimalType)
_TEXTS = dt.CHARACTER_TYPES
_TIMES = dt.TIMESTAMP_TYPES
_PLAIN = (*_NUMERIC, dt.BooleanType, *_TEXTS)
_MOMENTS = (dt.DateType, dt.TimeType, *_TIMES)

_EXPLICIT: Mapping[type[DataType], tuple[type[DataType], ...]] = {
    dt.TinyIntType: _PLAIN,
    dt.SmallIntType: _PLAIN,
    dt.IntType: (*_PLAIN, *_TIMES),
    dt.BigIntType: (*_PLAIN, *_TIMES),
    dt.FloatType: (*_NUMERIC, *_TEXTS),
    dt.DoubleType: (*_NUMERIC, *_TEXTS),
    dt.DecimalType: (*_NUMERIC, *_TEXTS),
    dt.BooleanType: (*_NUMERIC, *_TEXTS),
    dt.CharType: (*_PLAIN, *dt.BYTES_TYPES, *_MOMENTS),
    dt.VarCharType: (*_PLAIN, *dt.BYTES_TYPES, *_MOMENTS),
    dt.BinaryType: (*dt.BYTES_TYPES, *_TEXTS),
    dt.VarBinaryType: (*dt.BYTES_TYPES, *_TEXTS),
    dt.DateType: (*_TIMES, *_TEXTS),
    dt.TimeType: (*_TIMES, *_TEXTS),
    dt.TimestampType: (dt.IntType, dt.BigIntType, *_MOMENTS, *_TEXTS),
    dt.LocalZonedTimestampType: (dt.IntType, dt.BigIntType, *_MOMENTS, *_TEXTS),
    dt.ArrayType: _TEXTS,
    dt.MapType: _TEXTS,
    dt.RowType: _TEXTS,
}
"""By source type: the types that its values can be cast to."""

_IMPLICIT: Mapping[type[DataType], tuple[type[DataType], ...]] = {
    dt.TinyIntType: (*dt.INTEGER_TYPES, dt.FloatType, dt.DoubleType, dt.DecimalType),
    dt.SmallIntType: (dt.SmallIntType, dt.IntType, dt.BigIntType, dt.FloatType, dt.DoubleType, dt.DecimalType),
    dt.IntType: (dt.IntType, dt.BigIntType, dt.FloatType, dt.DoubleType, dt.DecimalType),
    dt.BigIntType: (dt.BigIntType, dt.FloatType, dt.DoubleType, dt.DecimalType),
    dt.DecimalType: (dt.DecimalType, dt.FloatType, dt.DoubleType),
    dt.FloatType: (dt.FloatType, dt.DoubleType, dt.DecimalType),
    dt.DoubleType: (dt.DoubleType, dt.DecimalType),
    dt.CharType: (dt.CharType, dt.VarCharType),
    dt.VarCharType: (dt.VarCharType,),
    dt.BinaryType: (dt.BinaryType, dt.VarBinaryType),
    dt.VarBinaryType: (dt.VarBinaryType,),
    dt.TimestampType: _MOMENTS,
    dt.LocalZonedTimestampType: _TIMES,
}
"""By source type: the types that are allowed although explicit casts are switched off."""


def can_cast_implicitly(source: DataType, target: DataType) -> bool:
    """Return whether a cast is allowed although explicit casts are switched off."""
    return has_same_text(source, target) or (
        isinstance(target, _IMPLICIT.get(type(source), ())) and can_cast(source, target)
    )


def can_cast(source: DataType, target: DataType) -> bool:
    """Return whether values of one type can be converted to the other at all."""
    if has_same_text(source, target):
        return True
    if isinstance(source, _MOMENTS) and isinstance(target, _TEXTS):
        return isinstance(target, dt.VarCharType) and target.length == MAX_LENGTH
    if isinstance(source, dt.TimeType) and isinstance(target, dt.TimeType):
        return False
    return isinstance(target, _EXPLICIT.get(type(source), ()))


def has_same_text(source: DataType, target: DataType) -> bool:
    """Return whether two types have the same SQL text, apart from nullability and the ids of nested fields."""
    return format_type(source.with_nullable(True)) == format_type(target.with_nullable(True))
