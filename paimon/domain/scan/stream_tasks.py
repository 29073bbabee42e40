"""Divide what a batch of a stream reads: how much one batch takes, and which splits one task reads in order.

Invariant: the changes of a key are in one task, in the order of their snapshots. Every batch takes at least one split,
which is one file where no files are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from attrs import evolve, frozen

from paimon.domain.scan.split_packing import SplitLimits, pack
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.bucket_mode import BucketMode

S = TypeVar("S", "DataSplit", "FollowedSplit")
_TASK_ROWS = 250_000
"""How many stored rows one task reads, where rows need no order: it takes much longer than the start of a task."""


@frozen
class FollowedSplit:
    """A split of a stream; `is_state` is True for rows of the complete state, False for changes."""

    split: DataSplit
    is_state: bool


@frozen
class BatchLimits:
    """How much one batch reads; None for no limit. A split is not divided."""

    files: int | None = None
    # stored rows, before merging
    rows: int | None = None
    # stored bytes
    bytes: int | None = None

    @property
    def are_given(self) -> bool:
        """Whether there is a limit."""
        return (self.files, self.rows, self.bytes) != (None, None, None)

    def count_within(self, splits: Sequence[DataSplit], used: BatchSize) -> int:
        """Return how many of the next splits a batch takes that has `used` already; at least one if it is empty."""
        for count, split in enumerate(splits):
            size = used.plus(split)
            if (used.files or count) and self._is_exceeded_by(size):
                return count
            used = size
        return len(splits)

    def _is_exceeded_by(self, size: BatchSize) -> bool:
        pairs = ((self.files, size.files), (self.rows, size.rows), (self.bytes, size.bytes))
        return any(limit is not None and value > limit for limit, value in pairs)


@frozen
class BatchSize:
    """The data files, stored rows and stored bytes that a batch reads."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def plus(self, split: DataSplit) -> BatchSize:
        """Return the size with one more split."""
        files = (*split.before_files, *split.files)
        return BatchSize(
            self.files + len(files),
            self.rows + sum(f.row_count for f in files),
            self.bytes + sum(f.file_size for f in files),
        )


def divide_by_file(split: DataSplit) -> Iterator[DataSplit]:
    """Yield a split for each file, in their order; the split itself if its files are read together."""
    if not split.raw_convertible or split.before_files:
        yield split
        return
    for number, file in enumerate(split.files):
        own = slice(number, number + 1)
        vectors, ranges = split.deletion_files[own], split.row_ranges[own]
        yield evolve(split, files=(file,), deletion_files=vectors, row_ranges=ranges)


def group_by_key_order(
    splits: Iterable[FollowedSplit], mode: BucketMode, limits: SplitLimits
) -> list[tuple[FollowedSplit, ...]]:
    """Return the splits of each task. `splits` are those of a batch, in the order of their snapshots.

    A state has one row for each key, so its splits need no order, and small ones share a task. Changes of a bucket stay
    together. So do all changes of a partition that was rescaled between them, and those of a cross-partition table.
    """
    all_splits = list(splits)
    if mode is BucketMode.UNAWARE or all(followed.is_state for followed in all_splits):
        return group_small_splits(all_splits, limits)
    totals: dict[bytes, set[int]] = {}
    for followed in all_splits:
        totals.setdefault(followed.split.partition, set()).add(followed.split.total_buckets)
    groups: dict[tuple[object, ...], list[FollowedSplit]] = {}
    for followed in all_splits:
        partition = followed.split.partition
        key: tuple[object, ...] = (partition, followed.split.bucket) if len(totals[partition]) == 1 else (partition,)
        groups.setdefault(() if mode is BucketMode.CROSS_PARTITION else key, []).append(followed)
    return [tuple(group) for group in groups.values()]


def group_small_splits(splits: Sequence[S], limits: SplitLimits) -> list[tuple[S, ...]]:
    """Return the splits of each task where rows need no order: one split, or adjacent ones of the size of a split."""

    def weigh(item: S) -> int:
        split: DataSplit = item.split if isinstance(item, FollowedSplit) else item
        files = (*split.before_files, *split.files)
        rows = sum(file.row_count for file in files)
        size = sum(limits.weigh(file.file_size for file in files))
        return max(size, rows * limits.target_bytes // _TASK_ROWS)

    return [tuple(task) for task in pack(splits, list(map(weigh, splits)), limits.target_bytes)]
