"""Aggregate one column of one key, value by value: what a folding is, and the foldings of numbers and of single values.

Invariant: the state starts empty, and each action is applied in merge order. `functions_columnar` returns the same.

Source: `FieldAggregator`, `FieldSumAgg`, `FieldProductAgg`, `DecimalUtils`, `FieldMaxAgg`, `FieldBoolAndAgg`,
`FieldLastValueAgg`, `FieldFirstNonNullValueAgg`, `FieldPrimaryKeyAgg`, `FieldIgnoreRetractAgg`, ...
"""

# A folding is the definition of an aggregate function. It starts with an empty state (null), and takes the records of
# one key in merge order, each with one of the actions of `rule`. For `sum` and the steps of one key:
#
#     action      value   state afterwards
#     ADD             5   5
#     ADD             3   8
#     RETRACT         5   3     the inverse of `add`; a function without an inverse refuses -U and -D records
#     SET             7   7     the value replaces the state, and the function is not called
#     CLEAR           -   null
#     ADD_OLDER       2   2     the record is older than the state; it matters for functions that know an order
#
# Only partial-update with sequence groups gives CLEAR and ADD_OLDER: the order of a group differs from the merge order,
# so a record can come late. `last_value` then keeps its state, `first_value` takes the late value, and `listagg` puts
# it in front of its text.
#
# The foldings also run in production: `reduce_columnar` gives them the groups that no columnar function can compute.
# Those are nested values, bitmaps and sketches, decimals that may leave their range, and retracts of some functions.

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from attrs import frozen

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.rule import ADD, ADD_OLDER, CLEAR, RETRACT, SET, Aggregate
from paimon.domain.row.binary_row import to_decimal, to_unscaled
from paimon.domain.types.data_types import BigIntType, DecimalType, DoubleType, FloatType, SmallIntType, TinyIntType

Combine = Callable[[Any, Any, Aggregate], Any]
"""Takes the state, the value of a record and the aggregate; returns the new state."""


def _put(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return value


def _identity(state: Any) -> Any:
    return state


@frozen
class Folding:
    """An aggregate function, value by value; `start`, `put` and `value` where the state is more."""

    # applies a record that is newer than the state
    add: Combine
    # applies a record that retracts its value; None: such records are refused
    retract: Combine | None = None
    # applies a record that is older than the state; None: `add` with state and value exchanged
    add_older: Combine | None = None
    # the empty state
    start: Any = None
    # makes a value the state
    put: Combine = _put
    # makes the state a value
    value: Callable[[Any], Any] = _identity

    def apply(self, state: Any, action: int, value: Any, aggregate: Aggregate) -> Any:
        """Return the state after one more record, as a new object; `action` is a constant of `rule`."""
        if action == ADD:
            return self.add(state, value, aggregate)
        if action == ADD_OLDER:
            return self._add_older_value(state, value, aggregate)
        if action in (SET, CLEAR):
            return self.put(state, value if action == SET else None, aggregate)
        if action == RETRACT and not aggregate.ignore_retract:
            return self._retract_value(state, value, aggregate)
        return state

    def _add_older_value(self, state: Any, value: Any, aggregate: Aggregate) -> Any:
        if self.add_older is None:
            return self.add(value, state, aggregate)
        return self.add_older(state, value, aggregate)

    def _retract_value(self, state: Any, value: Any, aggregate: Aggregate) -> Any:
        if self.retract is None:
            raise make_retract_error(aggregate)
        return self.retract(state, value, aggregate)

    def fold_steps(self, steps: Iterable[tuple[int, Any]], aggregate: Aggregate) -> Any:
        """Return the value of a sequence of (action, value) steps, in merge order."""
        state = self.start
        for action, value in steps:
            state = self.apply(state, action, value, aggregate)
        return self.value(state)


def make_retract_error(aggregate: Aggregate) -> InvalidRequest:
    """Return the error for a -U or -D record that the function cannot take back."""
    name = aggregate.column.name
    return InvalidRequest(
        f"Aggregate function {aggregate.function!r} of column {name!r} does not accept -U and -D records",
        subject=name,
        hint=f"set 'fields.{name}.ignore-retract' to 'true'",
    )


# Numbers and booleans. Nulls are skipped. Integers wrap. A sum of DECIMAL with up to 18 digits is kept while its
# unscaled value fits 64 bits, even beyond its digits; any other result with too many digits is null, and the next value
# starts anew. Products of DECIMAL are rounded half up to their scale. FLOAT is computed in 32 bits. Floats compare in
# the total order of `paimon.domain.columns.java_float_order`.
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


# One of the values. Only `last_value` and `first_value` can return a null that follows or precedes a value. The `first`
# functions keep the state that they have started, also after their value was cleared.
class FirstState(NamedTuple):
    """A value, and whether the function has started, so that later values are ignored."""

    has_begun: bool = False
    value: Any = None


def _set_value(state: FirstState, value: Any, aggregate: Aggregate) -> FirstState:
    return FirstState(state.has_begun, value)


def _keep_first_value(state: FirstState, value: Any, aggregate: Aggregate) -> FirstState:
    return state if state.has_begun else FirstState(True, value)


def _set_older_first_value(state: FirstState, value: Any, aggregate: Aggregate) -> FirstState:
    return FirstState(True, value)


def _keep_first_non_null(state: FirstState, value: Any, aggregate: Aggregate) -> FirstState:
    return state if state.has_begun or value is None else FirstState(True, value)


def _set_older_first_non_null(state: FirstState, value: Any, aggregate: Aggregate) -> FirstState:
    if not state.has_begun and state.value is not None:
        return FirstState(True, state.value)
    return FirstState(state.has_begun, value)


def _get_value(state: FirstState) -> Any:
    return state.value


def _keep_newer_non_null(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return state if value is None else value


LAST_VALUE = Folding(lambda state, value, _: value, retract=lambda state, value, _: None)
LAST_NON_NULL_VALUE = Folding(_keep_newer_non_null, retract=lambda state, value, _: state if value is None else None)
FIRST_VALUE = Folding(
    _keep_first_value, add_older=_set_older_first_value, start=FirstState(), put=_set_value, value=_get_value
)
FIRST_NON_NULL_VALUE = Folding(
    _keep_first_non_null, add_older=_set_older_first_non_null, start=FirstState(), put=_set_value, value=_get_value
)
PRIMARY_KEY = Folding(lambda state, value, _: value, retract=lambda state, value, _: value)
