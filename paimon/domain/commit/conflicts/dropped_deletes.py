"""Check whether a compaction dropped deletes that concurrently committed rows need.

A compaction that drops deletes reads all files that its writer knows in the range of their keys. Any other file there
comes from another writer, which may have compacted it to a higher level already. If its sequence numbers are not larger
than those of the dropped deletes, rows that they hide would reappear.

Source: none. In Java, at most one writer of a table compacts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.manifest.entries import FileKind, ManifestEntry
from paimon.domain.types.data_types import DataType

_Bucket = tuple[bytes, int]


def find_dropped_deletes(change: Change) -> dict[_Bucket, int]:
    """Return the largest sequence number of a dropped delete, for each bucket whose compaction dropped deletes."""
    remaining_deletes: dict[_Bucket, int] = {}
    highest: dict[_Bucket, int] = {}
    for entry in change.entries:
        # Unknown for files of older writers: they can contain deletes.
        deletes = 1 if entry.file.delete_row_count is None else entry.file.delete_row_count
        bucket = entry.partition, entry.bucket
        is_deleted = entry.kind is FileKind.DELETE
        remaining_deletes[bucket] = remaining_deletes.get(bucket, 0) + (deletes if is_deleted else -deletes)
        if is_deleted and deletes:
            highest[bucket] = max(highest.get(bucket, 0), entry.file.max_sequence_number)
    return {bucket: number for bucket, number in highest.items() if remaining_deletes[bucket] > 0}


def check_dropped_deletes(live: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]) -> None:
    """Refuse a compaction that dropped deletes which files of other writers can need.

    `live` has at least the live files of the changed buckets.
    """
    dropped_through = find_dropped_deletes(change)
    removed = [e for e in change.entries if e.kind is FileKind.DELETE]
    deleted = {e.identity for e in removed}
    looked_up = set(change.looked_up)
    with_deletes: dict[_Bucket, list[KeyedFile]] = {}
    for entry in removed:
        if (entry.partition, entry.bucket) in dropped_through and entry.file.delete_row_count != 0:
            with_deletes.setdefault((entry.partition, entry.bucket), []).append(KeyedFile.of(entry.file, key_types))

    def is_late(entry: ManifestEntry) -> bool:
        """Return whether the compaction did not know a file whose rows a dropped delete can hide."""
        bucket = entry.partition, entry.bucket
        if entry.identity in deleted or entry.file.min_sequence_number > dropped_through.get(bucket, -1):
            return False
        if entry.file.level == 0:
            return True
        if bucket not in change.drops_deletes or (*bucket, entry.file.file_name) in looked_up:
            return False
        file = KeyedFile.of(entry.file, key_types)
        return any(file.overlaps(other) for other in with_deletes[bucket])

    late = [e.file.file_name for e in live if is_late(e)]
    if late:
        raise CommitConflict(
            "Concurrently committed files can contain rows whose deletes this compaction dropped", files=late
        )
