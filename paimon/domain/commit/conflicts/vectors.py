"""Check whether the deletion vectors of a change still fit the snapshot that it is committed on.

Invariant: A deletion vector refers to a live file and is derived from the current vectors. Replacing a file neither
loses nor restores rows that were deleted concurrently.
Source: `ConflictDetection.buildBaseEntriesWithDV`, which checks only tables without buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict, DeletionVectorConflict
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, IndexManifestEntry, ManifestEntry

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
