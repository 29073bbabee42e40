"""Whether a change's deletion vectors still fit the snapshot that it is to be built on.

Law: a vector speaks of a file that is live, and is made from the vectors that stood; a file that is replaced takes
no row with it that was deleted meanwhile, and brings none back. Source: `ConflictDetection.buildBaseEntriesWithDV`
(Java checks it for tables without buckets alone; here it holds for all).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, IndexManifestEntry, ManifestEntry

_Place = tuple[bytes, int, str]
"""Partition, bucket and name of a file."""


def check_vectors(
    base: Iterable[ManifestEntry], held: Sequence[IndexManifestEntry], change: Change, bucketed: bool
) -> None:
    """Refuse a change whose deletion vectors contradict the base.

    Parameters
    ----------
    base : iterable of ManifestEntry
        The live files, at least those that the change or its vectors name.
    held : sequence of IndexManifestEntry
        The live index files.
    bucketed : bool
        Whether each bucket has one index file, which holds all its vectors.

    Raises
    ------
    CommitConflict
        Naming the files.
    """
    standing = {_place(e): e for e in held if e.index_type == DELETION_VECTORS}
    replaced = _vectors(change, FileKind.DELETE)
    for entry in replaced:
        if standing.pop(_place(entry), None) is None:
            raise _changed(entry)
    added = _vectors(change, FileKind.ADD)
    if bucketed:
        others = {(e.partition, e.bucket): e for e in standing.values()}
        for entry in added:
            if (entry.partition, entry.bucket) in others:
                raise _changed(others[entry.partition, entry.bucket])
    live = {(e.partition, e.bucket, e.file.file_name) for e in base}
    after = _after(live, change)
    # Vectors carried over may speak of files that went without them: they do no harm.
    known = after | set(_marked(replaced))
    strays = [place[-1] for place in _marked(added) if place not in known]
    if strays:
        raise CommitConflict("files in which rows are to be deleted are no longer in the table", files=strays)
    gone = live - after
    marked = [place[-1] for place in _marked(standing.values()) if place in gone]
    if marked:
        raise CommitConflict("rows of files to be replaced were deleted meanwhile", files=marked)


def _vectors(change: Change, kind: FileKind) -> list[IndexManifestEntry]:
    return [e for e in change.index if e.kind is kind and e.index_type == DELETION_VECTORS]


def _after(live: set[_Place], change: Change) -> set[_Place]:
    """The names that are live after the change: an upgrade takes a file away and brings it back."""
    names = {kind: {(e.partition, e.bucket, e.file.file_name) for e in change.entries if e.kind is kind}
             for kind in FileKind}  # fmt: skip
    return (live - names[FileKind.DELETE]) | names[FileKind.ADD]


def _place(entry: IndexManifestEntry) -> _Place:
    return entry.partition, entry.bucket, entry.file_name


def _marked(entries: Iterable[IndexManifestEntry]) -> list[_Place]:
    """The data files whose vectors these index files hold."""
    return [(e.partition, e.bucket, r.data_file) for e in entries for r in e.deletion_vectors or ()]


def _changed(entry: IndexManifestEntry) -> CommitConflict:
    return CommitConflict(
        f"the deletion vectors of bucket {entry.bucket} were changed by another commit", files=[entry.file_name]
    )
