"""listagg, collect, merge_map, merge_map_with_keytime, nested_update and nested_partial_update, value by value.

Invariant: a column holds what Java holds, also where this shows the iteration order of its hash tables.

Source: `FieldListaggAgg`, `FieldCollectAgg`, `FieldMergeMapAgg`, `FieldMergeMapWithKeyTimeAgg`, `FieldNestedUpdateAgg`,
`FieldNestedPartialUpdateAgg`; `java.util.HashMap`, `BinaryString.hashCode`, `Decimal.hashCode`, `Timestamp.hashCode`.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Sequence
from typing import Any

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.foldings import Folding
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.row import binary_row
from paimon.domain.row.row_hash import hash_bytes
from paimon.domain.types.data_types import (
    NESTED_TYPES,
    TIMESTAMP_TYPES,
    ArrayType,
    BigIntType,
    DataField,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    RowType,
)

# Java's hash tables. A table has 16 slots and doubles when more than three quarters are used. Slots ascend; within a
# slot, entries are in insertion order.
_MASK = 0xFFFFFFFF


def order_as_hash_map(hashes: Sequence[int]) -> list[int]:
    """Return the positions of entries in iteration order, given their 32-bit hashes in insertion order."""
    slots = 16
    while len(hashes) > slots * 3 // 4:
        slots *= 2
    spread = [(h & _MASK) ^ ((h & _MASK) >> 16) for h in hashes]
    return sorted(range(len(hashes)), key=lambda i: spread[i] & (slots - 1))


def to_java_hash(value: Any, kind: DataType) -> int:
    """Return the hash code of a value as 32 unsigned bits; 0 for null and for types without a stable hash code."""
    match value:
        case None:
            return 0
        case bool():
            return 1231 if value else 1237
        case int() if isinstance(kind, TIMESTAMP_TYPES):
            return 31 * (31 + _fold_long(value // 1_000_000)) + value % 1_000_000 & _MASK
        case int():
            return _fold_long(value) if isinstance(kind, BigIntType) else value & _MASK
        case float():
            return _hash_of_float(value, kind)
        case str():
            return hash_bytes(value.encode()) & _MASK
        case decimal.Decimal():
            return _hash_of_decimal(value)
    return 0


def _fold_long(value: int) -> int:
    bits = value & 0xFFFF_FFFF_FFFF_FFFF
    return (bits ^ (bits >> 32)) & _MASK


def _hash_of_float(value: float, kind: DataType) -> int:
    if isinstance(kind, FloatType):
        return int(0x7FC00000 if value != value else struct.unpack(">I", struct.pack(">f", value))[0])
    assert isinstance(kind, DoubleType)
    bits = 0x7FF8000000000000 if value != value else struct.unpack(">q", struct.pack(">d", value))[0]
    return _fold_long(bits)


def _hash_of_decimal(value: decimal.Decimal) -> int:
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    state = 0
    for shift in range((number.bit_length() + 31) // 32 * 32 - 32, -1, -32):
        state = 31 * state + ((number >> shift) & _MASK) & _MASK
    return 31 * (-state if sign else state) - int(exponent) & _MASK


# Lists. Nulls and empty texts add nothing to a listagg, but a single empty text is returned. Distinct elements of a
# collect are in the iteration order of a `HashSet`; nested elements are in the order of their first occurrence.
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
# Maps. Keys are in the order of their first occurrence. With key times, the value with the newer or an equal time wins,
# and a null value removes its key.
Entries = list[tuple[Any, Any]]


def _merge_maps(state: Any, value: Any, aggregate: Aggregate) -> Any:
    if state is None or value is None:
        return value if state is None else state
    entries: Entries = []
    for key, item in (*state, *value):
        _put_entry(entries, key, item)
    return entries


def _put_entry(entries: Entries, key: Any, item: Any) -> None:
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
            _put_entry(entries, key, item)
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
# An array of rows as a table with a key. Rows with the same nested key are one row. The array is in the iteration order
# of a `HashMap` with the binary rows of the keys.
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
