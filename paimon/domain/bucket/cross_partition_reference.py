"""Where the rows of a cross-partition table are written, row by row: the reference of `cross_partition_columnar`.

Source: `GlobalIndexAssigner`, `ExistingProcessor` and its classes, `BucketAssigner` of `crosspartition`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paimon.domain.bucket.cross_partition_columnar import BucketRule, ExistingKey


class Place(NamedTuple):
    """The number of a partition, and a bucket of it."""

    partition: int
    bucket: int


class WrittenRow(NamedTuple):
    """A row of the batch by its position, whether it is written as a -D row, and the place where it is written."""

    row: int
    is_retract: bool
    place: Place


def place_rows(
    keys: Sequence[int],
    partitions: Sequence[int],
    stored: Mapping[int, Place],
    counts: Mapping[Place, int],
    rule: BucketRule,
    existing: ExistingKey,
) -> tuple[list[WrittenRow], dict[int, Place], dict[Place, int]]:
    """Return the rows of a batch to write, in order, the place of each key after the batch, and the new key counts.

    `keys` and `partitions` hold a number for each row. `stored` is the place of each key number before the batch. A
    bucket that is missing in `counts` has never been used.
    """
    places, added, left = dict(stored), dict(counts), list[Place]()
    written: list[WrittenRow] = []
    for row, (key, partition) in enumerate(zip(keys, partitions, strict=True)):
        place = places.get(key)
        if place is None or (place.partition != partition and existing is ExistingKey.MOVE):
            if place is not None:
                written.append(WrittenRow(row, True, place))
                left.append(place)
            place = places[key] = Place(partition, _find_bucket(partition, added, rule))
            added[place] = added.get(place, 0) + 1
        elif place.partition != partition and existing is ExistingKey.DROP:
            continue
        written.append(WrittenRow(row, False, place))
    for place in left:
        added[place] = added.get(place, 0) - 1
    return written, places, added


def select_first_load(keys: Sequence[int], existing: ExistingKey) -> list[int]:
    """Return the positions of the rows to write when a bounded input is loaded into an empty table.

    No reader has seen the table yet, so a key that would move needs no -D row: only its last row is written. Of a key
    whose later rows would be dropped, the first row is written.
    """
    if existing is ExistingKey.STAY:
        return list(range(len(keys)))
    chosen: dict[int, int] = {}
    for row, key in enumerate(keys):
        if existing is ExistingKey.MOVE or key not in chosen:
            chosen[key] = row
    return sorted(chosen.values())


def _find_bucket(partition: int, counts: Mapping[Place, int], rule: BucketRule) -> int:
    used = sorted(place.bucket for place in counts if place.partition == partition)
    mine = [bucket for bucket in used if bucket % rule.assigners == rule.assigner]
    for bucket in mine:
        if counts[Place(partition, bucket)] < rule.target_rows:
            return bucket
    bucket = rule.assigner
    while bucket in mine:
        bucket += rule.assigners
    return bucket
