"""Where the rows of a cross-partition table are written, a batch at a time.

Invariant: equals `cross_partition_reference`. After a batch each key is in one place.

Source: `GlobalIndexAssigner`, `ExistingProcessor` and its classes, `BucketAssigner` of `crosspartition`.
"""

# The primary key of such a table lacks a partition column, so a row may move its key to another partition. A place is a
# partition and a bucket, as one integer: the number of the partition, shifted left, and the bucket (`to_places`). The
# key index knows the place of each key (`stored`, `NO_PLACE` for a new key). What happens depends on the merge engine:
#
#     key is stored in p1/0, a row says p2        written rows               the key is then in
#     MOVE   deduplicate                          -D to p1/0, row to p2/b    p2/b
#     STAY   partial-update, aggregation          row to p1/0                p1/0 (with the old partition values)
#     DROP   first-row                            none                       p1/0
#
# A key that enters a partition gets the first bucket of it that belongs to this assigner and has fewer keys than the
# target, otherwise a new bucket. Buckets that keys leave count as smaller from the next batch on. (Java counts at once;
# this changes the numbers of buckets, not where a key is unique.)
#
# All rows of a batch at once: rows are sorted by key, stable, so the rows of a key follow each other in batch order.
#
#     key         7    7    7       stored: p1/0;  MOVE
#     partition   p2   p2   p1
#     before      p1   p2   p2      the partition of the row before; for the first row, of the stored place
#     enters      yes  no   yes     partition differs: the key enters it, and `_fill_buckets` finds a bucket
#     places      p2/b p2/b p1/c    the place of the last row that entered one, or the stored place
#     left        p1/0 -    p2/b    where a -D row goes; `_interleave` puts it in front of its row

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from attrs import frozen

Integers: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

BucketCounts: TypeAlias = Mapping[int, Mapping[int, int]]
"""By number of the partition and bucket: how many keys the bucket has."""

_BUCKET_BITS = 31
NO_PLACE = -1


class ExistingKey(Enum):
    """What happens to a row whose key is in another partition."""

    MOVE = "move"
    STAY = "stay"
    DROP = "drop"

    @classmethod
    def of(cls, merge_engine: str) -> ExistingKey:
        """Return the rule of a merge engine."""
        return {"deduplicate": cls.MOVE, "first-row": cls.DROP}.get(merge_engine, cls.STAY)


@frozen
class BucketRule:
    """Which bucket a new key gets."""

    # a bucket with this many keys gets no new ones
    target_rows: int
    # the number of tasks that assign keys; bucket b belongs to task `b % assigners`
    assigners: int = 1
    # the number of this task
    assigner: int = 0


class PlacedRows(NamedTuple):
    """The rows to write in order, the place (`to_places`) of each key afterwards, and key count changes."""

    rows: Integers
    # the row is written as a -D row to the place that its key leaves
    is_retract: Mask
    # the place where each row is written
    places: Integers
    key_places: Integers
    # by place, the number of keys that came, less those that left; every used bucket has an entry
    changes: dict[int, int]


def to_places(partitions: Integers | int, buckets: Integers) -> Integers:
    """Return one number for each pair of a partition number and a bucket."""
    return partitions << _BUCKET_BITS | buckets


def split_places(places: Integers) -> tuple[Integers, Integers]:
    """Return the partition numbers and the buckets of places."""
    return places >> _BUCKET_BITS, places & ((1 << _BUCKET_BITS) - 1)


