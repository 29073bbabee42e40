"""Check that the snapshot from which a change is computed still exists, and that no other commit changed its rows.

Invariant: only a commit that adds or removes rows refuses the change; compactions and statistics do not. A snapshot
that expired cannot be checked, so it refuses the change, too. Files that are missing because the snapshot expired while
it was read are a conflict, and not damage of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paimon.domain.errors import CommitConflict, CorruptTable, SnapshotExpired, StorageError
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.table_context import TableContext

_CHANGING = (CommitKind.APPEND, CommitKind.OVERWRITE)


def check_read_snapshot(context: TableContext, latest: Snapshot | None, read_snapshot: int, commit_user: str) -> None:
    """Check the snapshots after the one that was read.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    latest : Snapshot, optional
        The newest snapshot; None for a table without snapshots.
    read_snapshot : int
        The id of the snapshot that was read; 0 for a table that had none.
    commit_user : str
        The user of the commit; its own snapshots are part of the change.

    Raises
    ------
    CommitConflict
        Another user changed rows, or the history was rewritten.
    """
    newest_id = 0 if latest is None else latest.id
    if newest_id < read_snapshot:
        raise CommitConflict(f"Snapshot {read_snapshot}, from which rows were computed, was rolled back.")
    for snapshot_id in range(read_snapshot + 1, newest_id + 1):
        is_latest = latest is not None and snapshot_id == latest.id
        snapshot = latest if is_latest else find_snapshot(context, snapshot_id)
        if snapshot is None or (snapshot.commit_kind in _CHANGING and snapshot.commit_user != commit_user):
            raise CommitConflict(
                f"Table {context.table.table_name!r}: snapshot {snapshot_id} changed rows after snapshot "
                f"{read_snapshot}, from which this change was computed.",
                hint="run the call again, so that it reads the newest snapshot",
            )


@contextmanager
def check_unexpired(context: TableContext, snapshot: Snapshot | None, hint: str) -> Iterator[None]:
    """Report files that the block does not find as a conflict if their snapshot is no longer in the table.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    snapshot : Snapshot, optional
        The snapshot that the block reads; None for a table without snapshots.
    hint : str
        What the caller can do then.

    Yields
    ------
    None
        Control to the block that reads.

    Raises
    ------
    SnapshotExpired
        The block failed, and the snapshot expired or was rolled back.
    """
    try:
        yield
    except (CorruptTable, StorageError) as error:
        found = None if snapshot is None else find_snapshot(context, snapshot.id)
        if snapshot is None or (found is not None and found.is_same(snapshot)):
            raise
        raise SnapshotExpired(
            f"Snapshot {snapshot.id} of table {context.table.table_name!r} expired, or was rolled back, while it was "
            "read",
            hint=f"{hint}; raise 'snapshot.time-retained' if this occurs often",
        ) from error
