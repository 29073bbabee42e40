"""collect, value by value.

Law: distinct elements stand as a Java `HashSet` iterates, nested ones by first appearance. Source: `FieldCollectAgg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.merge.aggregate.reference.fold import Folding
from paimon.domain.merge.aggregate.reference.java_hash import hash_of, iteration_order
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.reference.values import compare_values
from paimon.domain.types.data_types import NESTED_TYPES, ArrayType


def _collected(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None and value is None:
        return None
    elements = [*(state or ()), *(value or ())]
    return _distinct(elements, aggregate) if aggregate.distinct else elements


def _distinct(elements: Sequence[Any], aggregate: Aggregate) -> list[Any]:
    unique: list[Any] = []
    for element in elements:
        if not any(equal(element, other) for other in unique):
            unique.append(element)
    kind = aggregate.column.type
    assert isinstance(kind, ArrayType)
    if isinstance(kind.element, NESTED_TYPES):
        return unique
    return [unique[i] for i in iteration_order([hash_of(e, kind.element) for e in unique])]


def _uncollected(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if not state or not value:
        return state
    left = list(state)
    for element in value:
        at = next((i for i, other in enumerate(left) if equal(element, other)), None)
        if at is not None:
            left.pop(at)
    return left


def equal(a: Any, b: Any) -> bool:
    """Whether two values are equal as Java's boxed values are: NaN equals itself, 0.0 is not -0.0."""
    if isinstance(a, float) and isinstance(b, float):
        return compare_values(a, b) == 0
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


COLLECT = Folding(_collected, retract=_uncollected, add_older=_collected)
