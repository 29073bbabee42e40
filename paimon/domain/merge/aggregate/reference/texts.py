"""listagg, value by value.

Law: nulls and empty texts add nothing, but an empty text alone stays. Source: `FieldListaggAgg`.
"""

from __future__ import annotations

from typing import Any

from paimon.domain.merge.aggregate.reference.fold import Folding
from paimon.domain.merge.aggregate.rule import Aggregate


def _listed(state: Any, value: Any, aggregate: Aggregate) -> Any:
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


LISTAGG = Folding(_listed)
