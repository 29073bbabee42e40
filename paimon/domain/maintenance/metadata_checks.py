"""Check the metadata of live files against each other, and the bounds of a manifest against its entries.

Invariant: Above level 0, the files of one level have disjoint keys. Keys and sequence numbers are in order. All files
of a partition have the same number of buckets. Scan planning prunes manifests by their bounds, so a bound that
excludes an entry loses rows; one that is too wide or unknown is not a fault.
Source: `Levels`, `ManifestEntry`, `FileStoreCommitImpl.checkNoConflicts`, `ManifestFileMeta`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from paimon.domain.lsm.keys import to_comparable_key
from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Integers
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.types.data_types import DataType

Address = tuple[bytes, int]


def file_faults(file: DataFileMeta, key_types: Sequence[DataType]) -> Iterator[str]:
    """Yield the contradictions in the metadata of one file; `key_types` is empty for a table without a primary key."""
    if file.min_sequence_number > file.max_sequence_number:
        yield f"the smallest sequence number {file.min_sequence_number} is above the largest {file.max_sequence_number}"
    if file.delete_row_count is not None and file.delete_row_count > file.row_count:
        yield f"the metadata records {file.delete_row_count} deletes in {file.row_count} rows"
    if key_types and to_comparable_key(file.min_key, key_types) > to_comparable_key(file.max_key, key_types):
        yield "the smallest key is above the largest"


def find_overlaps(
    files: Iterable[DataFileMeta], key_types: Sequence[DataType]
) -> Iterator[tuple[DataFileMeta, DataFileMeta]]:
    """Yield each pair of adjacent files on one level of a bucket whose key ranges overlap."""
    above = sorted((f for f in files if f.level > 0), key=lambda f: f.level)
    for _, level in groupby(above, key=lambda f: f.level):
        keyed = sorted((KeyedFile.of(f, key_types) for f in level), key=lambda file: (file.low, file.high))
        for first, second in pairwise(keyed):
            if second.low <= first.high:
                yield first.file, second.file


def bucket_counts(entries: Iterable[ManifestEntry]) -> dict[bytes, set[int]]:
    """Return the numbers of buckets for each serialized partition whose files contain several."""
    counts_by_partition: dict[bytes, set[int]] = {}
    for entry in entries:
        if entry.bucket >= 0:
            counts_by_partition.setdefault(entry.partition, set()).add(entry.total_buckets)
    return {partition: counts for partition, counts in counts_by_partition.items() if len(counts) > 1}


def group_by_bucket(entries: Iterable[ManifestEntry]) -> dict[Address, list[DataFileMeta]]:
    """Group the files by serialized partition and bucket."""
    found: dict[Address, list[DataFileMeta]] = {}
    for entry in entries:
        found.setdefault((entry.partition, entry.bucket), []).append(entry.file)
    return found


def find_bounds_faults(
    recorded: ManifestFileMeta, entries: EntryColumns, partition_types: Sequence[DataType]
) -> Iterator[str]:
    """Yield a text for each wrong bound that the manifest list records for a manifest (`recorded`)."""
    if not len(entries):
        return
    yield from _find_number_faults("buckets", entries.buckets, recorded.min_bucket, recorded.max_bucket)
    yield from _find_number_faults("levels", entries.number("_LEVEL"), recorded.min_level, recorded.max_level)
    rows = (deserialize(row, partition_types) for row in entries.partition_rows) if partition_types else ()
    outside = sum(not may_hold_partition(recorded, row, partition_types) for row in rows)
    if outside:
        yield f"contains {outside} partitions outside the bounds in the manifest list"


def _find_number_faults(name: str, values: Integers, low: int | None, high: int | None) -> Iterator[str]:
    first, last = int(values.min()), int(values.max())
    if (low is not None and first < low) or (high is not None and last > high):
        yield f"contains {name} {first} to {last}, but the manifest list records {low} to {high}"
