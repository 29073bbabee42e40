"""Rules that the live files of a state keep among each other.

Law: above level 0 the files of one level do not overlap; keys and sequence numbers are in order; all files of a
partition agree on the number of buckets. Source: `Levels`, `ManifestEntry`, `FileStoreCommitImpl.checkNoConflicts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from paimon.domain.lsm.keys import comparable
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.types.data_types import DataType

Address = tuple[bytes, int]


def file_faults(file: DataFileMeta, key_types: Sequence[DataType]) -> Iterator[str]:
    """What the metadata of one file say that cannot be; `key_types` are empty where the table has no key."""
    if file.min_sequence_number > file.max_sequence_number:
        yield f"its lowest sequence number {file.min_sequence_number} is above {file.max_sequence_number}, its highest"
    if file.delete_row_count is not None and file.delete_row_count > file.row_count:
        yield f"counts {file.delete_row_count} deletes in {file.row_count} rows"
    if key_types and comparable(file.min_key, key_types) > comparable(file.max_key, key_types):
        yield "its smallest key is above its largest"


def overlaps(
    files: Iterable[DataFileMeta], key_types: Sequence[DataType]
) -> Iterator[tuple[DataFileMeta, DataFileMeta]]:
    """Neighbours of one level of one bucket that overlap."""
    above = sorted((f for f in files if f.level > 0), key=lambda f: f.level)
    for _, level in groupby(above, key=lambda f: f.level):
        placed = sorted(((comparable(f.min_key, key_types), comparable(f.max_key, key_types), f) for f in level),
                        key=lambda place: place[:2])  # fmt: skip
        for (_, end, first), (start, _, second) in pairwise(placed):
            if start <= end:
                yield first, second


def bucket_counts(entries: Iterable[ManifestEntry]) -> dict[bytes, set[int]]:
    """By partition, the numbers of buckets that its files say, where they say several."""
    said: dict[bytes, set[int]] = {}
    for entry in entries:
        if entry.bucket >= 0:
            said.setdefault(entry.partition, set()).add(entry.total_buckets)
    return {partition: counts for partition, counts in said.items() if len(counts) > 1}


def by_address(entries: Iterable[ManifestEntry]) -> dict[Address, list[DataFileMeta]]:
    """The files of each bucket."""
    found: dict[Address, list[DataFileMeta]] = {}
    for entry in entries:
        found.setdefault((entry.partition, entry.bucket), []).append(entry.file)
    return found
