"""Compute the index files that a change rewrites, and the complete list of live ones after it.

Deletion vectors of append tables without buckets, and global indexes, are matched by file name, and a mismatch is
refused. All others have one file for each partition, bucket and type, and a newer file replaces the older one.

Invariant: An index manifest contains only live files. Each existing deletion vector stays, unless its data file is
replaced or its vector is new. Without buckets, only the index files that contain a changed vector are rewritten.
Source: `IndexManifestFileHandler`, `BucketedDvMaintainer`, `AppendDeleteFileMaintainer`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import field, frozen

from paimon.domain.errors import CommitConflict, DeletionVectorConflict
from paimon.domain.manifest.entries import DELETION_VECTORS, DeletionVectorRange, FileKind, IndexManifestEntry


def live_index_files(
    live: Sequence[IndexManifestEntry], changes: Sequence[IndexManifestEntry], bucketed: bool
) -> tuple[IndexManifestEntry, ...]:
    """Return the live index files after a change; `bucketed` is false for append tables without buckets.

    Raise CommitConflict if an index file is added twice, a deleted one is not live, or a data file would have two
    deletion vectors.
    """
    by_name = [e for e in live if _is_matched_by_name(e, bucketed)]
    by_bucket = [e for e in live if not _is_matched_by_name(e, bucketed)]
    named = _combine_by_name(by_name, [e for e in changes if _is_matched_by_name(e, bucketed)])
    return (*_combine_by_bucket(by_bucket, [e for e in changes if not _is_matched_by_name(e, bucketed)]), *named)


def _is_matched_by_name(entry: IndexManifestEntry, bucketed: bool) -> bool:
    return entry.global_index is not None or (entry.index_type == DELETION_VECTORS and not bucketed)


def _combine_by_bucket(
    live: Iterable[IndexManifestEntry], changes: Sequence[IndexManifestEntry]
) -> Iterable[IndexManifestEntry]:
    entries_left = {(e.partition, e.bucket, e.index_type): e for e in live}
    for entry in changes:
        if entry.kind is FileKind.DELETE:
            entries_left.pop((entry.partition, entry.bucket, entry.index_type), None)
    entries_left |= {(e.partition, e.bucket, e.index_type): e for e in changes if e.kind is FileKind.ADD}
    return entries_left.values()


def _combine_by_name(
    live: Iterable[IndexManifestEntry], changes: Sequence[IndexManifestEntry]
) -> Iterable[IndexManifestEntry]:
    entries_left = {e.file_name: e for e in live}
    for entry in changes:
        if entry.kind is FileKind.DELETE and entries_left.pop(entry.file_name, None) is None:
            raise CommitConflict(
                f"Index file {entry.file_name!r}, which this commit replaces, is no longer in the table",
                files=[entry.file_name],
            )
    for entry in changes:
        if entry.kind is FileKind.ADD and entries_left.setdefault(entry.file_name, entry) is not entry:
            raise CommitConflict(
                f"Index file {entry.file_name!r}, which this commit adds, is already in the table",
                files=[entry.file_name],
            )
    _check_one_vector(entries_left.values())
    return entries_left.values()


def _check_one_vector(entries: Iterable[IndexManifestEntry]) -> None:
    seen: set[tuple[bytes, int, str]] = set()
    for entry in entries:
        for vector in entry.deletion_vectors or ():
            key = (entry.partition, entry.bucket, vector.data_file)
            if key in seen:
                raise DeletionVectorConflict("A data file would have two deletion vectors", files=[vector.data_file])
            seen.add(key)


def _to_ranges(values: Iterable[DeletionVectorRange]) -> tuple[DeletionVectorRange, ...]:
    return tuple(values)


@frozen
class IndexFileRewrite:
    """An index file to delete, and the vectors in it that are written again."""

    entry: IndexManifestEntry
    kept: tuple[DeletionVectorRange, ...] = field(converter=_to_ranges)


def plan_rewrites(
    index_files: Sequence[IndexManifestEntry], changed: Collection[str], bucketed: bool
) -> tuple[IndexFileRewrite, ...]:
    """Return which index files of a bucket to rewrite, in order, each with the vectors that stay.

    `changed` data files get a new vector or lose theirs. If `bucketed`, one index file has all vectors of the bucket.
    """
    found: list[IndexFileRewrite] = []
    for entry in index_files:
        ranges = entry.deletion_vectors or ()
        if bucketed or any(r.data_file in changed for r in ranges):
            found.append(IndexFileRewrite(entry, [r for r in ranges if r.data_file not in changed]))
    return tuple(found)


def vector_entries(
    entries: Iterable[IndexManifestEntry],
) -> dict[tuple[bytes, int], tuple[IndexManifestEntry, ...]]:
    """Return the index files with deletion vectors by serialized partition and bucket."""
    found: dict[tuple[bytes, int], tuple[IndexManifestEntry, ...]] = {}
    for entry in entries:
        if entry.index_type == DELETION_VECTORS:
            key = (entry.partition, entry.bucket)
            found[key] = (*found.get(key, ()), entry)
    return found
