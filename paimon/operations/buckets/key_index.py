"""The key index of a cross-partition writer: the partition and the bucket of each key of the table.

Invariant: after each batch, each key is in one place, and the index knows it. The index is built from one snapshot
before the first batch, and lives on local disk; after a crash the next writer builds it again. A stream adds the keys
of other writers between its commits. A state machine.
Source: `GlobalIndexAssigner`, `IndexBootstrap`.
"""

# The primary key of a cross-partition table lacks a partition column, so the same key can arrive for another partition.
# A writer must know where each key of the whole table is. The index maps keys to places:
#
#     key     place                  a row with key 7 arrives for partition b:
#     7       partition a, bucket 0      deduplicate      -D to (a, 0), the row to (b, 1); the place of 7 is (b, 1)
#     8       partition b, bucket 1      partial-update   the row to (a, 0), where the key stays
#                                        first-row        dropped
#
# Partitions are numbered, and a place is one integer, so a batch is routed in columns
# (`paimon.domain.bucket.cross_partition_columnar`): find the places of its distinct keys, decide, put those that
# changed. New keys fill buckets up to `dynamic-bucket.target-row-num`, so the keys of each bucket are counted.
#
#     first batch     read the keys of the newest snapshot into a store on local disk; `base` is this snapshot
#     each batch      find, decide, put
#     end of batches  the rows are in messages, so the index may follow other writers
#     next batch      add the keys of the snapshots after `base`; an overwrite by others ends the writer (conflict)
#
# Others may commit after the last batch. So the commit looks at the snapshots between `base` and its own base, and is
# refused if one of them may have added the same keys (`KeyIndexCheck`). Where several tasks share the keys, each has an
# index of its part, and fills only the buckets that belong to it. After a crash the index is built again.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.bucket.cross_partition_columnar import (
    BucketRule,
    ExistingKey,
    PlacedRows,
    place_row_columns,
    select_first_load_rows,
    split_places,
    to_places,
)
from paimon.domain.commit.conflicts.buckets import can_move_keys, make_lost_snapshot_error
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import CorruptTable, KeyIndexConflict, SnapshotExpired
from paimon.domain.merge.ordering.key_groups import number_keys
from paimon.domain.scan.scan_plan import ScanKind
from paimon.domain.schema.rules.layout import option_error
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.undo import undo_on_failure
from paimon.operations.buckets.key_bootstrap import KeysOfBucket, open_key_store, plan_key_splits, read_key_places
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.key_stores import KeyStore, Places


class RoutedRows(NamedTuple):
    """The rows of a batch that are written, by position, and their partitions and buckets."""

    # positions in the batch, in the order in which the rows are written
    rows: npt.NDArray[np.int64]
    # for each written row, whether it is written as a -D row
    is_retract: npt.NDArray[np.bool_]
    # distinct partitions as serialized rows
    partitions: list[bytes]
    # for each written row, the position of its partition in `partitions`
    codes: npt.NDArray[np.int64]
    # for each written row, its bucket
    buckets: npt.NDArray[np.int64]


