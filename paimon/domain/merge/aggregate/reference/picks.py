"""Functions that answer one of the values they saw, value by value.

Law: only `last_value` and `first_value` let a null win; the `first` functions remember that they have begun, also after
their value was cleared. Source: `FieldLastValueAgg`, `FieldLastNonNullValueAgg`, `FieldFirstValueAgg`,
`FieldFirstNonNullValueAgg`, `FieldPrimaryKeyAgg`, `FieldIgnoreRetractAgg`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paimon.domain.merge.aggregate.reference.fold import Folding
from paimon.domain.merge.aggregate.rule import Aggregate


class First(NamedTuple):
    """A value, and whether the function has begun."""

    begun: bool = False
    value: Any = None


def _put_first(state: First, value: Any, aggregate: Aggregate) -> First:
    return First(state.begun, value)


def _first_value(state: First, value: Any, aggregate: Aggregate) -> First:
    return state if state.begun else First(True, value)


def _older_first_value(state: First, value: Any, aggregate: Aggregate) -> First:
    return First(True, value)


def _first_non_null(state: First, value: Any, aggregate: Aggregate) -> First:
    return state if state.begun or value is None else First(True, value)


def _older_first_non_null(state: First, value: Any, aggregate: Aggregate) -> First:
    if not state.begun and state.value is not None:
        return First(True, state.value)
    return First(state.begun, value)


def _value_of(state: First) -> Any:
    return state.value


def _newer_non_null(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return state if value is None else value


LAST_VALUE = Folding(lambda state, value, _: value, retract=lambda state, value, _: None)
LAST_NON_NULL_VALUE = Folding(
    _newer_non_null, retract=lambda state, value, _: state if value is None else None
)
FIRST_VALUE = Folding(_first_value, add_older=_older_first_value, start=First(), put=_put_first, value=_value_of)
FIRST_NON_NULL_VALUE = Folding(
    _first_non_null, add_older=_older_first_non_null, start=First(), put=_put_first, value=_value_of
)
PRIMARY_KEY = Folding(lambda state, value, _: value, retract=lambda state, value, _: value)
