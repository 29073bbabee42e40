"""Which index files of a bucket are written anew when deletion vectors change, and what goes into them.

Law: every vector that stood stands afterwards, unless its file is replaced or its vector is new; without buckets, only
the index files that hold a vector that changes are written anew. Source: `BucketedDvMaintainer`,
`AppendDeleteFileMaintainer`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import field, frozen

from paimon.domain.manifest.entries import DELETION_VECTORS, DeletionVectorRange, IndexManifestEntry


def _ranges(values: Iterable[DeletionVectorRange]) -> tuple[DeletionVectorRange, ...]:
    return tuple(values)


@frozen
class Rewrite:
    """One index file that goes, and the vectors of it that are written again."""

    entry: IndexManifestEntry
    kept: tuple[DeletionVectorRange, ...] = field(converter=_ranges)


def rewrites(held: Sequence[IndexManifestEntry], changed: Collection[str], bucketed: bool) -> tuple[Rewrite, ...]:
    """The index files that go.

    Parameters
    ----------
    held : sequence of IndexManifestEntry
        The index files of the bucket.
    changed : collection of str
        Data files that get another vector, or lose theirs.
    bucketed : bool
        Whether the bucket has one index file for all its vectors.
    """
    found: list[Rewrite] = []
    for entry in held:
        ranges = entry.deletion_vectors or ()
        if bucketed or any(r.data_file in changed for r in ranges):
            found.append(Rewrite(entry, [r for r in ranges if r.data_file not in changed]))
    return tuple(found)


def vector_entries(
    entries: Iterable[IndexManifestEntry],
) -> dict[tuple[bytes, int], tuple[IndexManifestEntry, ...]]:
    """The index files among these that hold deletion vectors, by partition and bucket."""
    found: dict[tuple[bytes, int], tuple[IndexManifestEntry, ...]] = {}
    for entry in entries:
        if entry.index_type == DELETION_VECTORS:
            key = (entry.partition, entry.bucket)
            found[key] = (*found.get(key, ()), entry)
    return found
