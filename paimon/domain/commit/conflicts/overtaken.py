"""Whether a compaction forgot deletes that rows of others, committed meanwhile, would need.

Law: a compaction to a level above 0 takes all of level 0 that its writer knows. A file that is there all the same came
from somebody else, and where its sequence numbers are not above those of the deletes that were left out, rows that
they hide would come back. No such rule in Java: there, one of several writers compacts at most.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import FileKind, ManifestEntry

_Bucket = tuple[bytes, int]


def forgotten_through(change: Change) -> dict[_Bucket, int]:
    """The largest sequence number that a delete can have which a compaction left out, for each bucket with such."""
    left: dict[_Bucket, int] = {}
    highest: dict[_Bucket, int] = {}
    for entry in change.entries:
        # Files of older writers do not tell: they may hold some.
        deletes = 1 if entry.file.delete_row_count is None else entry.file.delete_row_count
        bucket = entry.partition, entry.bucket
        taken = entry.kind is FileKind.DELETE
        left[bucket] = left.get(bucket, 0) + (deletes if taken else -deletes)
        if taken and deletes:
            highest[bucket] = max(highest.get(bucket, 0), entry.file.max_sequence_number)
    return {bucket: number for bucket, number in highest.items() if left[bucket] > 0}


def check_overtaken(live: Iterable[ManifestEntry], change: Change) -> None:
    """Refuse a compaction that left out deletes which files of others on level 0 may need.

    Raises
    ------
    CommitConflict
        Naming these files.
    """
    forgotten = forgotten_through(change)
    taken = {e.identity for e in change.entries if e.kind is FileKind.DELETE}
    late = [
        e.file.file_name
        for e in live
        if e.file.level == 0
        and e.identity not in taken
        and e.file.min_sequence_number <= forgotten.get((e.partition, e.bucket), -1)
    ]
    if late:
        raise CommitConflict("files committed meanwhile may hold rows whose deletes were compacted away", files=late)
