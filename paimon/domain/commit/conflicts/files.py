"""Check whether the files of a change still fit the snapshot that it is committed on.

Invariant: An APPEND that only adds level-0 files never conflicts. An error names the first rule that is violated, and
the files.
Source: `ConflictDetection`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from paimon.domain.commit.entries import Change
from paimon.domain.errors import BucketCountConflict, CommitConflict
from paimon.domain.lsm.keys import to_comparable_key
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, ManifestEntry
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.data_types import DataType

_Identity = tuple[object, ...]


def needs_check(change: Change, is_required: bool) -> bool:
    """Return whether the files of the base must be read before the change is published; `is_required` forces it."""
    has_deletes = any(e.kind is FileKind.DELETE for e in change.entries)
    touches_vectors = any(e.index_type == DELETION_VECTORS or e.global_index for e in change.index)
    return is_required or change.kind is not CommitKind.APPEND or has_deletes or touches_vectors


def check_conflicts(base: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]) -> None:
    """Refuse a change that contradicts the base.

    `base` has at least the live files of the changed partitions. `key_types` describes the trimmed primary key, and is
    empty for append tables.
    """
    live = {e.identity: e for e in base}
    if change.kind is not CommitKind.OVERWRITE:
        _check_total_buckets([*live.values(), *change.entries])
    _check_looked_up(live.values(), change)
    _apply_entries(live, change.entries)
    if change.kind is CommitKind.OVERWRITE:
        _check_replaced_as_a_whole(live.values(), change)
    if key_types:
        _check_key_ranges(live.values(), change, key_types)


def drop_known(entries: Iterable[ManifestEntry], base: Iterable[ManifestEntry]) -> tuple[ManifestEntry, ...]:
    """Return the entries without the ADDs that the base already contains (`commit.discard-duplicate-files`)."""
    known = {e.identity for e in base}
    return tuple(e for e in entries if e.kind is FileKind.DELETE or e.identity not in known)


def _check_total_buckets(entries: Iterable[ManifestEntry]) -> None:
    totals: dict[bytes, ManifestEntry] = {}
    for entry in entries:
        if entry.total_buckets <= 0:
            continue
        first = totals.setdefault(entry.partition, entry)
        if first.total_buckets != entry.total_buckets:
            raise BucketCountConflict(
                f"Partition has {first.total_buckets} buckets, but the commit adds files for {entry.total_buckets}",
                files=_list_names([entry]),
                hint="open the table again if it was rescaled, or change the number of buckets by a rescale",
            )


def _check_replaced_as_a_whole(live: Iterable[ManifestEntry], change: Change) -> None:
    """Refuse an overwrite that leaves files for another number of buckets, which were added concurrently."""
    totals = {e.partition: e.total_buckets for e in change.entries if e.kind is FileKind.ADD and e.total_buckets > 0}
    others = [e for e in live if 0 < e.total_buckets != totals.get(e.partition, e.total_buckets)]
    if others:
        total = totals[others[0].partition]
        raise CommitConflict(
            f"Files for {others[0].total_buckets} buckets were added to a partition during its rescale to {total}",
            files=_list_names(others),
            hint="rescale the partition again",
        )


def _check_looked_up(live: Iterable[ManifestEntry], change: Change) -> None:
    """Refuse a compaction whose rows depend on files that were replaced, or that were never committed."""
    if not change.looked_up:
        return
    names = {(e.partition, e.bucket, e.file.file_name) for e in live}
    missing = [name for *bucket, name in change.looked_up if (*bucket, name) not in names]
    if missing:
        raise CommitConflict("Files in which the compaction looked keys up are not in the table", files=missing)


def _apply_entries(live: dict[_Identity, ManifestEntry], entries: Iterable[ManifestEntry]) -> None:
    missing: list[ManifestEntry] = []
    duplicates: list[ManifestEntry] = []
    for entry in entries:
        if entry.kind is FileKind.ADD:
            if entry.identity in live:
                duplicates.append(entry)
            live[entry.identity] = entry
        elif live.pop(entry.identity, None) is None:
            missing.append(entry)
    if missing:
        raise CommitConflict("Files to replace are no longer in the table", files=_list_names(missing))
    if duplicates:
        raise CommitConflict("Files to add are already in the table", files=_list_names(duplicates))


def _check_key_ranges(live: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]) -> None:
    """Refuse files with overlapping keys on the same level above 0 of a bucket."""
    changed = {(e.partition, e.bucket) for e in change.entries}
    runs: dict[tuple[bytes, int, int], list[ManifestEntry]] = {}
    for entry in live:
        if entry.file.level >= 1 and (entry.partition, entry.bucket) in changed:
            runs.setdefault((entry.partition, entry.bucket, entry.file.level), []).append(entry)
    for run in runs.values():
        keyed = sorted(
            (to_comparable_key(e.file.min_key, key_types), to_comparable_key(e.file.max_key, key_types), i)
            for i, e in enumerate(run)
        )
        for (_, high, one), (low, _, two) in pairwise(keyed):
            if low <= high:
                raise CommitConflict(
                    f"Files of level {run[one].file.level} in bucket {run[one].bucket} would have overlapping keys",
                    files=_list_names([run[one], run[two]]),
                )


def _list_names(entries: Iterable[ManifestEntry]) -> list[str]:
    return [e.file.file_name for e in entries]
