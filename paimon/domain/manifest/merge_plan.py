"""Decide which manifests a commit merges, and read as few of them as possible.

Invariant: Merging never changes the live files of a snapshot. A full merge drops each DELETE together with its ADD. A
minor merge keeps a DELETE whose ADD is in an earlier manifest.
Source: `ManifestFileMerger`.
"""

# Each commit adds a small manifest with its ADD and DELETE entries. Scans read all manifests of a snapshot, so commits
# merge them. Sizes in MB, with a target of 8 and a threshold of 16 (`full_threshold_bytes`); d: has deletes:
#
#     manifests   8    8    8    3d   2    1    1
#
# A full merge is due when the manifests that must change (small, or with deletes) reach the threshold. Here they have
# 3 + 2 + 1 + 1 = 7, so it is not due. When it is:
#
# 1. The manifests with deletes are read first (`manifests_with_deletes`), to know which files are deleted, and in which
#    partitions.
# 2. `plan_full_merge` reads of the large manifests only those whose partition bounds admit a deleted partition. All
#    others stay as they are, which keeps the cost of a full merge near the size of what changed.
# 3. `mark_after_full_merge` drops each DELETE with its ADD. A large manifest without either stays, too.
#
# Otherwise a minor merge joins neighbors, in order, until the target is reached: (8) (8) (8), and 3 2 1 1 remain. The
# rest is joined only if it has `min_count` manifests. A DELETE whose ADD is in an earlier group must stay.
#
# Merged entries are sorted by partition, so that scans of few partitions skip whole manifests. A minor merge writes
# several parts, if these do not make the next merge due. Commits leave full manifests as they are, so each can still
# contain all partitions. A merge that is asked for (`is_forced`) then sorts all entries together:
#
#     partitions  1-9  1-9  1-9  2  7    not clustered: partition 2 is in four manifests    ->  1-3  3-6  7-9

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Any

import numpy as np
from attrs import frozen

from paimon.domain.manifest.entries import ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask
from paimon.domain.manifest.manifest_stats import may_hold_partition, to_java_sort_key
from paimon.domain.row.binary_row import deserialize
from paimon.domain.stats.simple_stats import from_simple_stats
from paimon.domain.types.data_types import DataType

SortKey = tuple[tuple[bool, Any], ...]


@frozen
class MergeLimits:
    """The limits that decide about a merge: sizes in bytes, and `min_count` in manifests."""

    target_size_bytes: int
    full_threshold_bytes: int
    min_count: int

    @property
    def is_forced(self) -> bool:
        """Whether each merge is a full one."""
        return self.full_threshold_bytes <= 1


@frozen
class FullMerge:
    """The plan of a full merge."""

    # manifests that stay and are not read
    kept: tuple[ManifestFileMeta, ...]
    # manifests to read; they are rewritten if they must change or contain a deleted file
    read: tuple[ManifestFileMeta, ...]
    # whether all are rewritten, to cluster their entries by partition
    rewrites_all: bool = False


def must_change(manifest: ManifestFileMeta, limits: MergeLimits) -> bool:
    """Return whether a full merge always rewrites the manifest, because it contains deletes or is small."""
    return manifest.num_deleted_files > 0 or manifest.file_size < limits.target_size_bytes


def is_full_merge_due(manifests: Iterable[ManifestFileMeta], limits: MergeLimits) -> bool:
    """Return whether the manifests that must change are together large enough for a full merge."""
    size = sum(m.file_size for m in manifests if must_change(m, limits))
    return limits.is_forced or size >= limits.full_threshold_bytes


def manifests_with_deletes(manifests: Iterable[ManifestFileMeta]) -> tuple[ManifestFileMeta, ...]:
    """Return the manifests with deletes, which a full merge reads first."""
    return tuple(m for m in manifests if m.num_deleted_files > 0)


def plan_full_merge(
    manifests: Sequence[ManifestFileMeta],
    deleted_partitions: AbstractSet[bytes],
    partition_types: Sequence[DataType],
    limits: MergeLimits,
) -> FullMerge | None:
    """Plan a full merge of all manifests, in order; None if fewer than two would be read.

    `deleted_partitions` are the serialized partitions of all DELETE entries.
    """
    if limits.is_forced and not is_clustered(manifests, partition_types, limits):
        return FullMerge((), tuple(manifests), rewrites_all=True)
    deleted = [deserialize(partition, partition_types) for partition in deleted_partitions]
    read = tuple(m for m in manifests if must_change(m, limits) or _may_hold_any_partition(m, deleted, partition_types))
    if len(read) <= 1:
        return None
    chosen = set(read)
    return FullMerge(kept=tuple(m for m in manifests if m not in chosen), read=read)


