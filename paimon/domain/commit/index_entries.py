"""Compute the complete list of live index files after a change.

Deletion vectors of append tables without buckets, and global indexes, are matched by file name, and a mismatch is
refused. All others have one file for each partition, bucket and type, and a newer file replaces the older one.

Invariant: An index manifest contains only live files.
Source: `IndexManifestFileHandler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.errors import CommitConflict, DeletionVectorConflict
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, IndexManifestEntry


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
