"""Merging row by row, written to be read: what the columnar merge must equal.

Law: sort by (key, user sequence, sequence number, retract before add, arrival), where a NaN in the user sequence equals
everything unless it is ordered as keys are, and retracts come before adds of any sequence number where
`retracts_first`; a key that comes as one record is answered as it is; else the records that take part go through the
engine in that order. Source: `SortMergeReader`,
`LookupMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cmp_to_key
from itertools import groupby
from typing import Any

from paimon.domain.merge.reference.record import Record
from paimon.domain.merge.reference.values import compare_by_operators, compare_values
from paimon.domain.merge.registry import engine_of
from paimon.domain.merge.spec import MergeSpec


def merge(records: Sequence[Record], spec: MergeSpec) -> list[Record]:
    """One record a key, ascending by key; retracts included, keys of which nothing is left are not."""
    found = (_merge_key(group, spec) for group in by_key(records, spec))
    return [record for record in found if record is not None]


def by_key(records: Sequence[Record], spec: MergeSpec) -> Iterator[list[Record]]:
    """The records of each key in merge order, ascending by key."""
    def compare(a: Record, b: Record) -> int:
        return _compare_columns(a.values, b.values, spec.key_names)

    ordered = sorted(records, key=cmp_to_key(compare))
    for _, group in groupby(ordered, cmp_to_key(compare)):
        yield _in_merge_order(list(group), spec)


def _in_merge_order(records: Sequence[Record], spec: MergeSpec) -> list[Record]:
    """Each record goes behind all that came before it, but in front of those whose user sequence is larger."""
    by_age = sorted(records, key=lambda r: (r.sequence, r.is_add))
    by_age = sorted(by_age, key=lambda r: r.is_add) if spec.retracts_first else by_age
    if 0 not in {r.run for r in records}:
        return _played(by_age, spec)
    ordered: list[Record] = []
    for record in by_age:
        place = len(ordered)
        while place and _compare_sequences(ordered[place - 1], record, spec) > 0:
            place -= 1
        ordered.insert(place, record)
    return ordered


def _played(by_age: list[Record], spec: MergeSpec) -> list[Record]:
    """Records of sorted runs, whose first ones play a tournament for who goes next: `run` halved is whom one meets."""
    ordered: list[Record] = []
    while by_age:
        first = _winner(by_age, 1, spec)
        assert first is not None
        ordered.append(first)
        by_age = [record for record in by_age if record is not first]
    return ordered


def _winner(by_age: Sequence[Record], node: int, spec: MergeSpec) -> Record | None:
    below = [r for r in by_age if _lies_below(r.run, node)]
    if len(below) < 2:
        return below[0] if below else None
    left, right = (_winner(below, 2 * node + side, spec) for side in (0, 1))
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
    return records[0] if len(records) == 1 else through_engine(records, spec)


def through_engine(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """What the engine makes of the records of one key, in merge order; None where it is given none."""
    if spec.lookup:
        records = _visible_to_lookup(records)
    if spec.ignore_delete:
        records = [r for r in records if r.is_add]
    return engine_of(spec).reference(records, spec) if records else None


def _visible_to_lookup(records: Sequence[Record]) -> Sequence[Record]:
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