def is_clustered(manifests: Iterable[ManifestFileMeta], types: Sequence[DataType], limits: MergeLimits) -> bool:
    """Return whether few of the manifests that a merge leaves contain the same partition, as after a sort.

    Manifests of one partition, and those without bounds, are ignored.
    """
    ends = []
    stay = (manifest for manifest in manifests if not must_change(manifest, limits))
    for low, high in filter(None, (_find_bounds(manifest, types) for manifest in stay)):
        if low < high:
            ends += [(low, 1), (high, -1)]  # the end of one before the start of the next, which may share a partition
    return max(accumulate(step for _, step in sorted(ends)), default=0) <= 2 * len(types)


def _find_bounds(manifest: ManifestFileMeta, types: Sequence[DataType]) -> tuple[SortKey, SortKey] | None:
    """Return the sort keys of the smallest and the largest value of each column; None if one is not known."""
    stats = from_simple_stats(manifest.partition_stats, types) if types else ()
    entries = manifest.num_added_files + manifest.num_deleted_files
    if not stats or any(s.null_count is None or (s.minimum is None and s.null_count < entries) for s in stats):
        return None
    low = tuple((not s.null_count, None if s.null_count else to_java_sort_key(s.minimum)) for s in stats)
    high = tuple((s.maximum is not None, to_java_sort_key(s.maximum)) for s in stats)
    return low, high


def _may_hold_any_partition(
    manifest: ManifestFileMeta, partitions: Iterable[Sequence[Any]], types: Sequence[DataType]
) -> bool:
    return any(may_hold_partition(manifest, values, types) for values in partitions)


def mark_after_full_merge(kept: Mask, counts: Sequence[int], rewritten: Sequence[bool]) -> tuple[Mask, list[bool]]:
    """Mark the entries to write again after a full merge, and tell which manifests stay unchanged.

    `kept` marks the entries that remain of all manifests, which have `counts` entries each. Those of `rewritten` are
    written again in any case, the others if they contain a deleted file.
    """
    ends = np.cumsum(counts, dtype=np.int64)
    left = np.append(0, np.cumsum(kept))
    stays = [
        not again and bool(left[end] - left[end - n] == n)
        for end, n, again in zip(ends, counts, rewritten, strict=True)
    ]
    return kept & ~np.repeat(stays, counts), stays


def plan_minor_merge(
    manifests: Sequence[ManifestFileMeta], limits: MergeLimits
) -> tuple[tuple[ManifestFileMeta, ...], ...]:
    """Group adjacent manifests, in order, for a minor merge.

    A group of several manifests becomes one manifest. A group of one stays unchanged.
    """
    groups: list[tuple[ManifestFileMeta, ...]] = []
    group: list[ManifestFileMeta] = []
    size = 0
    for manifest in manifests:
        group.append(manifest)
        size += manifest.file_size
        if size >= limits.target_size_bytes:
            groups.append(tuple(group))
            group, size = [], 0
    groups += [tuple(group)] if len(group) >= limits.min_count else [(manifest,) for manifest in group]
    return tuple(groups)


SMALLEST_PART_BYTES = 64 * 1024
"""For smaller parts, opening another manifest costs more than pruning saves."""
_PARTS_OF_COUNT = 3


def order_by_partition(columns: EntryColumns, types: Sequence[DataType]) -> Integers:
    """Return the positions of the entries sorted by partition; the entries of one partition keep their order."""
    keys = [_to_sort_key(row, types) for row in columns.partition_rows]
    ranks = np.empty(len(keys), np.int64)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return np.argsort(ranks[columns.partitions], kind="stable")


def count_parts(size_bytes: int, limits: MergeLimits) -> int:
    """Return the number of manifests into which a minor merge is split.

    The number is small enough that the next merge is not due soon. It is 1 if the merge fills a manifest, which is not
    merged again.
    """
    if size_bytes >= limits.target_size_bytes:
        return 1
    return max(1, min(size_bytes // SMALLEST_PART_BYTES, limits.min_count // _PARTS_OF_COUNT))


def split_rows(partitions: Integers, parts: int) -> list[slice]:
    """Split the partitions of sorted entries into at most `parts` ranges of about equal size, each partition in one."""
    edges = [*(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    size = -(-len(partitions) // parts)
    found, start = [], 0
    while start < len(partitions):
        stop = edges[bisect_left(edges, min(start + size, len(partitions)))]
        found.append(slice(start, stop))
        start = stop
    return found


def _to_sort_key(partition: bytes, types: Sequence[DataType]) -> SortKey:
    return tuple((value is not None, to_java_sort_key(value)) for value in deserialize(partition, types))