class KeyIndex:
    """Find the partition and bucket of each key, and assign new keys to a bucket.

    The index starts empty with `ignore_previous` (overwrites of the whole table, or before `load`). With `is_bounded`,
    the first batch of an empty table needs no -D rows. `assigners` indexes share the keys; this is number `assigner`.
    `base` is the snapshot from which the index was built; None before the first batch, and for overwrites.
    """

    def __init__(
        self,
        context: TableContext,
        commit_user: str,
        *,
        ignore_previous: bool,
        is_bounded: bool,
        assigner: int = 0,
        assigners: int = 1,
    ) -> None:
        options = context.options
        if options.dynamic_bucket_target_row_num < 1:
            raise option_error(
                "dynamic-bucket.target-row-num", f"is {options.dynamic_bucket_target_row_num}", "use a positive number"
            )
        self._context = context
        self._commit_user = commit_user
        self._is_prepared = self._is_repeated = False
        self._ignores = ignore_previous
        self._is_bounded = is_bounded
        self._rule = BucketRule(options.dynamic_bucket_target_row_num, assigners, assigner)
        self._existing = ExistingKey.of(options.merge_engine)
        self._store: KeyStore | None = None
        self._partitions: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._counts: dict[int, dict[int, int]] = {}
        self.base: ReadState | None = None

    def route(self, keys: pa.RecordBatch, partitions: Sequence[bytes], codes: npt.NDArray[np.int64]) -> RoutedRows:
        """Route the rows of a batch to partitions and buckets, and record where their keys are now.

        `codes` is for each row the position of its partition in `partitions` (serialized rows). Raises
        `KeyIndexConflict` if another commit replaced rows since the last commit of this stream.
        """
        if self._is_repeated:
            self.close()
        store = self._open()
        if self._is_prepared:
            self._follow(store)
        self._is_prepared = self._is_repeated = False
        named = np.array([self._number(partition) for partition in partitions], np.int64)
        numbers, first_rows = number_keys(keys.columns)
        is_first_load = self._is_bounded and not self._counts
        chosen = select_first_load_rows(numbers, self._existing) if is_first_load else np.arange(len(numbers))
        distinct = keys.take(from_numpy(first_rows))
        stored = store.find(distinct)
        placed = place_row_columns(
            numbers[chosen], named[codes[chosen]], stored, self._counts, self._rule, self._existing
        )
        changed = np.flatnonzero(placed.key_places != stored)
        if len(changed):
            store.put(distinct.take(from_numpy(changed)), placed.key_places[changed], self._now_millis())
        self._add_counts(placed)
        targets, buckets = split_places(placed.places)
        found, target_codes = np.unique(targets, return_inverse=True)
        target_partitions = [self._partitions[number] for number in found.tolist()]
        return RoutedRows(chosen[placed.rows], placed.is_retract, target_partitions, target_codes, buckets)

    def load(self, keys: Iterable[KeysOfBucket]) -> None:
        """Fill an empty index with its keys, which other processes read; StorageError if the disk is full."""
        self._store = open_key_store(self._context)
        with undo_on_failure(self.close):
            added = self._store.load(self._count_places(keys), self._now_millis())
        self._context.engine.observer.count("key_index.loaded", added)

    def has_any(self, keys: pa.RecordBatch) -> bool:
        """Return whether the index has a place for one of these keys."""
        return self._store is not None and bool((self._store.find(keys) >= 0).any())

    def end_batches(self, *, is_repeated: bool = False) -> None:
        """Note that all routed rows are in commit messages, so that the index may follow other writers.

        `is_repeated` means that the commit was already committed before. Its rows are not where they were routed now,
        so the index is built again.
        """
        self._is_prepared, self._is_repeated = True, is_repeated

    def close(self) -> None:
        """Drop the index; the next batch builds it again."""
        if self._store is not None:
            self._store.close()
        self._store, self._partitions, self._numbers, self._counts = None, [], {}, {}
        self.base = None

    def _open(self) -> KeyStore:
        """Return the store, which the first call fills with the keys of the newest snapshot."""
        while self._store is None:
            snapshot = None if self._ignores else latest_snapshot(self._context)
            try:
                with undo_on_failure(self.close):
                    self._fill(snapshot)
            except (CorruptTable, SnapshotExpired):
                if snapshot is None or self._exists(snapshot):
                    raise  # else the snapshot expired during the read
        return self._store

    def _fill(self, snapshot: Snapshot | None) -> None:
        splits = () if snapshot is None else plan_key_splits(self._context, snapshot)
        self.load(read_key_places(self._context, splits))
        if not self._ignores:
            self.base = ReadState.of(snapshot)

    def _follow(self, store: KeyStore) -> None:
        """Add the keys that other writers committed since the last snapshot that the index knows."""
        latest = latest_snapshot(self._context)
        if latest is None or self.base is None:
            return
        for snapshot_id in range(self.base.snapshot_id + 1, latest.id + 1):
            snapshot = latest
            if snapshot_id < latest.id:
                found = find_snapshot(self._context, snapshot_id)
                if found is None:
                    raise make_lost_snapshot_error(snapshot_id)
                snapshot = found
            if can_move_keys(snapshot, self._commit_user):
                self._add_keys(store, snapshot)
            self.base = ReadState.of(snapshot)

    def _add_keys(self, store: KeyStore, snapshot: Snapshot) -> None:
        """Add the keys of another writer's commit; KeyIndexConflict if it replaced rows, whose keys may be gone."""
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            raise KeyIndexConflict(
                f"Snapshot {snapshot.id} of user {snapshot.commit_user!r} replaced rows of the table",
                hint="continue with a new writer, which reads where the keys are",
            )
        for partition, bucket, keys in read_key_places(
            self._context, plan_key_splits(self._context, snapshot, ScanKind.DELTA)
        ):
            number = self._number(partition)
            place = to_places(number, np.array([bucket]))[0]
            new = np.flatnonzero(store.find(keys) != place)
            store.put(keys.take(from_numpy(new)), np.full(len(new), place), self._now_millis())
            counts = self._counts.setdefault(number, {})
            counts[bucket] = counts.get(bucket, 0) + len(new)

    def _count_places(self, places: Iterable[KeysOfBucket]) -> Iterator[tuple[pa.RecordBatch, Places]]:
        for partition, bucket, keys in places:
            number = self._number(partition)
            counts = self._counts.setdefault(number, {})
            counts[bucket] = counts.get(bucket, 0) + keys.num_rows
            yield keys, np.broadcast_to(to_places(number, np.array([bucket])), keys.num_rows)

    def _add_counts(self, placed: PlacedRows) -> None:
        places = np.fromiter(placed.changes, np.int64, len(placed.changes))
        partitions, buckets = (part.tolist() for part in split_places(places))
        for partition, bucket, change in zip(partitions, buckets, placed.changes.values(), strict=True):
            counts = self._counts.setdefault(partition, {})
            counts[bucket] = counts.get(bucket, 0) + change

    def _number(self, partition: bytes) -> int:
        number = self._numbers.setdefault(partition, len(self._partitions))
        if number == len(self._partitions):
            self._partitions.append(partition)
        return number

    def _now_millis(self) -> int:
        return self._context.engine.clock.now_millis()

    def _exists(self, snapshot: Snapshot) -> bool:
        return find_snapshot(self._context, snapshot.id) == snapshot
