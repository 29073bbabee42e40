"""sum, product, count, max, min, bool_and and bool_or, value by value.

Law: nulls are skipped; integers and decimals that leave their type are refused, FLOAT counts in 32 bits, DECIMAL keeps
its scale (half up); floats order as Java's `Double.compare`. Source: `FieldSumAgg`, `FieldProductAgg`, `FieldMaxAgg`,
`FieldMinAgg`, `FieldBoolAndAgg`, `FieldBoolOrAgg`.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.reference.fold import Combine, Folding
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.reference.values import compare_values
from paimon.domain.types.data_types import BigIntType, DecimalType, DoubleType, FloatType, SmallIntType, TinyIntType

_WIDE = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP)
_DIVISION = decimal.Context(prec=38, rounding=decimal.ROUND_HALF_UP)
_BITS = {TinyIntType: 8, SmallIntType: 16, BigIntType: 64}


def _skipping_nulls(combine: Combine) -> Combine:
    def add(state: Any, value: Any, aggregate: Aggregate) -> Any:
        if state is None or value is None:
            return value if state is None else state
        return combine(state, value, aggregate)

    return add


def _plus(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return _calculated(state, value, aggregate, np.add, _WIDE.add, int.__add__)


def _minus(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if value is None:
        return state
    state = _zero(aggregate) if state is None else state
    return _calculated(state, value, aggregate, np.subtract, _WIDE.subtract, int.__sub__)


def _zero(aggregate: Aggregate) -> Any:
    """What a value is subtracted from where nothing was added before; -0.0 leaves the sign of zeros to the value."""
    if isinstance(aggregate.column.type, FloatType | DoubleType):
        return -0.0
    return decimal.Decimal(0) if isinstance(aggregate.column.type, DecimalType) else 0


def _times(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return _calculated(state, value, aggregate, np.multiply, _WIDE.multiply, int.__mul__)


def _divided(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return state
    if isinstance(value, int | decimal.Decimal) and not value:
        name = aggregate.column.name
        raise InvalidRequest(
            f"the product of column {name!r} cannot take back a 0", subject=name,
            hint=f"set 'fields.{name}.ignore-retract' to 'true'",
        )  # fmt: skip
    if isinstance(value, int):
        quotient = abs(state) // abs(value)
        return _fitted(quotient if (state < 0) == (value < 0) else -quotient, aggregate)
    return _calculated(state, value, aggregate, np.divide, _DIVISION.divide, int.__floordiv__)


def _calculated(
    state: Any,
    value: Any,
    aggregate: Aggregate,
    floats: np.ufunc,
    decimals: Callable[[decimal.Decimal, decimal.Decimal], decimal.Decimal],
    exact: Callable[[int, int], int],
) -> Any:
    kind = aggregate.column.type
    if isinstance(kind, DecimalType):
        return _fitted(decimals(state, value), aggregate)
    if isinstance(kind, FloatType | DoubleType):
        width = np.float32 if isinstance(kind, FloatType) else np.float64
        with np.errstate(all="ignore"):
            return float(floats(width(state), width(value)))
    return _fitted(exact(state, value), aggregate)


def _fitted(value: Any, aggregate: Aggregate) -> Any:
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
            f"the {aggregate.function} of column {name!r} does not fit its type", subject=name,
            hint=f"use a wider type, or another 'fields.{name}.aggregate-function'",
        )  # fmt: skip
    return value


def _larger(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return value if compare_values(value, state) > 0 else state


def _smaller(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return value if compare_values(value, state) < 0 else state


def _counted(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if value is None:
        return state
    return _fitted((state or 0) + 1, aggregate)


SUM = Folding(_skipping_nulls(_plus), retract=_minus, add_older=_skipping_nulls(_plus))
PRODUCT = Folding(_skipping_nulls(_times), retract=_divided, add_older=_skipping_nulls(_times))
COUNT = Folding(_counted, add_older=_counted)
MAX = Folding(_skipping_nulls(_larger))
MIN = Folding(_skipping_nulls(_smaller))
BOOL_AND = Folding(_skipping_nulls(lambda state, value, _: state and value))
BOOL_OR = Folding(_skipping_nulls(lambda state, value, _: state or value))
