"""nested_update and nested_partial_update, value by value: an array of rows as a table with a key.

Invariant: rows with the same nested key are one row. The array is in the iteration order of a Java `HashMap` with the
binary rows of the keys.

Source: `FieldNestedUpdateAgg`, `FieldNestedPartialUpdateAgg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.java_hash_order import order_as_hash_map
from paimon.domain.merge.aggregate.lists_reference import is_equal
from paimon.domain.merge.aggregate.reduce_reference import Folding
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.row import binary_row
from paimon.domain.row.row_hash_reference import hash_bytes
from paimon.domain.types.data_types import ArrayType, DataField, RowType

Row = tuple[Any, ...]


def _update_rows(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return value if state is None else state
    if not aggregate.nested_key:
        return [*state, *value][: max(len(state), _get_limit(aggregate, len(state) + len(value)))]
    rows: dict[Row, Row] = {}
    for row in (*_select_usable(state, aggregate), *_select_usable(value, aggregate)):
        key = _read_fields(row, aggregate, aggregate.nested_key)
        if key not in rows and len(rows) >= _get_limit(aggregate, len(rows) + 1):
            continue
        if key not in rows or not _is_held_newer(rows[key], row, aggregate):
            rows[key] = row
    return _as_hash_map(rows, aggregate)


def _get_limit(aggregate: Aggregate, default: int) -> int:
    return default if aggregate.count_limit is None else aggregate.count_limit


def _is_held_newer(held: Row, row: Row, aggregate: Aggregate) -> bool:
    """Return whether the row that the state holds is newer than a further row."""
    pairs = zip(*(_read_fields(r, aggregate, aggregate.nested_sequence) for r in (held, row)), strict=True)
    return next((order > 0 for order in (compare_values(a, b) for a, b in pairs) if order), False)


def _update_partially(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return value if state is None else state
    rows: dict[Row, Row] = {}
    for row in (*_select_usable(state, aggregate), *_select_usable(value, aggregate)):
        key = _read_fields(row, aggregate, aggregate.nested_key)
        held = rows.get(key, (None,) * len(row))
        rows[key] = tuple(old if new is None else new for old, new in zip(held, row, strict=True))
    return _as_hash_map(rows, aggregate)


def _remove_rows(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return state
    if not aggregate.nested_key:
        return [row for row in state if not any(is_equal(row, gone) for gone in value)]
    gone = {_read_fields(row, aggregate, aggregate.nested_key) for row in value if row is not None}
    rows = {_read_fields(row, aggregate, aggregate.nested_key): row for row in state if row is not None}
    return _as_hash_map({key: row for key, row in rows.items() if key not in gone}, aggregate)


def _select_usable(rows: Sequence[Row | None], aggregate: Aggregate) -> list[Row]:
    """Return the rows that are not null; `null_keys` decides about rows with a null in their nested key."""
    found: list[Row] = []
    for row in rows:
        if row is None:
            continue
        if aggregate.null_keys != "merge" and None in _read_fields(row, aggregate, aggregate.nested_key):
            if aggregate.null_keys == "error":
                name = aggregate.column.name
                raise InvalidRequest(
                    f"Column {name!r} holds a row whose nested key is null",
                    subject=name,
                    hint=f"set 'fields.{name}.nested-key-null-strategy' to 'ignore' or 'merge'",
                )
            continue
        found.append(row)
    return found


def _find_fields(aggregate: Aggregate, names: Sequence[str]) -> list[tuple[int, DataField]]:
    kind = aggregate.column.type
    assert isinstance(kind, ArrayType) and isinstance(kind.element, RowType)
    places = {f.name: (i, f) for i, f in enumerate(kind.element.fields)}
    return [places[name] for name in names]


def _read_fields(row: Row, aggregate: Aggregate, names: Sequence[str]) -> Row:
    return tuple(row[i] for i, _ in _find_fields(aggregate, names))


def _as_hash_map(rows: dict[Row, Row], aggregate: Aggregate) -> list[Row]:
    types = [f.type for _, f in _find_fields(aggregate, aggregate.nested_key)]
    hashes = [hash_bytes(binary_row.encode(key, types)) for key in rows]
    values = list(rows.values())
    return [values[i] for i in order_as_hash_map(hashes)]


NESTED_UPDATE = Folding(_update_rows, retract=_remove_rows)
NESTED_PARTIAL_UPDATE = Folding(_update_partially)
