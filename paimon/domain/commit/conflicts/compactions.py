"""Check whether a compaction still fits the files of other writers, which it did not know.

Source: none. In Java, at most one writer of a table compacts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.lsm.compaction.level_order import find_out_of_order
from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.types.data_types import DataType

_Bucket = tuple[bytes, int]


# A compaction that drops deletes reads all files that its writer knows in the range of their keys. Any other file there
# comes from another writer. If its sequence numbers are not larger than those of the dropped deletes, rows that they
# hide would reappear:
#
#     A compacts files a and b to the top level, and drops -D of key 1, number 7
#     B commits file c with key 1, number 5           +I of key 1 in c reappears once A is committed: refused
#
# `find_dropped_deletes` compares the counts of deletes in the files before and after. If some are missing, a late file
# of level 0 is refused whatever its keys are. A file that another compaction moved to a higher level is refused if the
# message reports dropped deletes, and the file was not looked up and overlaps a file with deletes.
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
    """Refuse a compaction that dropped deletes which others' files, all in `live`, can need."""
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


# A lookup takes the record of the smallest level, because in the tree of one writer a smaller level holds newer
# records. The compactions of two writers, each of which does not know the files of the other, can put older records
# below newer ones. Then a lookup finds the older record.
def check_level_order(live: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]) -> None:
    """Refuse a compaction that puts older records of keys below newer ones among `live`."""
    named = {e.identity for e in change.entries}
    added = _group_by_bucket(e for e in change.entries if e.kind is FileKind.ADD and e.file.level > 0)
    others = _group_by_bucket(e for e in live if e.file.level > 0 and e.identity not in named)
    wrong = [f for bucket, files in added.items() for f in find_out_of_order(files, others.get(bucket, ()), key_types)]
    if wrong:
        raise CommitConflict(
            "A concurrent compaction and this one put newer records on a higher level than older records of the "
            "same keys",
            files=[f.file_name for f in wrong],
            hint="retry the compaction, which then reads the files of the other one",
        )


def _group_by_bucket(entries: Iterable[ManifestEntry]) -> dict[tuple[bytes, int], list[DataFileMeta]]:
    files: dict[tuple[bytes, int], list[DataFileMeta]] = {}
    for entry in entries:
        files.setdefault((entry.partition, entry.bucket), []).append(entry.file)
    return files
