"""Assign keys to dynamic buckets by their hashes, many keys at once.

Invariant: equal hashes get the same bucket, for ever. `assign(hashes)` gives what `hash_assigner_reference` gives hash
by hash. Source: `HashBucketAssigner`, `PartitionIndex`, `SimpleHashBucketAssigner`, `BucketAssigner`.
"""

# A key is identified by the 32-bit hash of its binary row, and never changes its bucket: the writer finds it by the
# hash alone, and the index files of a bucket hold the hashes that were ever assigned to it. So keys with equal hashes
# share a bucket, which is harmless, and a bucket never gives up a hash, even when its rows are deleted.
#
# A batch of a partition, with `target_rows` = 3, one assigner, and hash 9 already in bucket 0 (which has 2 hashes):
#
#     row        0   1   2   3   4
#     hash       5   9   7   5   4
#     distinct   4 5 7 9  (ascending),  first rows  4 0 2 1
#     known      -  -  -  0
#     new, by first row: 5 7 4  ->  filled buckets 0 1 1      one place is left in bucket 0; then bucket 1 is new
#     result     0   0   1   0   1
#
# 1. The batch is sorted once, as 64-bit numbers of hash and row (`_sort_distinct`), and known hashes are looked up.
# 2. `_fill` decides how many hashes each bucket takes: first buckets with room, ascending, then unused numbers up to
#    the limit, and at the limit (`max_buckets`) all buckets in turn, starting at a number that the caller draws.
# 3. New hashes get these buckets in the order of their first rows, as if they had come one by one.
#
# Parallel writers share a partition by owning buckets: bucket b belongs to assigner `b % assigners`, and a hash is
# decided by the assigner that `find_owners` computes from it. All tasks of a job compute the same owner, so no two of
# them assign one hash, and each bucket is written by one task.

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from attrs import frozen

from paimon.domain.bucket.hash_index import MAX_DYNAMIC_BUCKETS
from paimon.domain.bucket.key_hashes import UNASSIGNED, BucketNumbers, Hashes, KeyHashes
from paimon.domain.errors import InvalidRequest

Positions: TypeAlias = npt.NDArray[np.int64]


@frozen
class AssignmentRules:
    """The options that decide about new keys; of `channels` assigners, `assigners` share a partition."""

    # a bucket with this many hashes gets no new ones
    target_rows: int = 2_000_000
    # for each partition; -1 for no limit but that of the format
    max_buckets: int = -1
    channels: int = 1
    # bucket b belongs to assigner `b % assigners` of its partition
    assigners: int = 1

    @property
    def bucket_limit(self) -> int:
        """Bucket numbers are below this."""
        return MAX_DYNAMIC_BUCKETS if self.max_buckets < 0 else self.max_buckets

    def find_first_channel(self, partition_hash: int) -> int:
        """Return the channel of the first assigner of a partition."""
        return abs(partition_hash) % self.channels

    def find_owners(self, hashes: Hashes, first_channel: int) -> Positions:
        """Return the number of the assigner that decides about each hash, from 0 to `assigners` - 1."""
        channels = (first_channel + np.abs(hashes.astype(np.int64)) % self.assigners) % self.channels
        owners: Positions = channels % self.assigners
        return owners

    def find_tasks(self, hashes: Hashes, buckets: BucketNumbers, partition_hash: int) -> Positions:
        """Return the task that writes each row; a bucket of -1 (unknown key) is the task's to choose."""
        first = self.find_first_channel(partition_hash)
        owners = np.where(buckets == UNASSIGNED, self.find_owners(hashes, first), buckets % self.assigners)
        tasks: Positions = (first + owners) % self.channels
        return tasks


