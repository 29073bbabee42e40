"""Check whether a compaction dropped deletes that concurrently committed rows need.

A compaction to a level above 0 reads all of level 0 that its writer knows. Any other file on level 0 comes from another
writer. If its sequence numbers are not larger than those of the dropped deletes, rows that they hide would reappear.

Source: none. In Java, at most one writer of a table compacts.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import FileKind, ManifestEntry

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


def check_dropped_deletes(live: Iterable[ManifestEntry], change: Change) -> None:
    """Refuse a compaction that dropped deletes which files of other writers on level 0 can need.

    Parameters
    ----------
    live : iterable of ManifestEntry
        The live files of the base, at least those of the changed buckets.
    change : Change
        The compaction.

    Raises
    ------
    CommitConflict
        The error lists these files.
    """
    dropped_through = find_dropped_deletes(change)
    deleted = {e.identity for e in change.entries if e.kind is FileKind.DELETE}
    late = [
        e.file.file_name
        for e in live
        if e.file.level == 0
        and e.identity not in deleted
        and e.file.min_sequence_number <= dropped_through.get((e.partition, e.bucket), -1)
    ]
    if late:
        raise CommitConflict(
            "Concurrently committed files can contain rows whose deletes this compaction dropped", files=late
        )
