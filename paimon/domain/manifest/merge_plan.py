"""Which manifests a commit merges, decided without reading more than it must.

Law: merging never changes the live files of a snapshot. A full merge drops every DELETE with the ADD that it names; a
minor merge keeps a DELETE whose ADD lies in an earlier manifest. Source: `ManifestFileMerger`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from attrs import frozen

from paimon.domain.manifest.entries import FileKind, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.types.data_types import DataType

Identity = tuple[object, ...]


@frozen
class MergeLimits:
    """The options that decide: sizes in bytes, `min_count` in manifests."""

    target_size_bytes: int
    full_threshold_bytes: int
    min_count: int


@frozen
class FullMerge:
    """A full merge: `kept` stay unread, `read` are rewritten where they must change or hold a deleted file."""

    kept: tuple[ManifestFileMeta, ...]
    read: tuple[ManifestFileMeta, ...]


def must_change(manifest: ManifestFileMeta, limits: MergeLimits) -> bool:
    """Whether a full merge rewrites the manifest in any case: it holds deletes, or is small."""
    return manifest.num_deleted_files > 0 or manifest.file_size < limits.target_size_bytes


def full_merge_is_due(manifests: Iterable[ManifestFileMeta], limits: MergeLimits) -> bool:
    """Whether those that must change are together large enough for a full merge."""
    return sum(m.file_size for m in manifests if must_change(m, limits)) >= limits.full_threshold_bytes


def manifests_with_deletes(manifests: Iterable[ManifestFileMeta]) -> tuple[ManifestFileMeta, ...]:
    """Those that a full merge reads first, for what they delete."""
    return tuple(m for m in manifests if m.num_deleted_files > 0)


def full_merge(
    manifests: Sequence[ManifestFileMeta],
    deleted_partitions: AbstractSet[bytes],
    partition_types: Sequence[DataType],
    limits: MergeLimits,
) -> FullMerge | None:
    """What a full merge keeps and reads; None where fewer than two manifests would be read.

    Parameters
    ----------
    deleted_partitions : set of bytes
        Serialised partitions of all DELETE entries.
    """
    gone = [deserialize(partition, partition_types) for partition in deleted_partitions]
    read = tuple(
        m
        for m in manifests
        if must_change(m, limits) or any(may_hold_partition(m, values, partition_types) for values in gone)
    )
    if len(read) <= 1:
        return None
    chosen = set(read)
    return FullMerge(kept=tuple(m for m in manifests if m not in chosen), read=read)


def entries_after_full_merge(
    entries: Iterable[ManifestEntry], deleted: AbstractSet[Identity], rewrite: bool
) -> list[ManifestEntry] | None:
    """What a manifest that was read leaves behind; None where it stays as it is.

    Parameters
    ----------
    deleted : set of identities
        What all DELETE entries name.
    rewrite : bool
        Whether it must change in any case.
    """
    left = []
    for entry in entries:
        if entry.kind is FileKind.DELETE or entry.identity in deleted:
            rewrite = rewrite or entry.kind is FileKind.ADD
        else:
            left.append(entry)
    return left if rewrite else None


def minor_merge(
    manifests: Sequence[ManifestFileMeta], limits: MergeLimits
) -> tuple[tuple[ManifestFileMeta, ...], ...]:
    """Groups of neighbours, in order: each of more than one becomes one manifest, a group of one stays as it is."""
    groups: list[tuple[ManifestFileMeta, ...]] = []
    group: list[ManifestFileMeta] = []
    size = 0
    for manifest in manifests:
        group.append(manifest)
        size += manifest.file_size
        if size >= limits.target_size_bytes:
            groups.append(tuple(group))
            group, size = [], 0
    if len(group) >= limits.min_count:
        groups.append(tuple(group))
    else:
        groups.extend((manifest,) for manifest in group)
    return tuple(groups)
