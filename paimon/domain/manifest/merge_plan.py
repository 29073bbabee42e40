"""Decide which manifests a commit merges, and read as few of them as possible.

Invariant: Merging never changes the live files of a snapshot. A full merge drops each DELETE together with its ADD. A
minor merge keeps a DELETE whose ADD is in an earlier manifest.
Source: `ManifestFileMerger`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from attrs import frozen

from paimon.domain.manifest.entries import FileKind, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.types.data_types import DataType

Identity = tuple[object, ...]


@frozen
class MergeLimits:
    """The limits that decide about a merge: sizes in bytes, and `min_count` in manifests."""

    target_size_bytes: int
    full_threshold_bytes: int
    min_count: int


@frozen
class FullMerge:
    """The plan of a full merge."""

    # manifests that stay and are not read
    kept: tuple[ManifestFileMeta, ...]
    # manifests to read; they are rewritten if they must change or contain a deleted file
    read: tuple[ManifestFileMeta, ...]


def must_change(manifest: ManifestFileMeta, limits: MergeLimits) -> bool:
    """Return whether a full merge always rewrites the manifest, because it contains deletes or is small."""
    return manifest.num_deleted_files > 0 or manifest.file_size < limits.target_size_bytes


def is_full_merge_due(manifests: Iterable[ManifestFileMeta], limits: MergeLimits) -> bool:
    """Return whether the manifests that must change are together large enough for a full merge."""
    return sum(m.file_size for m in manifests if must_change(m, limits)) >= limits.full_threshold_bytes


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
    deleted = [deserialize(partition, partition_types) for partition in deleted_partitions]
    read = tuple(m for m in manifests if must_change(m, limits) or _may_hold_any_partition(m, deleted, partition_types))
    if len(read) <= 1:
        return None
    chosen = set(read)
    return FullMerge(kept=tuple(m for m in manifests if m not in chosen), read=read)


def _may_hold_any_partition(
    manifest: ManifestFileMeta, partitions: Iterable[Sequence[Any]], types: Sequence[DataType]
) -> bool:
    return any(may_hold_partition(manifest, values, types) for values in partitions)


def entries_after_full_merge(
    entries: Iterable[ManifestEntry], deleted: AbstractSet[Identity], rewrite: bool
) -> list[ManifestEntry] | None:
    """Return the entries of one manifest that remain after a full merge; None if the manifest stays unchanged.

    `deleted` are the identities of all DELETE entries. With `rewrite`, the manifest is rewritten in any case.
    """
    left = []
    for entry in entries:
        if entry.kind is FileKind.DELETE or entry.identity in deleted:
            rewrite = rewrite or entry.kind is FileKind.ADD
        else:
            left.append(entry)
    return left if rewrite else None


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
