"""The complete list of live index files after a change.

Law: an index manifest holds only live files. Vectors of append tables without buckets, and global indexes, cancel by
file name and refuse what does not fit; all others are one file a (partition, bucket, type), the newer replacing the
older. Source: `IndexManifestFileHandler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, IndexManifestEntry


def live_index_files(
    live: Sequence[IndexManifestEntry], changes: Sequence[IndexManifestEntry], bucketed: bool
) -> tuple[IndexManifestEntry, ...]:
    """The entries that hold after `changes`.

    Parameters
    ----------
    live, changes : sequence of IndexManifestEntry
        What the base holds; what is added and deleted.
    bucketed : bool
        False for append tables whose rows have no bucket.

    Raises
    ------
    CommitConflict
        An index file is added twice, is gone already, or a data file would get two vectors.
    """
    by_name = [e for e in live if _by_name(e, bucketed)]
    by_bucket = [e for e in live if not _by_name(e, bucketed)]
    named = _combine_by_name(by_name, [e for e in changes if _by_name(e, bucketed)])
    return (*_combine_by_bucket(by_bucket, [e for e in changes if not _by_name(e, bucketed)]), *named)


def _by_name(entry: IndexManifestEntry, bucketed: bool) -> bool:
    return entry.global_index is not None or (entry.index_type == DELETION_VECTORS and not bucketed)


def _combine_by_bucket(
    live: Iterable[IndexManifestEntry], changes: Sequence[IndexManifestEntry]
) -> Iterable[IndexManifestEntry]:
    kept = {(e.partition, e.bucket, e.index_type): e for e in live}
    for entry in changes:
        if entry.kind is FileKind.DELETE:
            kept.pop((entry.partition, entry.bucket, entry.index_type), None)
    kept |= {(e.partition, e.bucket, e.index_type): e for e in changes if e.kind is FileKind.ADD}
    return kept.values()


def _combine_by_name(
    live: Iterable[IndexManifestEntry], changes: Sequence[IndexManifestEntry]
) -> Iterable[IndexManifestEntry]:
    kept = {e.file_name: e for e in live}
    for entry in changes:
        if entry.kind is FileKind.DELETE and kept.pop(entry.file_name, None) is None:
            raise CommitConflict("an index file to be replaced is no longer in the table", files=[entry.file_name])
    for entry in changes:
        if entry.kind is FileKind.ADD and kept.setdefault(entry.file_name, entry) is not entry:
            raise CommitConflict("an index file to be added is in the table already", files=[entry.file_name])
    _check_one_vector(kept.values())
    return kept.values()


def _check_one_vector(entries: Iterable[IndexManifestEntry]) -> None:
    seen: set[tuple[bytes, int, str]] = set()
    for entry in entries:
        for vector in entry.deletion_vectors or ():
            key = (entry.partition, entry.bucket, vector.data_file)
            if key in seen:
                raise CommitConflict("a data file would have two deletion vectors", files=[vector.data_file])
            seen.add(key)
