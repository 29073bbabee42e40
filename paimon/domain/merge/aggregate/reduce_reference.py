"""Aggregate one column of one key, record by record: the reference of every columnar aggregate function.

Invariant: the state starts empty, and each action is applied in merge order.

Source: `FieldAggregator`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.actions import ADD, ADD_OLDER, CLEAR, RETRACT, SET
from paimon.domain.merge.aggregate.rule import Aggregate

Combine = Callable[[Any, Any, Aggregate], Any]
"""Takes the state, the value of a record and the aggregate; returns the new state."""


def _put(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return value


def _identity(state: Any) -> Any:
    return state


@frozen
class Folding:
    """The reference of an aggregate function: it applies one value at a time to a state.

    Functions set `start`, `put` and `value` only if their state is more than a value.
    """

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
        """Return the state after one more record, as a new object; the first state is `start`.

        `action` is a constant of `paimon.domain.merge.aggregate.actions`. A null is None.
        """
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
