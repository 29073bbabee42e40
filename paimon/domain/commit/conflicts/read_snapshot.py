"""Check that the snapshot from which a change was computed is still in the table, and that its rows did not change.

Invariant: only a commit that adds or removes rows refuses the change; compactions and statistics do not. A snapshot
that is not in the table cannot be checked, so it refuses the change, too. Two snapshots with one id have
different files: a rollback makes an id free for another commit.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.commit.message import ReadState
from paimon.domain.errors import ReadConflict
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot

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
