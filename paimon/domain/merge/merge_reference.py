"""Merge row by row, for readability: the reference of `paimon.domain.merge.merge_columnar`.

Records are ordered by key, user sequence, sequence number, and retracts before adds. Where `retracts_first`, the row
kind precedes the sequence number. Records that remain equal keep their order. The visible records of a key then pass
through the engine in that order.

Invariant: a singleton is returned unchanged. A NaN in a user sequence equals every value, unless the field is in the
total order (`paimon.domain.columns.java_float_order`).

Source: `SortMergeReader`, `LookupMergeFunction`, `DeduplicateMergeFunction`, `FirstRowMergeFunction`,
`AggregateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cmp_to_key
from itertools import groupby
from typing import Any

from paimon.domain.columns.java_float_order import compare_by_operators, compare_values
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.aggregate_functions import get_function
from paimon.domain.merge.aggregate.rule import ADD, RETRACT, SET
from paimon.domain.merge.merge_engines import get_merge_engine
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.partial_update_reference import partial_update
from paimon.domain.merge.record import DELETE, Record
from paimon.domain.types.data_types import DataField


def merge(records: Sequence[Record], spec: MergeSpec) -> list[Record]:
    """Return one record a key, ascending by key; retracts are included, keys without a visible record are not."""
    found = (_merge_key(group, spec) for group in group_by_key(records, spec))
    return [record for record in found if record is not None]


def group_by_key(records: Sequence[Record], spec: MergeSpec) -> Iterator[list[Record]]:
    """Yield the records of each key in merge order, ascending by key."""

    def compare_keys(a: Record, b: Record) -> int:
        """Compare the keys of two records."""
        return _compare_columns(a.values, b.values, spec.key_names)

    ordered = sorted(records, key=cmp_to_key(compare_keys))
    for _, group in groupby(ordered, cmp_to_key(compare_keys)):
        yield _sort_in_merge_order(list(group), spec)


def _sort_in_merge_order(records: Sequence[Record], spec: MergeSpec) -> list[Record]:
    """Put each record behind all older records, but in front of those with a larger user sequence."""
    by_age = sorted(records, key=lambda r: (r.sequence, r.is_add))
    by_age = sorted(by_age, key=lambda r: r.is_add) if spec.retracts_first else by_age
    if 0 not in {r.run for r in records}:
        return _order_by_tournament(by_age, spec)
    ordered: list[Record] = []
    for record in by_age:
        place = len(ordered)
        while place and _compare_sequences(ordered[place - 1], record, spec) > 0:
            place -= 1
        ordered.insert(place, record)
    return ordered


def _order_by_tournament(by_age: list[Record], spec: MergeSpec) -> list[Record]:
    """Order records of sorted runs as a loser tree does; the parent of the node `run` is `run // 2`."""
    ordered: list[Record] = []
    while by_age:
        first = _find_winner(by_age, 1, spec)
        assert first is not None
        ordered.append(first)
        by_age = [record for record in by_age if record is not first]
    return ordered


def _find_winner(by_age: Sequence[Record], node: int, spec: MergeSpec) -> Record | None:
    """Return the record that comes next among the runs below a node; None where there is none."""
    below = [r for r in by_age if _lies_below(r.run, node)]
    if len(below) < 2:
        return below[0] if below else None
    left, right = (_find_winner(below, 2 * node + side, spec) for side in (0, 1))
    if left is None or right is None:
        return left or right
    order = _compare_sequences(left, right, spec)
    older = next(record for record in below if record is left or record is right)
    return older if order == 0 else left if order < 0 else right


def _lies_below(run: int, node: int) -> bool:
    while run > node:
        run //= 2
    return run == node


def _merge_key(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    return records[0] if len(records) == 1 else apply_engine(records, spec)


def apply_engine(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """Return what the engine makes of the records of one key, in merge order; None where no record is visible."""
    if spec.lookup:
        records = _select_visible_to_lookup(records)
    if spec.ignore_delete:
        records = [r for r in records if r.is_add]
    get_merge_engine(spec)  # refuses what it does not know
    return _ENGINES[spec.engine](records, spec) if records else None


def _select_visible_to_lookup(records: Sequence[Record]) -> Sequence[Record]:
    above = [r.level for r in records if r.level > 0]
    return [r for r in records if r.level <= 0 or r.level == min(above)]


def _compare_columns(a: Mapping[str, Any], b: Mapping[str, Any], names: Sequence[str]) -> int:
    for name in names:
        order = compare_values(a[name], b[name])
        if order:
            return order
    return 0


def _compare_sequences(a: Record, b: Record, spec: MergeSpec) -> int:
    for name in spec.sequence_fields:
        compare = compare_values if name in spec.ordered_floats else compare_by_operators
        order = compare(a.values[name], b.values[name])
        if order:
            return -order if spec.sequence_descending and None not in (a.values[name], b.values[name]) else order
    return 0


def _keep_last_record(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """Return the last record of a key, also a -D; the caller decides whether it is visible."""
    result = None
    for record in records:
        result = record
    return result


def _keep_first_record(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """Return the first record of a key. Raises `InvalidRequest` for a -U or -D."""
    if not all(record.is_add for record in records):
        raise InvalidRequest(
            "Merge engine 'first-row' does not accept -U and -D records", hint="set 'ignore-delete' to skip them"
        )
    return records[0]


def _aggregate_records(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """Return the record of one key, with the aggregates of all columns.

    -U and -D take their values back; a key never disappears by that. With `aggregation.remove-record-on-delete`, a -D
    replaces everything before it, and later records are merged with it.
    """
    last = records[-1]
    row = dict(last.values)
    for aggregate in spec.aggregates:
        steps = list(_list_steps(records, aggregate.column, spec))
        row[aggregate.column.name] = get_function(aggregate).folding.fold_steps(steps, aggregate)
    removed = spec.removes_on_delete and last.kind == DELETE
    return Record(row, last.sequence, DELETE if removed else 0, last.level)


def _list_steps(records: Sequence[Record], column: DataField, spec: MergeSpec) -> Iterator[tuple[int, Any]]:
    """Yield the action and the value of each record for one column."""
    for record in records:
        value = record.values[column.name]
        if record.kind == DELETE and spec.removes_on_delete:
            yield SET, value
        else:
            yield ADD if record.is_add else RETRACT, value


_ENGINES: Mapping[str, Callable[[Sequence[Record], MergeSpec], Record | None]] = {
    "deduplicate": _keep_last_record,
    "first-row": _keep_first_record,
    "aggregation": _aggregate_records,
    "partial-update": partial_update,
}
"""The references of the merge engines: each takes the records of a key in merge order; None if no record remains."""
