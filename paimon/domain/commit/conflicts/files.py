"""Check whether the files and deletion vectors of a change still fit the snapshot that it is committed on.

Invariant: An APPEND that only adds level-0 files never conflicts. An error names the first rule that is violated, and
the files. A deletion vector refers to a live file and is derived from the current vectors. Replacing a file neither
loses nor restores rows that were deleted concurrently.
Source: `ConflictDetection`, whose `buildBaseEntriesWithDV` checks only tables without buckets.
"""

# A change is computed on one snapshot, and committed on the newest one (the base), which other writers may have
# published in between. These checks apply the change to the files of the base, and refuse it where that is not
# possible:
#
#     base: a.orc (level 5)  b.orc (level 0)        change of a compaction: - a.orc  - b.orc  + c.orc (level 5)
#
# - Each DELETE names a live file. (Another compaction has removed a.orc: conflict.) Each ADD names a file that is not
#   live.
# - Above level 0, the files of one level have disjoint keys after the change, otherwise a merge would miss records.
# - All files of a partition have one number of buckets. A rescale replaces all files of its partition.
# - Files that a lookup read, without changing them, are still live: the result depends on their records. Where files
#   are clustered by other columns than the key, there are no key ranges: a compaction has read all files of its bucket.
# - A new deletion vector is derived from the current ones: the index file that it replaces is live. A file that the
#   change removes has no newer vector, whose deletes would be lost with it.
#
# An APPEND of level-0 files passes always, so it reads nothing (`needs_check`). Other changes read the live files of
# their partitions as columns, and `mark_checked_files` keeps the few rows that a check needs.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.commit.entries import Change
from paimon.domain.errors import BucketCountConflict, CommitConflict, DeletionVectorConflict
from paimon.domain.lsm.keys import to_comparable_key
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.arrow_arrays import make_array, to_numpy
from paimon.domain.types.data_types import DataType


def mark_checked_files(live: EntryColumns, change: Change, keyed: bool) -> Mask:
    """Mark the live files that a conflict check needs, over columns: `check_conflicts` has the same result for all.

    These are the files that the change or its deletion vectors name, and of the other files one for each partition and
    bucket count. In a primary-key table they also include the files above level 0 in changed buckets, and in those
    where deletes are dropped: a compaction of postponed rows looks keys up, and may change no file.
    """
    position = {row: i for i, row in enumerate(live.partition_rows)}
    touched = [position[p] for p in change.partitions if p in position]
    within: Mask = np.isin(live.partitions, np.array(touched, dtype=np.int64))
    vectors = (r.data_file for e in change.index for r in e.deletion_vectors or ())
    looked_up = (name for *_, name in change.looked_up)
    names = make_array(sorted({*(e.file.file_name for e in change.entries), *vectors, *looked_up}), pa.string())
    found: Mask = to_numpy(pc.is_in(live.files.field("_FILE_NAME"), names)).copy()
    unnamed = np.flatnonzero(~found)
    found[unnamed[_first_of_each(_to_codes(live.partitions, live.total_buckets)[unnamed])]] = True
    if keyed:
        found = found | _mask_above_level_0(live, change, position)
    return within & found


def _mask_above_level_0(live: EntryColumns, change: Change, position: Mapping[bytes, int]) -> Mask:
    """Mark the files above level 0 in the buckets that the change names."""
    named = {(e.partition, e.bucket) for e in change.entries} | change.drops_deletes
    buckets = {(position[partition], bucket) for partition, bucket in named if partition in position}
    wanted = np.array(sorted(buckets), dtype=np.int64).reshape(-1, 2)
    in_buckets = np.isin(_to_codes(live.partitions, live.buckets), _to_codes(wanted[:, 0], wanted[:, 1]))
    mask: Mask = (live.number("_LEVEL") >= 1) & in_buckets
    return mask


def _to_codes(first: Integers, second: Integers) -> Integers:
    """Return two numbers as one; the second is a signed 32-bit integer."""
    codes: Integers = (first << 33) + (second + (1 << 32))
    return codes


def _first_of_each(codes: Integers) -> Mask:
    first = np.zeros(len(codes), dtype=bool)
    first[np.unique(codes, return_index=True)[1]] = True
    return first


_Identity = tuple[object, ...]


def needs_check(change: Change, is_required: bool) -> bool:
    """Return whether the files of the base must be read before the change is published; `is_required` forces it."""
    has_deletes = any(e.kind is FileKind.DELETE for e in change.entries)
    touches_vectors = any(e.index_type == DELETION_VECTORS or e.global_index for e in change.index)
    return is_required or change.kind is not CommitKind.APPEND or has_deletes or touches_vectors


