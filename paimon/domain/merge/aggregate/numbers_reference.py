"""sum, product, count, max, min, bool_and and bool_or, value by value.

Invariant: nulls are skipped. Integers wrap. A sum of DECIMAL with up to 18 digits is kept while its unscaled value fits
64 bits, even beyond its digits; any other result with too many digits is null, and the next value starts anew. Products
of DECIMAL are rounded half up to their scale. FLOAT is computed in 32 bits. Floats compare in the total order of
`paimon.domain.columns.java_float_order`.

Source: `FieldSumAgg`, `FieldProductAgg`, `DecimalUtils`, `FieldMaxAgg`, `FieldMinAgg`, `FieldBoolAndAgg`, ...
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.reduce_reference import Combine, Folding
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.row.binary_reader import to_decimal
from paimon.domain.row.binary_writer import to_unscaled
from paimon.domain.types.data_types import BigIntType, DecimalType, DoubleType, FloatType, SmallIntType, TinyIntType

_BITS = {TinyIntType: 8, SmallIntType: 16, BigIntType: 64}
_LONG_DIGITS = 18
Exact = Callable[[int, int], int]


def _skip_nulls(combine: Combine) -> Combine:
    def _combine(state: Any, value: Any, aggregate: Aggregate) -> Any:
        """Combine a value with the state, unless one of them is null."""
        if state is None or value is None:
            return value if state is None else state
        return combine(state, value, aggregate)

    return _combine


def _add(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return _add_exactly(state, value, aggregate, np.add, int.__add__)


def _subtract(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if value is None:
        return state
    if state is None:
        return _negate(value, aggregate)
    return _add_exactly(state, value, aggregate, np.subtract, int.__sub__)


def _negate(value: Any, aggregate: Aggregate) -> Any:
    kind = aggregate.column.type
    if isinstance(kind, DecimalType):
        return _to_decimal_of_type(-to_unscaled(value, kind.scale), kind)
    return -value if isinstance(kind, FloatType | DoubleType) else _wrap(-value, aggregate)


def _add_exactly(state: Any, value: Any, aggregate: Aggregate, floats: np.ufunc, exact: Exact) -> Any:
    kind = aggregate.column.type
    if not isinstance(kind, DecimalType):
        return _compute_number(state, value, aggregate, floats, exact)
    found = exact(to_unscaled(state, kind.scale), to_unscaled(value, kind.scale))
    if kind.precision > _LONG_DIGITS:
        return _to_decimal_of_type(found, kind)
    return to_decimal(found, kind.scale) if -(1 << 63) <= found < 1 << 63 else None


def _multiply(state: Any, value: Any, aggregate: Aggregate) -> Any:
    kind = aggregate.column.type
    if not isinstance(kind, DecimalType):
        return _compute_number(state, value, aggregate, np.multiply, int.__mul__)
    found = to_unscaled(state, kind.scale) * to_unscaled(value, kind.scale)
    return _to_decimal_of_type(_divide_half_up(found, int(10**kind.scale)), kind)


def _divide_values(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return state
    kind = aggregate.column.type
    if not isinstance(kind, FloatType | DoubleType) and not value:
        name = aggregate.column.name
        raise InvalidRequest(
            f"The product of column {name!r} cannot retract a 0",
            subject=name,
            hint=f"set 'fields.{name}.ignore-retract' to 'true'",
        )
    if not isinstance(kind, DecimalType):
        return _compute_number(state, value, aggregate, np.divide, _divide_towards_zero)
    found = to_unscaled(state, kind.scale) * 10**kind.scale
    return _to_decimal_of_type(_divide_half_up(found, to_unscaled(value, kind.scale)), kind)


def _divide_towards_zero(number: int, divisor: int) -> int:
    quotient = abs(number) // abs(divisor)
    return quotient if (number < 0) == (divisor < 0) else -quotient


def _divide_half_up(number: int, divisor: int) -> int:
    quotient = (2 * abs(number) + abs(divisor)) // (2 * abs(divisor))
    return quotient if (number < 0) == (divisor < 0) else -quotient


def _compute_number(state: Any, value: Any, aggregate: Aggregate, floats: np.ufunc, exact: Exact) -> Any:
    kind = aggregate.column.type
    if isinstance(kind, FloatType | DoubleType):
        width = np.float32 if isinstance(kind, FloatType) else np.float64
        with np.errstate(all="ignore"):
            return float(floats(width(state), width(value)))
    return _wrap(exact(state, value), aggregate)


def _wrap(value: int, aggregate: Aggregate) -> int:
    """Return the integer with the lowest bits of a number, as many as its type has."""
    half = 1 << (_BITS.get(type(aggregate.column.type), 32) - 1)
    return (value + half) % (2 * half) - half


def _to_decimal_of_type(unscaled: int, kind: DecimalType) -> Decimal | None:
    return to_decimal(unscaled, kind.scale) if abs(unscaled) < 10**kind.precision else None


def _keep_larger(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return value if compare_values(value, state) > 0 else state


def _keep_smaller(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return value if compare_values(value, state) < 0 else state


def _count_value(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if value is None:
        return state
    return _wrap((state or 0) + 1, aggregate)


SUM = Folding(_skip_nulls(_add), retract=_subtract, add_older=_skip_nulls(_add))
PRODUCT = Folding(_skip_nulls(_multiply), retract=_divide_values, add_older=_skip_nulls(_multiply))
COUNT = Folding(_count_value, add_older=_count_value)
MAX = Folding(_skip_nulls(_keep_larger))
MIN = Folding(_skip_nulls(_keep_smaller))
BOOL_AND = Folding(_skip_nulls(lambda state, value, _: state and value))
BOOL_OR = Folding(_skip_nulls(lambda state, value, _: state or value))
