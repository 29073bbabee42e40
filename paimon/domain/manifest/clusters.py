"""How the entries of a merged manifest are ordered and cut, so that its parts hold few partitions each.

Law: parts together hold the same entries, those of one partition in their order. Only what merging would take up again
anyway is cut: a part that is smaller than a full manifest must not make merges due that would not be due without it.
Source: ours; Java keeps entries in the order of commits, and reads them in any.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.manifest.manifest_stats import rank
from paimon.domain.manifest.merge_plan import MergeLimits
from paimon.domain.row.binary_row import deserialize
from paimon.domain.types.data_types import DataType

SMALLEST_PART_BYTES = 64 * 1024
"""Below this, opening one more manifest costs more than reading it saves."""
_PARTS_OF_COUNT = 3


def by_partition(entries: Sequence[ManifestEntry], types: Sequence[DataType]) -> list[ManifestEntry]:
    """The entries in the order of their partitions."""
    ranks = {p: _rank(p, types) for p in {entry.partition for entry in entries}}
    return sorted(entries, key=lambda entry: ranks[entry.partition])


def parts_wanted(size_bytes: int, limits: MergeLimits) -> int:
    """Into how many manifests to cut a minor merge of manifests of this size.

    Few enough that the next merge is not due soon; one where the merge fills a manifest, which then is left alone.
    """
    if size_bytes >= limits.target_size_bytes:
        return 1
    return max(1, min(size_bytes // SMALLEST_PART_BYTES, limits.min_count // _PARTS_OF_COUNT))


def cut(entries: Sequence[ManifestEntry], parts: int) -> list[Sequence[ManifestEntry]]:
    """The ordered entries in at most so many parts of about equal size, no partition in two of them."""
    size = -(-len(entries) // parts)
    found: list[Sequence[ManifestEntry]] = []
    start = 0
    for row in range(1, len(entries)):
        if row - start >= size and entries[row].partition != entries[row - 1].partition:
            found.append(entries[start:row])
            start = row
    return [*found, entries[start:]] if entries else []


def _rank(partition: bytes, types: Sequence[DataType]) -> tuple[tuple[bool, object], ...]:
    return tuple((value is not None, rank(value)) for value in deserialize(partition, types))
