"""Compute the splits for the difference between two states of a table, from the plans of both.

Invariant: In a primary-key table, each bucket whose files changed is one split with the files of both states. In an
append table, the added files are read without merging.
Source: `SnapshotReaderImpl.readIncrementalDiff`.
"""

# An incremental read of the range between two snapshots (mode `diff`), and the rows that an overwrite replaced, compare
# two states. Reading both completely would cost as much as the table; files that both states have need not be read:
#
#     bucket    before        after                split
#       0       a  b          a  b                 none: the same files, levels and deletion vectors
#       1       c  d          c  e                 files (c e), before_files (c d)
#       2       f             -                    files (), before_files (f)
#       3       -             g                    files (g): everything is new
#
# In a primary-key table a bucket is read as a whole, also file c, because its rows may hide rows of d or e; the reader
# merges both sides and returns the difference (`paimon.domain.changelog.difference_columnar`). A vector counts, too: if
# only a deletion vector changed, rows disappeared.
#
# In an append table no row replaces another one. So only the added files are read, and what compactions rewrote appears
# in them again, as in Java.

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.splits import DataSplit, DeletionFile

BucketKey = tuple[bytes, int]
"""A serialized partition and a bucket."""


def difference_splits(before: Iterable[DataSplit], after: Iterable[DataSplit], keyed: bool) -> tuple[DataSplit, ...]:
    """Return the splits that contain the difference between two states; earlier files are in `before_files`.

    `keyed` is True for a primary-key table. Without a primary key, only added files are returned.
    """
    if not keyed:
        return tuple(_added_splits(before, after))
    old, new = _group_by_bucket(before), _group_by_bucket(after)
    buckets = [*new, *(key for key in old if key not in new)]
    found = [_difference_of_bucket(old.get(key), new.get(key)) for key in buckets]
    return tuple(split for split in found if split is not None)


def replaced_splits(before: Iterable[DataSplit], after: Iterable[DataSplit], snapshot_id: int) -> tuple[DataSplit, ...]:
    """Return the splits for the rows that an overwrite replaced.

    First come the removed files, which are only in `before_files`, then the added files.
    """
    before, after = tuple(before), tuple(after)
    removed = [_as_removed_split(split) for split in _added_splits(after, before)]
    added_only = [evolve(split, raw_convertible=False) for split in _added_splits(before, after)]
    return tuple(evolve(split, snapshot_id=snapshot_id) for split in (*removed, *added_only))


def _as_removed_split(split: DataSplit) -> DataSplit:
    """Return a split whose files are all removed."""
    return evolve(
        split, files=(), deletion_files=(), before_files=split.files, before_deletion_files=split.deletion_files
    )


def file_vectors(
    files: Iterable[DataFileMeta], vectors: tuple[DeletionFile | None, ...]
) -> list[tuple[DataFileMeta, DeletionFile | None]]:
    """Return each file with its deletion vector, or None."""
    files = tuple(files)
    return list(zip(files, vectors or (None,) * len(files), strict=True))


def _added_splits(before: Iterable[DataSplit], after: Iterable[DataSplit]) -> Iterator[DataSplit]:
    old = {(s.partition, s.bucket, f.file_name) for s in before for f in s.files}
    for split in after:
        pairs = file_vectors(split.files, split.deletion_files)
        pairs_left = [(f, d) for f, d in pairs if (split.partition, split.bucket, f.file_name) not in old]
        if pairs_left:
            yield evolve(split, files=[f for f, _ in pairs_left], deletion_files=_pack_vectors(pairs_left))


def _group_by_bucket(splits: Iterable[DataSplit]) -> dict[BucketKey, DataSplit]:
    """Return one split for each bucket, with all of its files."""
    whole: dict[BucketKey, DataSplit] = {}
    for split in splits:
        key = (split.partition, split.bucket)
        pairs = file_vectors(split.files, split.deletion_files)
        if key in whole:
            pairs = file_vectors(whole[key].files, whole[key].deletion_files) + pairs
        whole[key] = evolve(
            split, files=[f for f, _ in pairs], deletion_files=_pack_vectors(pairs), raw_convertible=False
        )
    return whole


def _difference_of_bucket(old: DataSplit | None, new: DataSplit | None) -> DataSplit | None:
    if old is None:
        return new
    if new is None:
        return evolve(
            old, files=(), deletion_files=(), before_files=old.files, before_deletion_files=old.deletion_files
        )
    if _list_contents(old) == _list_contents(new):
        return None
    return evolve(new, before_files=old.files, before_deletion_files=old.deletion_files)


def _list_contents(split: DataSplit) -> set[tuple[str, int, DeletionFile | None]]:
    return {(f.file_name, f.level, d) for f, d in file_vectors(split.files, split.deletion_files)}


def _pack_vectors(pairs: Iterable[tuple[DataFileMeta, DeletionFile | None]]) -> tuple[DeletionFile | None, ...]:
    vectors = tuple(d for _, d in pairs)
    return vectors if any(vectors) else ()
