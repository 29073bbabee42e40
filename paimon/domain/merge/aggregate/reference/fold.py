"""Aggregating one column of one key, record by record: what every columnar aggregate must equal.

Law: the state begins empty; each deed is done in the order of the merge. Source: `FieldAggregator`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.deeds import ADD, ADD_OLDER, CLEAR, RETRACT, SET
from paimon.domain.merge.aggregate.rule import Aggregate

Combine = Callable[[Any, Any, Aggregate], Any]
"""(state, value of the record, aggregate) -> state."""


def _put(state: Any, value: Any, aggregate: Aggregate) -> Any:
    return value


def _itself(state: Any) -> Any:
    return state


@frozen
class Folding:
    """An aggregate function, row by row.

    Parameters
    ----------
    add : callable
        A record in its order.
    retract : callable, optional
        A record that takes its value back; where there is none, such records are refused.
    add_older : callable, optional
        A record that comes late; by default `add` with its two sides changed.
    start, put, value : optional
        The empty state, how a value becomes the state, and how the state becomes a value: for functions whose state
        is more than their value.
    """

    add: Combine
    retract: Combine | None = None
    add_older: Combine | None = None
    start: Any = None
    put: Combine = _put
    value: Callable[[Any], Any] = _itself

    def after(self, state: Any, deed: int, value: Any, aggregate: Aggregate) -> Any:
        """The state after one more record."""
        match deed:
            case _ if deed == ADD:
                return self.add(state, value, aggregate)
            case _ if deed == ADD_OLDER and self.add_older is not None:
                return self.add_older(state, value, aggregate)
            case _ if deed == ADD_OLDER:
                return self.add(value, state, aggregate)
            case _ if deed == SET:
                return self.put(state, value, aggregate)
            case _ if deed == CLEAR:
                return self.put(state, None, aggregate)
            case _ if deed == RETRACT and not aggregate.ignore_retract:
                return self._retracted(state, value, aggregate)
        return state

    def _retracted(self, state: Any, value: Any, aggregate: Aggregate) -> Any:
        if self.retract is None:
            raise no_retract(aggregate)
        return self.retract(state, value, aggregate)

    def fold(self, steps: Iterable[tuple[int, Any]], aggregate: Aggregate) -> Any:
        """The value that these (deed, value) steps make."""
        state = self.start
        for deed, value in steps:
            state = self.after(state, deed, value, aggregate)
        return self.value(state)


def no_retract(aggregate: Aggregate) -> InvalidRequest:
    """The refusal of a -U or -D record."""
    name = aggregate.column.name
    return InvalidRequest(
        f"aggregate function {aggregate.function!r} of column {name!r} takes no -U and -D records",
        subject=name,
        hint=f"set 'fields.{name}.ignore-retract' to 'true'",
    )
