"""Casts between numbers, and between booleans and numbers.

Law: as Java's primitive conversions: integers wrap, floats saturate at INT or BIGINT and then wrap (NaN is 0), decimals
drop their fraction and wrap; into DECIMAL values round half up and become null where they do not fit.
Source: `NumericPrimitiveCastRule`, `DecimalUtils`, `NumericPrimitiveToDecimalCastRule`.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.java_text import java_floating

_WIDE = 76
_LARGEST = {pa.int32(): 2**31 - 1, pa.int64(): 2**63 - 1}


def to_integer(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Any number as an integer."""
    if pa.types.is_boolean(array.type):
        return array.cast(target)
    if pa.types.is_integer(array.type):
        return array.cast(target, safe=False)
    if pa.types.is_decimal(array.type):
        return _decimal_bits(array).cast(target, safe=False)
    middle = pa.int64() if target == pa.int64() else pa.int32()
    return _saturated(array, middle).cast(target, safe=False)


def _saturated(array: pa.Array, target: pa.DataType) -> pa.Array:
    largest = _LARGEST[target]
    values = np.nan_to_num(_doubles(array), nan=0.0, posinf=np.inf, neginf=-np.inf)
    above, below = values >= largest, values <= -largest - 1
    inside = np.where(above | below, 0.0, values).astype(np.int64)
    made = np.where(above, largest, np.where(below, -largest - 1, inside))
    return pa.array(made, mask=np.asarray(array.is_null())).cast(target)


def _doubles(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray(pc.fill_null(array.cast(pa.float64()), 0.0))


def _decimal_bits(array: pa.Array) -> pa.Array:
    """The lowest 64 bits of the whole part."""
    # Arrow cannot truncate DECIMAL(p, p): no digit is left for the whole part.
    whole = pc.trunc(array.cast(pa.decimal256(_WIDE, array.type.scale))).cast(pa.decimal128(38, 0))
    words = np.frombuffer(whole.buffers()[1], "<i8").reshape(-1, 2)[whole.offset : whole.offset + len(whole), 0]
    return pa.array(words, mask=np.asarray(whole.is_null()))


def to_floating(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Any number as FLOAT or DOUBLE, the nearest."""
    if pa.types.is_decimal(array.type):
        return array.cast(pa.string()).cast(target)  # Arrow's own way is not exact in the last bit
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8()).cast(target)
    return array.cast(target, safe=False)


def to_boolean(array: pa.Array) -> pa.Array:
    """Whether an integer is not zero."""
    return pc.not_equal(array, pa.scalar(0, array.type))


def to_decimal(array: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """Any number as DECIMAL."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if pa.types.is_floating(array.type):
        return _floats_to_decimal(array, target)
    scale, digits = _size(array.type)
    if target.scale >= scale and target.precision - target.scale >= digits:
        return array.cast(target)
    if pa.types.is_integer(array.type):
        return fitted(array.cast(pa.decimal256(_WIDE, 0)), target)
    return fitted(array.cast(pa.decimal256(_WIDE, array.type.scale)), target)


def _size(number: pa.DataType) -> tuple[int, int]:
    """Digits after the point, and the most digits before it."""
    if pa.types.is_integer(number):
        return 0, len(str(2 ** (number.bit_width - 1)))
    return number.scale, number.precision - number.scale


def fitted(wide: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """A decimal256 rounded half up to the scale, null where it has too many digits."""
    if target.scale < wide.type.scale:
        wide = pc.round(wide, ndigits=target.scale, round_mode="half_towards_infinity")
    moved = wide.cast(pa.decimal256(_WIDE, target.scale))
    bound = pa.scalar(Decimal(10) ** (target.precision - target.scale), pa.decimal256(_WIDE, target.scale))
    fits = pc.and_(pc.less(moved, bound), pc.greater(moved, pc.negate(bound)))
    return pc.if_else(fits, moved, pa.scalar(None, moved.type)).cast(target)


def _floats_to_decimal(array: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """By the digits that Java prints of the DOUBLE, one distinct number at a time; NaN and infinity are null."""
    encoded = array.cast(pa.float64()).dictionary_encode()
    numbers = encoded.dictionary.to_numpy(zero_copy_only=False)
    largest = Decimal(10) ** 38
    digits = [Decimal(java_floating(v)) if np.isfinite(v) else Decimal(10) ** 38 for v in numbers]
    kept = [_shortened(d) if abs(d) < largest else None for d in digits]
    return fitted(pa.array(kept, pa.decimal256(_WIDE, 38)), target).take(encoded.indices)


def _shortened(number: Decimal) -> Decimal:
    """At most 38 digits after the point: what lies below decides no rounding but of the very smallest."""
    exponent = number.as_tuple().exponent
    return number if isinstance(exponent, int) and exponent >= -38 else round(number, 38)