class DynamicBuckets:
    """The dynamic buckets of a partition: a state machine. `partition_hash` selects its assigners."""

    def __init__(self, rules: AssignmentRules, partition_hash: int = 0) -> None:
        self._rules = rules
        self._first_channel = rules.find_first_channel(partition_hash)
        self._known = KeyHashes()
        self._counts: dict[int, int] = {}

    @property
    def held_bytes(self) -> int:
        """The size of the arrays."""
        return self._known.held_bytes

    def load(self, hashes: Hashes, buckets: BucketNumbers) -> None:
        """Add hashes that have a bucket, for instance those of index files; known hashes keep their bucket."""
        found = _sort_distinct(hashes)
        is_new = self._known.find(found.hashes) == UNASSIGNED
        self._known.insert(found.hashes[is_new], buckets[found.find_first_rows()[is_new]])
        for bucket, count in zip(*np.unique(buckets, return_counts=True), strict=True):
            self._counts[int(bucket)] = self._counts.get(int(bucket), 0) + int(count)

    def assign(self, hashes: Hashes, overflow_start: int = 0) -> tuple[BucketNumbers, Hashes, BucketNumbers]:
        """Return the bucket of each hash, the hashes that were unknown, ascending, and the buckets assigned to these.

        If all `max_buckets` buckets are full, new keys go to existing ones in turn, from `overflow_start` (random) on.
        Without `max_buckets`, full buckets raise `InvalidRequest`.
        """
        distinct = _sort_distinct(hashes)
        found = self._known.find(distinct.hashes)
        new = np.flatnonzero(found == UNASSIGNED)
        new_hashes = distinct.hashes if len(new) == len(found) else distinct.hashes[new]
        if len(new):
            found[new] = self._place(new_hashes, distinct.find_first_rows()[new], overflow_start)
            self._known.insert(new_hashes, found[new])
        return distinct.spread(found), new_hashes, found[new]

    def find(self, hashes: Hashes) -> BucketNumbers:
        """Return the bucket of each hash, -1 for unknown ones; nothing is assigned."""
        distinct = _sort_distinct(hashes)
        return distinct.spread(self._known.find(distinct.hashes))

    def select(self, bucket: int) -> Hashes:
        """Return the hashes of a bucket."""
        return self._known.select(bucket)

    def _place(self, hashes: Hashes, first_rows: npt.NDArray[np.uint32], overflow_start: int) -> BucketNumbers:
        """Return buckets for distinct unknown hashes; `first_rows` holds the position of the first row of each."""
        rules = self._rules
        if rules.assigners == 1:
            return _order_by_first_row(self._fill(0, len(hashes), overflow_start), first_rows)
        placed = np.empty(len(hashes), np.int16)
        owners = rules.find_owners(hashes, self._first_channel)
        for owner in range(rules.assigners):
            rows = np.flatnonzero(owners == owner)
            placed[rows] = _order_by_first_row(self._fill(owner, len(rows), overflow_start), first_rows[rows])
        return placed

    def _fill(self, owner: int, count: int, overflow_start: int) -> BucketNumbers:
        """Return buckets of one assigner for so many new hashes: those with room, then new ones, then any."""
        rules, counts = self._rules, self._counts
        plan: list[tuple[int, int]] = []
        for bucket in sorted(b for b in counts if b % rules.assigners == owner):
            count = _take_room(bucket, count, rules.target_rows, counts, plan)
        for bucket in range(owner, rules.bucket_limit, rules.assigners):
            if not count:
                break
            if bucket not in counts:
                count = _take_room(bucket, count, rules.target_rows, counts, plan)
        filled = np.repeat(np.array([b for b, _ in plan], np.int16), [n for _, n in plan])
        return np.concatenate([filled, self._overflow(owner, count, overflow_start)]) if count else filled

    def _overflow(self, owner: int, count: int, overflow_start: int) -> BucketNumbers:
        rules = self._rules
        own = np.array(sorted(b for b in self._counts if b % rules.assigners == owner), np.int16)
        if rules.max_buckets < 0 or not len(own):
            raise InvalidRequest(
                f"A partition needs more than {rules.bucket_limit} dynamic buckets",
                subject="dynamic-bucket.target-row-num",
                hint="raise 'dynamic-bucket.target-row-num'",
            )
        placed: BucketNumbers = own[(overflow_start + np.arange(count)) % len(own)]
        for bucket, number in zip(*np.unique(placed, return_counts=True), strict=True):
            self._counts[int(bucket)] += int(number)
        return placed


def _order_by_first_row(filled: BucketNumbers, first_rows: npt.NDArray[np.uint32]) -> BucketNumbers:
    """Return, for hashes in any order, the buckets that were filled in the order of their first rows."""
    if not len(filled) or (filled == filled[0]).all():
        return filled
    # The rows of the batch with their buckets, in which other rows have none: cheaper than a sort.
    is_first = np.zeros(int(first_rows.max()) + 1, bool)
    is_first[first_rows] = True
    by_row = np.empty(len(is_first), np.int16)
    by_row[is_first] = filled
    return by_row[first_rows]


def _take_room(bucket: int, count: int, target: int, counts: dict[int, int], plan: list[tuple[int, int]]) -> int:
    """Give a bucket as many of `count` hashes as it has room for; return how many are left."""
    taken = min(count, max(0, target - counts.get(bucket, 0)))
    if taken:
        counts[bucket] = counts.get(bucket, 0) + taken
        plan.append((bucket, taken))
    return count - taken


@frozen(eq=False)
class _DistinctHashes:
    """The distinct hashes of a batch."""

    # ascending
    hashes: Hashes
    # positions in the batch, ordered by hash, then by position
    rows: npt.NDArray[np.uint32]
    # where the rows of each hash begin in `rows`; None if each hash has one row
    starts: Positions | None

    def find_first_rows(self) -> npt.NDArray[np.uint32]:
        """Return the first row of each hash."""
        return self.rows if self.starts is None else self.rows[self.starts]

    def spread(self, buckets: BucketNumbers) -> BucketNumbers:
        """Return the bucket of each row of the batch, from those of the hashes."""
        by_row = np.empty(len(self.rows), np.int16)
        if self.starts is not None:
            buckets = np.repeat(buckets, np.diff(self.starts, append=len(self.rows)))
        by_row[self.rows] = buckets
        return by_row


def _sort_distinct(hashes: Hashes) -> _DistinctHashes:
    # One sort of 64-bit numbers, of hash and position, is several times faster than an argsort.
    keys = hashes.astype(np.int64)
    keys <<= 32
    keys |= np.arange(len(hashes), dtype=np.uint32)
    keys.sort()
    rows = keys.astype(np.uint32)
    keys >>= 32
    ordered = keys.astype(np.int32)
    is_first = np.ones(len(keys), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    if is_first.all():
        return _DistinctHashes(ordered, rows, None)
    starts = np.flatnonzero(is_first)
    return _DistinctHashes(ordered[starts], rows, starts)
