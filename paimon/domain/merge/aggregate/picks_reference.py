"""Functions that return one of the values of the column, value by value.

Invariant: only `last_value` and `first_value` can return a null that follows or precedes a value. The `first` functions
keep the state that they have started, also after their value was cleared.

Source: `FieldLastValueAgg`, `FieldLastNonNullValueAgg`, `FieldFirstValueAgg`, `FieldFirstNonNullValueAgg`,
`FieldPrimaryKeyAgg`, `FieldIgnoreRetractAgg`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paimon.domain.merge.aggregate.reduce_reference import Folding
from paimon.domain.merge.aggregate.rule import Aggregate


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
