"""Check that the snapshot from which a change is computed still exists, and that no other commit changed its rows.

Invariant: the rule is `paimon.domain.commit.conflicts.read_snapshot`. Files that are missing because the snapshot
expired while it was read are a conflict, and not damage of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paimon.domain.commit.conflicts.read_snapshot import check_read_state
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import CorruptTable, SnapshotExpired, StorageError
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.table_context import TableContext


def check_read_snapshot(context: TableContext, latest: Snapshot | None, state: ReadState, commit_user: str) -> None:
    """Raise ReadConflict if another user changed rows since, or the snapshot is gone; see `check_read_state`."""
    check_read_state(
        state, _iterate_history(context, latest, max(1, state.snapshot_id)), commit_user, context.table.table_name
    )


def _iterate_history(
    context: TableContext, latest: Snapshot | None, first_id: int
) -> Iterator[tuple[int, Snapshot | None]]:
    """Yield the ids up to the newest snapshot with their snapshots; the newest one is not read again."""
    if latest is not None:
        yield from ((i, find_snapshot(context, i)) for i in range(first_id, latest.id))
        if latest.id >= first_id:
            yield latest.id, latest


@contextmanager
def check_unexpired(context: TableContext, snapshot: Snapshot | None, hint: str) -> Iterator[None]:
    """Raise SnapshotExpired if the block, which reads a snapshot, fails because that expired or was rolled back.

    `hint` states what the caller can do then. If the snapshot still exists, the error of the block is unchanged.
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
