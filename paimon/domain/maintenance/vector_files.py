"""Select the index files of a bucket that are rewritten when deletion vectors change, and their content.

Invariant: Each existing deletion vector stays, unless its data file is replaced or its vector is new. Without buckets,
only the index files that contain a changed vector are rewritten.
Source: `BucketedDvMaintainer`, `AppendDeleteFileMaintainer`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import field, frozen

from paimon.domain.manifest.entries import DELETION_VECTORS, DeletionVectorRange, IndexManifestEntry


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
