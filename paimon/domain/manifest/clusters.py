"""Order and split the entries of a merged manifest, so that each part contains few partitions.

Invariant: The parts together contain the same entries, and the entries of one partition keep their order. Only entries
that the next merge would read again are split into small manifests, so splitting never makes a merge due earlier.
Source: none. Java keeps entries in commit order, and reads them in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.manifest.manifest_stats import to_java_sort_key
from paimon.domain.manifest.merge_plan import MergeLimits
from paimon.domain.row.binary_row import deserialize
from paimon.domain.types.data_types import DataType

SMALLEST_PART_BYTES = 64 * 1024
"""For smaller parts, opening another manifest costs more than pruning saves."""
_PARTS_OF_COUNT = 3


def sort_by_partition(entries: Sequence[ManifestEntry], types: Sequence[DataType]) -> list[ManifestEntry]:
    """Return the entries sorted by partition; the entries of one partition keep their order."""
    ranks = {p: _to_sort_key(p, types) for p in {entry.partition for entry in entries}}
    return sorted(entries, key=lambda entry: ranks[entry.partition])


def count_parts(size_bytes: int, limits: MergeLimits) -> int:
    """Return the number of manifests into which a minor merge is split.

    The number is small enough that the next merge is not due soon. It is 1 if the merge fills a manifest, which is not
    merged again.
    """
    if size_bytes >= limits.target_size_bytes:
        return 1
    return max(1, min(size_bytes // SMALLEST_PART_BYTES, limits.min_count // _PARTS_OF_COUNT))


def split_entries(entries: Sequence[ManifestEntry], parts: int) -> list[Sequence[ManifestEntry]]:
    """Split sorted entries into at most `parts` parts of about equal size, without splitting a partition."""
    size = -(-len(entries) // parts)
    found: list[Sequence[ManifestEntry]] = []
    start = 0
    for row in range(1, len(entries)):
        if row - start >= size and entries[row].partition != entries[row - 1].partition:
            found.append(entries[start:row])
            start = row
    return [*found, entries[start:]] if entries else []


def _to_sort_key(partition: bytes, types: Sequence[DataType]) -> tuple[tuple[bool, object], ...]:
    return tuple((value is not None, to_java_sort_key(value)) for value in deserialize(partition, types))
