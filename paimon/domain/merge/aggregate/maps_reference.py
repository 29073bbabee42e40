"""merge_map and merge_map_with_keytime, value by value.

With key times, the value with the newer or an equal time wins, and a null value removes its key.

Invariant: keys are in the order of their first occurrence.

Source: `FieldMergeMapAgg`, `FieldMergeMapWithKeyTimeAgg`.
"""

from __future__ import annotations

from typing import Any

from paimon.domain.merge.aggregate.lists_reference import is_equal
from paimon.domain.merge.aggregate.reduce_reference import Folding
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.types.data_types import MapType, RowType

Entries = list[tuple[Any, Any]]


def _merge_maps(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return value if state is None else state
    entries: Entries = []
    for key, item in (*state, *value):
        _put(entries, key, item)
    return entries


def _put(entries: Entries, key: Any, item: Any) -> None:
    at = _find_position(entries, key)
    if at is None:
        entries.append((key, item))
    else:
        entries[at] = (key, item)


def _find_position(entries: Entries, key: Any) -> int | None:
    return next((i for i, (other, _) in enumerate(entries) if is_equal(key, other)), None)


def _remove_keys(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return state
    return [(key, item) for key, item in state if _find_position(value, key) is None]


def _merge_by_time(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return value if state is None else state
    time = _find_time_position(aggregate)
    entries: Entries = list(state)
    for key, item in value:
        at = _find_position(entries, key)
        if item is None:
            entries = [entry for entry in entries if not is_equal(entry[0], key)]
        elif item[time] is not None and (at is None or _is_older(entries[at][1], item, time)):
            _put(entries, key, item)
    return entries


def _is_older(held: Any, item: Any, time: int) -> bool:
    return held is None or held[time] is None or bool(str(item[time]) >= str(held[time]))


def _find_time_position(aggregate: Aggregate) -> int:
    kind = aggregate.column.type
    assert isinstance(kind, MapType) and isinstance(kind.value, RowType)
    names = [f.name for f in kind.value.fields]
    return names.index(aggregate.time_field) if aggregate.time_field else len(names) - 1


MERGE_MAP = Folding(_merge_maps, retract=_remove_keys)
MERGE_MAP_WITH_KEYTIME = Folding(_merge_by_time)
