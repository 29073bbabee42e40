"""Check a change against the commits of other users since the snapshot that it depends on.

Source: `StrictModeChecker`, for strict mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import CommitConflict, ReadConflict
from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry, ManifestEntry
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.domain.types.data_types import DataType

# The snapshot from which a change was computed. Only a commit that adds or removes rows refuses the change; compactions
# and statistics do not. A snapshot that is not in the table cannot be checked, so it refuses the change, too. Two
# snapshots with one id have different files: a rollback makes an id free for another commit.
_CHANGING = (CommitKind.APPEND, CommitKind.OVERWRITE)
_HINT = "run the call again, so that it reads the newest snapshot"


def check_read_state(
    state: ReadState, history: Iterable[tuple[int, Snapshot | None]], commit_user: str, table_name: str
) -> None:
    """Raise ReadConflict if another user changed rows since the read, or if the snapshot that was read is gone.

    `history` has all ids from that snapshot (from 1 for an empty table) to the newest one, ascending; None marks a
    missing snapshot. Snapshots of `commit_user` are part of the change.
    """
    is_there = not state.snapshot_id
    for snapshot_id, snapshot in history:
        if state.snapshot_id and snapshot_id == state.snapshot_id:
            is_there = snapshot is not None and state.is_state_of(snapshot)
            if not is_there:
                break
        elif snapshot is None or (snapshot.commit_kind in _CHANGING and snapshot.commit_user != commit_user):
            since = f"snapshot {state.snapshot_id}" if state.snapshot_id else "the read of the empty table"
            raise ReadConflict(
                f"Table {table_name!r}: snapshot {snapshot_id} changed rows after {since}, from which this change was "
                "computed.",
                hint=_HINT,
            )
    if not is_there:
        raise ReadConflict(
            f"Table {table_name!r}: snapshot {state.snapshot_id}, from which this change was computed, expired or was "
            "rolled back.",
            hint=_HINT,
        )


# Strict mode: no other user may touch the same partitions after the last safe snapshot. Another user's COMPACT or
# OVERWRITE of a partition refuses a change of this partition. This includes commits that change only deletion vectors.
# Another user's APPEND refuses an OVERWRITE, unless all its rows are postponed. An expired snapshot cannot be checked,
# so it refuses the change.
OPTION = "commit.strict-mode.last-safe-snapshot"
_REPLACING = (CommitKind.COMPACT, CommitKind.OVERWRITE)


def can_strict_mode_refuse(snapshot: Snapshot, change: Change, commit_user: str) -> bool:
    """Return whether a snapshot after the safe one can refuse the change, so that its delta must be read."""
    if snapshot.commit_user == commit_user or not change.partitions:
        return False
    appended_under = snapshot.commit_kind is CommitKind.APPEND and change.kind is CommitKind.OVERWRITE
    return snapshot.commit_kind in _REPLACING or appended_under


def check_strict(
    snapshot: Snapshot, touched: Iterable[ManifestEntry], marked: Iterable[IndexManifestEntry], change: Change
) -> None:
    """Apply strict mode to another user's snapshot: the delta `touched`, and `marked` index files."""
    appended = snapshot.commit_kind is CommitKind.APPEND
    files = [e.file.file_name for e in touched if e.partition in change.partitions and (e.bucket >= 0 or not appended)]
    if not appended:
        files += [e.file_name for e in marked if e.partition in change.partitions]
    if files:
        raise _changed_partitions_error(snapshot, files)


def _changed_partitions_error(snapshot: Snapshot, files: Sequence[str]) -> CommitConflict:
    return CommitConflict(
        f"Snapshot {snapshot.id} ({snapshot.commit_kind.value}) of user {snapshot.commit_user!r} changed the same "
        f"partitions since the last safe snapshot",
        files=files,
        hint=f"read the newest snapshot, recompute, and commit with {OPTION} = {snapshot.id} or later",
    )


def make_expired_snapshot_error(snapshot_id: int) -> CommitConflict:
    """Return the error for a snapshot after the safe one that has expired."""
    return CommitConflict(
        f"Snapshot {snapshot_id} has expired, so its changes since the last safe snapshot are unknown",
        hint=f"read the newest snapshot, recompute, and set {OPTION} to it",
    )


# Late rows. A writer numbers its rows after the rows of the snapshot that it read. If others commit to the bucket
# before it, their rows may have the same or larger numbers, and the merge takes them for the newer ones although they
# are older commits. In Java the order of numbers decides, whatever the order of commits is.
#
#     snapshot 5    the largest number is 10    writer A reads it, and gives its row of key 1 the number 11
#     snapshot 6    key 1 has the number 12     committed by B
#     snapshot 7    key 1 has the number 11     committed by A: reads show the row of B, because 12 is larger
#
# So A renumbers its rows, here from 13 on, before it commits. The same number as that of B would be late, too.
# Only files with a common range of keys count, so numbers of different keys may be equal.
BucketKey = tuple[bytes, int]
"""A partition and a bucket."""


class LateRowsFound(Exception):
    """Raised before a commit whose rows would lose; `first_numbers` are free sequence numbers of their buckets."""

    def __init__(self, first_numbers: Mapping[BucketKey, int]) -> None:
        super().__init__("written rows have sequence numbers of rows that others committed first")
        self.first_numbers = first_numbers


def list_numbered_files(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    """Return the files of level 0, which a writer numbers."""
    return [file for file in files if file.level == 0]


def find_late_rows(
    written: Mapping[BucketKey, Sequence[DataFileMeta]],
    added: Iterable[ManifestEntry],
    key_types: Sequence[DataType],
) -> dict[BucketKey, int]:
    """Return the buckets whose written rows lose against files that others `added`, each with the first free number."""
    late: set[BucketKey] = set()
    largest: dict[BucketKey, int] = {}
    own = {
        key: [(file.min_sequence_number, KeyedFile.of(file, key_types)) for file in files]
        for key, files in written.items()
    }
    for entry in added:
        key = entry.partition, entry.bucket
        if key not in own:
            continue
        number, other = entry.file.max_sequence_number, KeyedFile.of(entry.file, key_types)
        largest[key] = max(largest.get(key, 0), number)
        if any(number >= first and file.overlaps(other) for first, file in own[key]):
            late.add(key)
    return {key: max(largest[key], *(f.max_sequence_number for f in written[key])) + 1 for key in late}
