"""listagg and collect, value by value.

Invariant: nulls and empty texts add nothing to a listagg, but a single empty text is returned. Distinct elements of a
collect are in the iteration order of a Java `HashSet`; nested elements are in the order of their first occurrence.

Source: `FieldListaggAgg`, `FieldCollectAgg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.merge.aggregate.java_hash_order import order_as_hash_map, to_java_hash
from paimon.domain.merge.aggregate.reduce_reference import Folding
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.types.data_types import NESTED_TYPES, ArrayType


def _append_text(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return value if state is None else state
    if not state or not value:
        return state or value
    if not aggregate.distinct:
        return state + aggregate.delimiter + value
    seen = state.split(aggregate.delimiter)
    for token in value.split(aggregate.delimiter):
        if token and token not in seen:
            seen.append(token)
            state += aggregate.delimiter + token
    return state


def _add_elements(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None and value is None:
        return None
    elements = [*(state or ()), *(value or ())]
    return _drop_duplicates(elements, aggregate) if aggregate.distinct else elements


def _drop_duplicates(elements: Sequence[Any], aggregate: Aggregate) -> list[Any]:
    unique: list[Any] = []
    for element in elements:
        if not any(is_equal(element, other) for other in unique):
            unique.append(element)
    kind = aggregate.column.type
    assert isinstance(kind, ArrayType)
    if isinstance(kind.element, NESTED_TYPES):
        return unique
    return [unique[i] for i in order_as_hash_map([to_java_hash(e, kind.element) for e in unique])]


def _remove_elements(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if not state or not value:
        return state
    left = list(state)
    for element in value:
        at = next((i for i, other in enumerate(left) if is_equal(element, other)), None)
        if at is not None:
            left.pop(at)
    return left


def is_equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal as Java's boxed values are: NaN equals NaN, 0.0 does not equal -0.0."""
    if isinstance(a, float) and isinstance(b, float):
        return compare_values(a, b) == 0
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(is_equal, a, b))
    return bool(a == b)


LISTAGG = Folding(_append_text)
COLLECT = Folding(_add_elements, retract=_remove_elements, add_older=_add_elements)
