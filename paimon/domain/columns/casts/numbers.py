"""Casts between numbers, and between booleans and numbers.

Invariant: casts behave as Java's primitive conversions. Integers wrap. Floats saturate at INT or BIGINT and then wrap
(NaN is 0). Decimals drop their fraction and wrap. Values cast to DECIMAL round half up, and become null where they do
not fit.
Source: `NumericPrimitiveCastRule`, `DecimalUtils`, `NumericPrimitiveToDecimalCastRule`.
"""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.java_text import format_java_float

_WIDE = 76
_EXACT = Context(prec=_WIDE)
"""The context of the user's thread may round to fewer digits."""
_LARGEST = {pa.int32(): 2**31 - 1, pa.int64(): 2**63 - 1}


def to_integer(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast any number or boolean to an integer."""
    if pa.types.is_boolean(array.type):
        return array.cast(target)
    if pa.types.is_integer(array.type):
        return array.cast(target, safe=False)
    if pa.types.is_decimal(array.type):
        return _decimal_bits(array).cast(target, safe=False)
    middle = pa.int64() if target == pa.int64() else pa.int32()
    return _cast_saturating(array, middle).cast(target, safe=False)


def _cast_saturating(array: pa.Array, target: pa.DataType) -> pa.Array:
    largest = _LARGEST[target]
    values = np.nan_to_num(_doubles(array), nan=0.0, posinf=np.inf, neginf=-np.inf)
    above, below = values >= largest, values <= -largest - 1
    inside = np.where(above | below, 0.0, values).astype(np.int64)
    made = np.where(above, largest, np.where(below, -largest - 1, inside))
    return pa.array(made, mask=np.asarray(array.is_null())).cast(target)


def _doubles(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray(pc.fill_null(array.cast(pa.float64()), 0.0))


def _decimal_bits(array: pa.Array) -> pa.Array:
    """Return the lowest 64 bits of the whole part."""
    # Arrow cannot truncate DECIMAL(p, p): no digit is left for the whole part.
    whole = pc.trunc(array.cast(pa.decimal256(_WIDE, array.type.scale))).cast(pa.decimal128(38, 0))
    words = np.frombuffer(whole.buffers()[1], "<i8").reshape(-1, 2)[whole.offset : whole.offset + len(whole), 0]
    return pa.array(words, mask=np.asarray(whole.is_null()))


def to_floating(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast any number or boolean to the nearest FLOAT or DOUBLE."""
    if pa.types.is_decimal(array.type):
        return array.cast(pa.string()).cast(target)  # Arrow's own way is not exact in the last bit
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8()).cast(target)
    return array.cast(target, safe=False)


def to_boolean(array: pa.Array) -> pa.Array:
    """Cast integers to booleans: true where the integer is not zero."""
    return pc.not_equal(array, pa.scalar(0, array.type))


def to_decimal(array: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """Cast any number or boolean to DECIMAL; null where it does not fit."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if pa.types.is_floating(array.type):
        return _floats_to_decimal(array, target)
    scale, digits = _size(array.type)
    if target.scale >= scale and target.precision - target.scale >= digits:
        return array.cast(target)
    if pa.types.is_integer(array.type):
        return fit_decimals(array.cast(pa.decimal256(_WIDE, 0)), target)
    return fit_decimals(array.cast(pa.decimal256(_WIDE, array.type.scale)), target)


def _size(number: pa.DataType) -> tuple[int, int]:
    """Return the digits after the point, and the most digits before it."""
    if pa.types.is_integer(number):
        return 0, len(str(2 ** (number.bit_width - 1)))
    return number.scale, number.precision - number.scale


def fit_decimals(wide: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """Round a decimal256 array half up to the target's scale; null where it has too many digits."""
    if target.scale < wide.type.scale:
        wide = pc.round(wide, ndigits=target.scale, round_mode="half_towards_infinity")
    moved = wide.cast(pa.decimal256(_WIDE, target.scale))
    bound = pa.scalar(Decimal(f"1e{target.precision - target.scale}"), pa.decimal256(_WIDE, target.scale))
    fits = pc.and_(pc.less(moved, bound), pc.greater(moved, pc.negate(bound)))
    return pc.if_else(fits, moved, pa.scalar(None, moved.type)).cast(target)


def _floats_to_decimal(array: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """Cast by the digits that Java prints of a DOUBLE, one distinct number at a time; NaN and infinity become null."""
    encoded = array.cast(pa.float64()).dictionary_encode()
    numbers = encoded.dictionary.to_numpy(zero_copy_only=False)
    largest = Decimal("1e38")
    digits = [Decimal(format_java_float(v)) if np.isfinite(v) else largest for v in numbers]
    kept = [_shorten_digits(d) if d.copy_abs() < largest else None for d in digits]
    return fit_decimals(pa.array(kept, pa.decimal256(_WIDE, 38)), target).take(encoded.indices)


def _shorten_digits(number: Decimal) -> Decimal:
    """Round to 38 digits after the point; further digits decide the rounding of extremely small numbers only."""
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -38:
        return number
    return number.quantize(Decimal("1e-38"), context=_EXACT)
