"""The rules of cross-partition tables: columns as row by row, and what must hold for any batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.bucket.cross_partition_columnar import (
    NO_PLACE,
    BucketRule,
    ExistingKey,
    PlacedRows,
    place_row_columns,
    select_first_load_rows,
    split_places,
    to_places,
)
from paimon.domain.bucket.cross_partition_reference import Place, WrittenRow, place_rows, select_first_load

RULES = st.builds(lambda target, count, number: BucketRule(target, count, number % count),
                  st.integers(1, 4), st.integers(1, 3), st.integers(0, 2))  # fmt: skip
PLACES = st.builds(Place, st.integers(0, 3), st.integers(0, 3))
BATCHES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=25)


def to_number(place: Place | None) -> int:
    return NO_PLACE if place is None else int(to_places(place.partition, np.array([place.bucket]))[0])


def place_in_columns(
    keys: list[int],
    partitions: list[int],
    stored: dict[int, Place],
    counts: dict[Place, int],
    rule: BucketRule,
    existing: ExistingKey,
) -> PlacedRows:
    nested: dict[int, dict[int, int]] = {}
    for place, count in counts.items():
        nested.setdefault(place.partition, {})[place.bucket] = count
    size = max([*keys, *stored], default=-1) + 1
    places = np.array([to_number(stored.get(key)) for key in range(size)], np.int64)
    return place_row_columns(np.array(keys, np.int64), np.array(partitions, np.int64), places, nested, rule, existing)


def to_written(placed: PlacedRows) -> list[WrittenRow]:
    partitions, buckets = split_places(placed.places)
    return [
        WrittenRow(row, retract, Place(partition, bucket))
        for row, retract, partition, bucket in zip(
            placed.rows.tolist(), placed.is_retract.tolist(), partitions.tolist(), buckets.tolist(), strict=True
        )
    ]


@given(st.lists(BATCHES, max_size=4), st.dictionaries(st.integers(0, 5), PLACES), RULES, st.sampled_from(ExistingKey))
def test_columns_equal_the_reference(
    batches: list[list[tuple[int, int]]], stored: dict[int, Place], rule: BucketRule, existing: ExistingKey
) -> None:
    counts: dict[Place, int] = {}
    for place in stored.values():
        counts[place] = counts.get(place, 0) + 1
    for batch in batches:
        keys, partitions = [key for key, _ in batch], [partition for _, partition in batch]
        placed = place_in_columns(keys, partitions, stored, counts, rule, existing)
        written, after, new_counts = place_rows(keys, partitions, stored, counts, rule, existing)
        assert to_written(placed) == written
        assert {k: to_number(p) for k, p in after.items()} == {
            k: p for k, p in enumerate(placed.key_places.tolist()) if p != NO_PLACE
        }
        changed = {
            to_number(p): n - counts.get(p, 0) for p, n in new_counts.items() if p not in counts or n != counts[p]
        }
        assert {p: n for p, n in placed.changes.items() if n or p in changed} == changed
        stored, counts = after, new_counts


@given(BATCHES, st.dictionaries(st.integers(0, 5), PLACES), RULES, st.sampled_from(ExistingKey))
def test_a_key_is_live_in_one_place(
    batch: list[tuple[int, int]], stored: dict[int, Place], rule: BucketRule, existing: ExistingKey
) -> None:
    keys = [key for key, _ in batch]
    written, after, counts = place_rows(keys, [p for _, p in batch], stored, {}, rule, existing)
    live = set(stored.items())
    for row, is_retract, place in written:
        (live.discard if is_retract else live.add)((keys[row], place))
    assert live == set(after.items())
    assert all(counts.get(place, 0) <= max(rule.target_rows, 0) for place in after.values() if place not in stored)


@given(st.lists(st.integers(0, 4)), st.sampled_from(ExistingKey))
def test_a_first_load_selects_the_rows_of_the_reference(keys: list[int], existing: ExistingKey) -> None:
    dense = [sorted(set(keys)).index(key) for key in keys]
    assert select_first_load_rows(np.array(dense, np.int64), existing).tolist() == select_first_load(dense, existing)


def test_an_existing_key_is_treated_by_its_merge_engine() -> None:
    old = {0: Place(0, 3)}

    def place(engine: str) -> list[WrittenRow]:
        return place_rows([0], [1], old, {old[0]: 1}, BucketRule(10), ExistingKey.of(engine))[0]

    moved = [WrittenRow(0, True, Place(0, 3)), WrittenRow(0, False, Place(1, 0))]
    assert place("deduplicate") == moved
    assert place("partial-update") == place("aggregation") == [WrittenRow(0, False, Place(0, 3))]
    assert place("first-row") == []


@pytest.mark.parametrize(("counts", "expected"), [
    ({}, [0, 0, 2, 2, 4]),
    ({0: 1, 2: 2}, [0, 4, 4, 6, 6]),
    ({1: 0, 4: 1}, [4, 0, 0, 2, 2]),
])  # fmt: skip
def test_new_keys_fill_the_buckets_of_their_assigner(counts: dict[int, int], expected: list[int]) -> None:
    given_counts = {Place(0, bucket): count for bucket, count in counts.items()}
    rule = BucketRule(2, assigners=2, assigner=0)
    written = place_rows(list(range(5)), [0] * 5, {}, given_counts, rule, ExistingKey.MOVE)[0]
    assert [row.place.bucket for row in written] == expected
