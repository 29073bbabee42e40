"""nested_update and nested_partial_update, value by value: an array of rows as a table of its own.

Law: rows of one nested key are one row; the array stands as a Java `HashMap` over the keys' binary rows iterates.
Source: `FieldNestedUpdateAgg`, `FieldNestedPartialUpdateAgg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.reference.fold import Folding
from paimon.domain.merge.aggregate.reference.java_hash import iteration_order
from paimon.domain.merge.aggregate.reference.lists import equal
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.reference.values import compare_values
from paimon.domain.row import binary_row
from paimon.domain.row.murmur import hash_bytes
from paimon.domain.types.data_types import ArrayType, DataField, RowType

Row = tuple[Any, ...]


def _updated(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return value if state is None else state
    if not aggregate.nested_key:
        return [*state, *value][: max(len(state), _limit(aggregate, len(state) + len(value)))]
    rows: dict[Row, Row] = {}
    for row in (*_usable(state, aggregate), *_usable(value, aggregate)):
        key = _parts(row, aggregate, aggregate.nested_key)
        if key not in rows and len(rows) >= _limit(aggregate, len(rows) + 1):
            continue
        if key not in rows or not _is_newer(rows[key], row, aggregate):
            rows[key] = row
    return _as_hash_map(rows, aggregate)


def _limit(aggregate: Aggregate, default: int) -> int:
    return default if aggregate.count_limit is None else aggregate.count_limit


def _is_newer(held: Row, row: Row, aggregate: Aggregate) -> bool:
    """Whether the row that is held orders after the new one."""
    pairs = zip(*(_parts(r, aggregate, aggregate.nested_sequence) for r in (held, row)), strict=True)
    return next((order > 0 for order in (compare_values(a, b) for a, b in pairs) if order), False)


def _partially_updated(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return value if state is None else state
    rows: dict[Row, Row] = {}
    for row in (*_usable(state, aggregate), *_usable(value, aggregate)):
        key = _parts(row, aggregate, aggregate.nested_key)
        held = rows.get(key, (None,) * len(row))
        rows[key] = tuple(old if new is None else new for old, new in zip(held, row, strict=True))
    return _as_hash_map(rows, aggregate)


def _removed(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return state
    if not aggregate.nested_key:
        return [row for row in state if not any(equal(row, gone) for gone in value)]
    gone = {_parts(row, aggregate, aggregate.nested_key) for row in value if row is not None}
    rows = {_parts(row, aggregate, aggregate.nested_key): row for row in state if row is not None}
    return _as_hash_map({key: row for key, row in rows.items() if key not in gone}, aggregate)


def _usable(rows: Sequence[Row | None], aggregate: Aggregate) -> list[Row]:
    """The rows that take part: none that is null, and those with a null in their key as `null_keys` says."""
    found: list[Row] = []
    for row in rows:
        if row is None:
            continue
        if aggregate.null_keys != "merge" and None in _parts(row, aggregate, aggregate.nested_key):
            if aggregate.null_keys == "error":
                name = aggregate.column.name
                raise InvalidRequest(f"column {name!r} holds a row whose nested key is null", subject=name)
            continue
        found.append(row)
    return found


def _fields(aggregate: Aggregate, names: Sequence[str]) -> list[tuple[int, DataField]]:
    kind = aggregate.column.type
    assert isinstance(kind, ArrayType) and isinstance(kind.element, RowType)
    places = {f.name: (i, f) for i, f in enumerate(kind.element.fields)}
    return [places[name] for name in names]


def _parts(row: Row, aggregate: Aggregate, names: Sequence[str]) -> Row:
    return tuple(row[i] for i, _ in _fields(aggregate, names))


def _as_hash_map(rows: dict[Row, Row], aggregate: Aggregate) -> list[Row]:
    types = [f.type for _, f in _fields(aggregate, aggregate.nested_key)]
    hashes = [hash_bytes(binary_row.encode(key, types)) for key in rows]
    values = list(rows.values())
    return [values[i] for i in iteration_order(hashes)]


NESTED_UPDATE = Folding(_updated, retract=_removed)
NESTED_PARTIAL_UPDATE = Folding(_partially_updated)