def place_row_columns(
    keys: Integers,
    partitions: Integers,
    stored: Integers,
    counts: BucketCounts,
    rule: BucketRule,
    existing: ExistingKey,
) -> PlacedRows:
    """Choose the place (partition and bucket) where each row of a batch is written.

    `keys` and `partitions` hold a number for each row; keys are numbered from 0 without gaps. `stored` is the place of
    each key before the batch, or `NO_PLACE`. A bucket that is missing in `counts` has never been used.
    """
    order = np.argsort(keys, kind="stable")
    keys, partitions = keys[order], partitions[order]
    firsts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.empty(0, np.int64)
    is_first = np.zeros(len(keys), np.bool_)
    is_first[firsts] = True
    before = np.where(is_first, split_places(stored[keys])[0], np.r_[NO_PLACE, partitions[:-1]])
    enters = before != partitions if existing is ExistingKey.MOVE else is_first & (stored[keys] == NO_PLACE)
    entered = _fill_buckets(order, partitions, enters, counts, rule)
    # A row has the place of the last row of its key that entered one; before that, the stored place.
    sources = np.maximum.accumulate(np.where(is_first | enters, np.arange(len(keys)), 0))
    places = np.where(enters, entered, stored[keys])[sources]
    left = np.where(is_first, stored[keys], np.r_[NO_PLACE, places[:-1]])
    leaves = enters & (left != NO_PLACE)
    written = split_places(places)[0] == partitions if existing is ExistingKey.DROP else np.ones(len(keys), np.bool_)
    key_places, lasts = stored.copy(), np.append(firsts[1:], len(keys))[: len(firsts)] - 1
    key_places[keys[lasts]] = places[lasts]
    changes = _count_changes(places[enters], left[leaves])
    return PlacedRows(*_interleave(order, written, places, leaves, left), key_places, changes)


def select_first_load_rows(keys: Integers, existing: ExistingKey) -> Integers:
    """Return the positions of rows to write in a first load of an empty table; keys are numbered from 0."""
    rows = np.arange(len(keys))
    if existing is ExistingKey.STAY:
        return rows
    chosen = np.empty(int(keys.max(initial=-1)) + 1, np.int64)
    ordered = rows if existing is ExistingKey.MOVE else rows[::-1]
    chosen[keys[ordered]] = ordered  # the last assignment of each key stays
    return np.sort(chosen)


def _fill_buckets(
    order: Integers, partitions: Integers, enters: Mask, counts: BucketCounts, rule: BucketRule
) -> Integers:
    """Return the places of the rows that enter a bucket, in the order of the batch; other rows have no place."""
    places = np.full(len(order), NO_PLACE, np.int64)
    entering = np.flatnonzero(enters)
    entering = entering[np.argsort(order[entering], kind="stable")]
    by_partition = entering[np.argsort(partitions[entering], kind="stable")]
    numbers, starts = np.unique(partitions[by_partition], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(by_partition, starts[1:]), strict=False):
        buckets = _take_free_buckets(counts.get(number, {}), len(rows), rule)
        places[rows] = to_places(number, buckets)
    return places


def _take_free_buckets(counts: Mapping[int, int], rows: int, rule: BucketRule) -> Integers:
    """Return a bucket for each of several new keys of a partition."""
    mine = {b: count for b, count in sorted(counts.items()) if b % rule.assigners == rule.assigner}
    buckets = [b for b, count in mine.items() if count < rule.target_rows]
    free = [rule.target_rows - mine[b] for b in buckets]
    missing = rows - sum(free)
    bucket = rule.assigner
    while missing > 0:
        if bucket not in mine:
            buckets.append(bucket)
            free.append(max(1, rule.target_rows))
            missing -= free[-1]
        bucket += rule.assigners
    return np.repeat(np.array(buckets, np.int64), free)[:rows]


def _count_changes(entered: Integers, left: Integers) -> dict[int, int]:
    places, inverse = np.unique(np.r_[entered, left], return_inverse=True)
    signs = np.r_[np.ones(len(entered), np.int64), -np.ones(len(left), np.int64)]
    sums = np.bincount(inverse, signs, len(places)).astype(np.int64)
    return dict(zip(places.tolist(), sums.tolist(), strict=True))


def _interleave(
    order: Integers, written: Mask, places: Integers, leaves: Mask, left: Integers
) -> tuple[Integers, Mask, Integers]:
    """Return the written rows in the order of the batch, each -D row before the row that caused it."""
    positions = np.r_[order[leaves] * 2, order[written] * 2 + 1]
    targets = np.r_[left[leaves], places[written]]
    sequence = np.argsort(positions, kind="stable")
    positions = positions[sequence]
    return positions // 2, positions % 2 == 0, targets[sequence]
