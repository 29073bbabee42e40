"""Strategies for the internal values of a type.

Invariant: a drawn value fits its type exactly (scale, length, precision), so that a write and a read return it
unchanged.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

_YEAR_1_NANOS = -62_135_596_800 * 10**9
_YEAR_9999_NANOS = 253_402_300_799 * 10**9
_NANO_BOUND = 9_223_372_036 * 10**9  # what a 64-bit count of nanoseconds can hold
_INTEGERS = {dt.TinyIntType: 8, dt.SmallIntType: 16, dt.IntType: 32, dt.BigIntType: 64}
_TEXT_LIMIT = 24
_CHARACTERS = st.characters(codec="utf-8")
_VARIANT_METADATA = bytes((1, 0, 0))
_VARIANT_VALUES = (bytes((0,)), bytes((4,)), bytes((8,)), bytes((12, 7)), bytes((12, 255)))  # null, true, false, 7, -1


@cache  # building strategies costs more than drawing from them
def values_of(data_type: DataType, *, nan: bool = True) -> st.SearchStrategy[Any]:
    """Draw internal values of a type, with nulls if it is nullable; `nan` allows NaN in floating-point types."""
    not_null = _values_without_null(data_type, nan)
    return st.none() | not_null if data_type.nullable else not_null


def _values_without_null(data_type: DataType, nan: bool) -> st.SearchStrategy[Any]:
    match data_type:
        case dt.CharType(length=n) | dt.VarCharType(length=n):
            texts = st.text(_CHARACTERS, max_size=min(n, _TEXT_LIMIT))
            # ORC pads CHAR with blanks, so that trailing blanks of the value are lost.
            return texts.map(lambda t: t.rstrip(" ")) if isinstance(data_type, dt.CharType) else texts
        case dt.BinaryType(length=n) | dt.VarBinaryType(length=n):
            return st.binary(max_size=min(n, _TEXT_LIMIT))
        case dt.BlobType():
            return st.binary(max_size=_TEXT_LIMIT)
        case dt.DateType():
            return st.integers(_YEAR_1_NANOS // (86_400 * 10**9), _YEAR_9999_NANOS // (86_400 * 10**9))
        case dt.TimeType(precision=p):
            step = 10 ** (3 - min(p, 3))
            return st.integers(0, (86_400_000 - 1) // step).map(lambda n: n * step)
        case dt.TimestampType(precision=p) | dt.LocalZonedTimestampType(precision=p):
            return _timestamps(p)
        case dt.VariantType():
            return st.sampled_from(_VARIANT_VALUES).map(lambda value: (value, _VARIANT_METADATA))
    numbers = _numbers(data_type, nan)
    return _nested_values(data_type, nan) if numbers is None else numbers


def _numbers(data_type: DataType, nan: bool) -> st.SearchStrategy[Any] | None:
    """Draw booleans and numbers; None for other types."""
    match data_type:
        case dt.BooleanType():
            return st.booleans()
        case dt.FloatType():
            return st.floats(width=32, allow_nan=nan)
        case dt.DoubleType():
            return st.floats(allow_nan=nan)
        case dt.DecimalType(precision=p, scale=s):
            return st.integers(-(10**p) + 1, 10**p - 1).map(lambda unscaled: to_exact_decimal(unscaled, s))
    bits = _INTEGERS.get(type(data_type))
    return None if bits is None else st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def to_exact_decimal(unscaled: int, scale: int) -> Decimal:
    """Return the Decimal of this scale exactly, independent of the precision of the decimal context."""
    digits = tuple(int(d) for d in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))


def _timestamps(precision: int) -> st.SearchStrategy[int]:
    step = 10 ** (9 - precision)
    low, high = (_YEAR_1_NANOS, _YEAR_9999_NANOS) if precision <= 6 else (-_NANO_BOUND, _NANO_BOUND)
    return st.integers(-(-low // step), high // step).map(lambda n: n * step)


def _nested_values(data_type: DataType, nan: bool) -> st.SearchStrategy[Any]:
    match data_type:
        case dt.ArrayType(element=element):
            return st.lists(values_of(element, nan=nan), max_size=3)
        case dt.VectorType(element=element, length=n):
            return st.lists(values_of(element, nan=nan), min_size=n, max_size=n)
        case dt.MapType(key=key, value=value):
            keys = values_of(key.with_nullable(False), nan=False)
            return st.lists(st.tuples(keys, values_of(value, nan=nan)), max_size=3, unique_by=lambda p: repr(p[0]))
        case dt.MultisetType(element=element):
            keys = values_of(element.with_nullable(False), nan=False)
            return st.lists(st.tuples(keys, st.integers(1, 5)), max_size=3, unique_by=lambda p: repr(p[0]))
        case dt.RowType(fields=fields):
            return st.tuples(*(values_of(f.type, nan=nan) for f in fields))
    raise TypeError(f"no values for {data_type}")
