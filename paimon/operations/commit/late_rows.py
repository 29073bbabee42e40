"""Check on each base whether the rows of a write would lose against rows that others committed after its read.

Invariant: a commit that nobody preceded reads nothing. Otherwise only the snapshots since the read are read, or the
live files where one of these expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paimon.domain.commit.conflicts.late_rows import BucketKey, find_late_rows
from paimon.domain.commit.entries import Change, find_oldest
from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.request import CommitRequest
from paimon.operations.metadata.manifests import read_manifest, read_manifest_list
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.table_context import TableContext


class LateRowsFound(Exception):
    """Raised before a commit whose rows would lose; `first_numbers` are free sequence numbers of their buckets."""

    def __init__(self, first_numbers: Mapping[BucketKey, int]) -> None:
        super().__init__("written rows have sequence numbers of rows that others committed first")
        self.first_numbers = first_numbers


def check_late_rows(context: TableContext, base: CommitBase, request: CommitRequest, change: Change) -> None:
    """Raise LateRowsFound if the rows of an append would lose against rows that were committed before it."""
    if not request.renumbers or change.kind is not CommitKind.APPEND or base.snapshot is None:
        return
    read = find_oldest(m.numbered_after for m in request.messages)
    if read is None or read.is_state_of(base.snapshot):
        return
    written = {
        (m.partition, m.bucket): files for m in request.messages if (files := list_numbered_files(m.data.new_files))
    }
    added = _list_added_files(context, base, change, read.snapshot_id)
    found = find_late_rows(written, added, [f.type for f in context.schema.key_fields])
    if found:
        raise LateRowsFound(found)


def list_numbered_files(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    """Return the files of level 0, which a writer numbers."""
    return [file for file in files if file.level == 0]


def _list_added_files(context: TableContext, base: CommitBase, change: Change, read_id: int) -> Iterable[ManifestEntry]:
    """Return at least the files that were added since a snapshot, and are live in the base."""
    assert base.snapshot is not None
    numbers = range(read_id + 1, base.snapshot.id + 1)
    try:
        snapshots = [_find(context, base.snapshot, number) for number in numbers]
        metas = [m for s in snapshots if s is not None for m in read_manifest_list(context, s.delta_manifest_list)]
        added = [e for m in metas for e in read_manifest(context, m.file_name) if e.kind is FileKind.ADD]
    except CorruptTable:
        if all(_find(context, base.snapshot, number) for number in numbers):
            raise
        snapshots = [None]  # one of them expired during the read
    if None in snapshots or not snapshots:  # a rollback, too, leaves the live files
        return base.read_live_files(change.partitions.__contains__)
    return added


def _find(context: TableContext, latest: Snapshot, number: int) -> Snapshot | None:
    return latest if number == latest.id else find_snapshot(context, number)
