"""sum, product, count, max, min, bool_and and bool_or, value by value.

Invariant: nulls are skipped. Integers and decimals that do not fit their type are refused. FLOAT is computed in 32
bits, DECIMAL keeps its scale (half up). Floats compare in the total order of `paimon.domain.columns.java_float_order`.

Source: `FieldSumAgg`, `FieldProductAgg`, `FieldMaxAgg`, `FieldMinAgg`, `FieldBoolAndAgg`, `FieldBoolOrAgg`.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.reduce_reference import Combine, Folding
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.types.data_types import BigIntType, DecimalType, DoubleType, FloatType, SmallIntType, TinyIntType

_WIDE = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP)
_DIVISION = decimal.Context(prec=38, rounding=decimal.ROUND_HALF_UP)
_BITS = {TinyIntType: 8, SmallIntType: 16, BigIntType: 64}


def _skip_nulls(combine: Combine) -> Combine:
    def _combine(state: Any, value: Any, aggregate: Aggregate) -> Any:
        """Combine a value with the state, unless one of them is null."""
        if state is None or value is None:
            return value if state is None else state
        return combine(state, value, aggregate)

    return _combine


def _add(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return _apply_operation(state, value, aggregate, np.add, _WIDE.add, int.__add__)


def _subtract(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if value is None:
        return state
    state = _get_zero(aggregate) if state is None else state
    return _apply_operation(state, value, aggregate, np.subtract, _WIDE.subtract, int.__sub__)


def _get_zero(aggregate: Aggregate) -> Any:
    """Return what a value is subtracted from where no value was added before; -0.0 keeps the sign of a zero."""
    if isinstance(aggregate.column.type, FloatType | DoubleType):
        return -0.0
    return decimal.Decimal(0) if isinstance(aggregate.column.type, DecimalType) else 0


def _multiply(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return _apply_operation(state, value, aggregate, np.multiply, _WIDE.multiply, int.__mul__)


def _divide_values(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return state
    if isinstance(value, int | decimal.Decimal) and not value:
        name = aggregate.column.name
        raise InvalidRequest(
            f"The product of column {name!r} cannot retract a 0",
            subject=name,
            hint=f"set 'fields.{name}.ignore-retract' to 'true'",
        )
    if isinstance(value, int):
        quotient = abs(state) // abs(value)
        return _fit_to_type(quotient if (state < 0) == (value < 0) else -quotient, aggregate)
    return _apply_operation(state, value, aggregate, np.divide, _DIVISION.divide, int.__floordiv__)


def _apply_operation(
    state: Any,
    value: Any,
    aggregate: Aggregate,
    floats: np.ufunc,
    decimals: Callable[[decimal.Decimal, decimal.Decimal], decimal.Decimal],
    exact: Callable[[int, int], int],
) -> Any:
    kind = aggregate.column.type
    if isinstance(kind, DecimalType):
        return _fit_to_type(decimals(state, value), aggregate)
    if isinstance(kind, FloatType | DoubleType):
        width = np.float32 if isinstance(kind, FloatType) else np.float64
        with np.errstate(all="ignore"):
            return float(floats(width(state), width(value)))
    return _fit_to_type(exact(state, value), aggregate)


def _fit_to_type(value: Any, aggregate: Aggregate) -> Any:
    kind = aggregate.column.type
    if isinstance(kind, DecimalType):
        value = value.quantize(decimal.Decimal(1).scaleb(-kind.scale), context=_WIDE)
        fits = value.scaleb(kind.scale, context=_WIDE).copy_abs() < 10**kind.precision
    else:
        half = 1 << (_BITS.get(type(kind), 32) - 1)
        fits = -half <= value < half
    if not fits:
        name = aggregate.column.name
        raise InvalidRequest(
            f"The {aggregate.function} of column {name!r} does not fit its type",
            subject=name,
            hint=f"use a wider type, or another 'fields.{name}.aggregate-function'",
        )
    return value


def _keep_larger(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return value if compare_values(value, state) > 0 else state


def _keep_smaller(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return value if compare_values(value, state) < 0 else state


def _count_value(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if value is None:
        return state
    return _fit_to_type((state or 0) + 1, aggregate)


SUM = Folding(_skip_nulls(_add), retract=_subtract, add_older=_skip_nulls(_add))
PRODUCT = Folding(_skip_nulls(_multiply), retract=_divide_values, add_older=_skip_nulls(_multiply))
COUNT = Folding(_count_value, add_older=_count_value)
MAX = Folding(_skip_nulls(_keep_larger))
MIN = Folding(_skip_nulls(_keep_smaller))
BOOL_AND = Folding(_skip_nulls(lambda state, value, _: state and value))
BOOL_OR = Folding(_skip_nulls(lambda state, value, _: state or value))