def check_conflicts(
    base: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType], clustered: bool = False
) -> None:
    """Refuse a change that contradicts the base.

    `base` has at least the live files of the changed partitions. `key_types` describes the trimmed primary key, and is
    empty if it does not order the files. `clustered` means that other columns order those of a primary-key table.
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
    if clustered and change.kind is CommitKind.COMPACT:
        _check_clustered(live.values(), change)


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
        raise CommitConflict("Files that this commit was computed from are not in the table", files=missing)


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


def _check_clustered(live: Iterable[ManifestEntry], change: Change) -> None:
    """Refuse a compaction that did not look its keys up in all files above level 0: a key could then be live twice."""
    added = [e for e in change.entries if e.kind is FileKind.ADD and e.file.level > 0]
    buckets = {(e.partition, e.bucket) for e in added}
    known = {(e.partition, e.bucket, e.file.file_name) for e in added} | {*change.looked_up}
    unknown = [
        e.file.file_name
        for e in live
        if e.file.level > 0
        and (e.partition, e.bucket) in buckets
        and (e.partition, e.bucket, e.file.file_name) not in known
    ]
    if unknown:
        raise CommitConflict(
            "A concurrent compaction added files in which this one did not look its keys up",
            files=unknown,
            hint="retry the compaction",
        )


def _list_names(entries: Iterable[ManifestEntry]) -> list[str]:
    return [e.file.file_name for e in entries]


_FileKey = tuple[bytes, int, str]
"""A partition, a bucket and a file name."""


def check_vectors(
    base: Iterable[ManifestEntry], held: Sequence[IndexManifestEntry], change: Change, bucketed: bool
) -> None:
    """Refuse a change whose deletion vectors contradict the base.

    `base` has at least the live files that the change or its deletion vectors name; `held` has all live index files.
    `bucketed` means that each bucket has one index file with all of its deletion vectors.
    """
    current = {_to_index_key(e): e for e in held if e.index_type == DELETION_VECTORS}
    replaced = _vector_entries(change, FileKind.DELETE)
    for entry in replaced:
        if current.pop(_to_index_key(entry), None) is None:
            raise _vectors_changed_error(entry)
    added = _vector_entries(change, FileKind.ADD)
    if bucketed:
        others = {(e.partition, e.bucket): e for e in current.values()}
        for entry in added:
            if (entry.partition, entry.bucket) in others:
                raise _vectors_changed_error(others[entry.partition, entry.bucket])
    live = {(e.partition, e.bucket, e.file.file_name) for e in base}
    after = _live_after(live, change)
    # Vectors that are copied to a new index file can refer to files that are gone. This does no harm.
    known = after | set(_files_with_vectors(replaced))
    unknown = [key[-1] for key in _files_with_vectors(added) if key not in known]
    if unknown:
        raise DeletionVectorConflict("Files with rows to delete are no longer in the table", files=unknown)
    removed = live - after
    marked = [key[-1] for key in _files_with_vectors(current.values()) if key in removed]
    if marked:
        raise CommitConflict("Rows of files to replace were deleted by another commit", files=marked)


def _vector_entries(change: Change, kind: FileKind) -> list[IndexManifestEntry]:
    return [e for e in change.index if e.kind is kind and e.index_type == DELETION_VECTORS]


def _live_after(live: set[_FileKey], change: Change) -> set[_FileKey]:
    """Return the files that are live after the change; an upgrade removes a file and adds it again."""
    names = {
        kind: {(e.partition, e.bucket, e.file.file_name) for e in change.entries if e.kind is kind} for kind in FileKind
    }
    return (live - names[FileKind.DELETE]) | names[FileKind.ADD]


def _to_index_key(entry: IndexManifestEntry) -> _FileKey:
    return entry.partition, entry.bucket, entry.file_name


def _files_with_vectors(entries: Iterable[IndexManifestEntry]) -> list[_FileKey]:
    """Return the data files whose deletion vectors are in these index files."""
    return [(e.partition, e.bucket, r.data_file) for e in entries for r in e.deletion_vectors or ()]


def _vectors_changed_error(entry: IndexManifestEntry) -> DeletionVectorConflict:
    return DeletionVectorConflict(
        f"Deletion vectors of bucket {entry.bucket} were changed by another commit", files=[entry.file_name]
    )
