"""Check that the snapshot from which a change was computed is still in the table, and that its rows did not change.

Invariant: only a commit that adds or removes rows refuses the change; compactions and statistics do not. A snapshot
that is not in the table cannot be checked, so it refuses the change, too. Two snapshots with one id have
different files: a rollback makes an id free for another commit.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from paimon.domain.errors import ReadConflict
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot

_CHANGING = (CommitKind.APPEND, CommitKind.OVERWRITE)
_HINT = "run the call again, so that it reads the newest snapshot"


@frozen(hash=False)
class ReadState:
    """The state of a table from which a change was computed.

    Parameters
    ----------
    snapshot : Snapshot, optional
        The snapshot that was read; None for a table without snapshots.
    """

    snapshot: Snapshot | None

    @property
    def first_id(self) -> int:
        """The id of the first snapshot that decides whether rows changed."""
        return 1 if self.snapshot is None else self.snapshot.id


def check_read_state(
    state: ReadState, history: Iterable[tuple[int, Snapshot | None]], commit_user: str, table_name: str
) -> None:
    """Check the snapshots from the one that was read.

    Parameters
    ----------
    state : ReadState
        What was read.
    history : iterable of (int, Snapshot or None)
        The ids from `ReadState.first_id` to the newest one, ascending, each with its snapshot; None if there is none.
    commit_user : str
        The user of the commit; its own snapshots are part of the change.
    table_name : str
        The table, for errors.

    Raises
    ------
    ReadConflict
        Another user changed rows, or the snapshot that was read is no longer in the table.
    """
    read, is_there = state.snapshot, state.snapshot is None
    for snapshot_id, snapshot in history:
        if read is not None and snapshot_id == read.id:
            is_there = snapshot is not None and snapshot.is_same(read)
            if not is_there:
                break
        elif snapshot is None or (snapshot.commit_kind in _CHANGING and snapshot.commit_user != commit_user):
            since = "the read of the empty table" if read is None else f"snapshot {read.id}"
            raise ReadConflict(
                f"Table {table_name!r}: snapshot {snapshot_id} changed rows after {since}, from which this change was "
                "computed.",
                hint=_HINT,
            )
    if read is not None and not is_there:
        raise ReadConflict(
            f"Table {table_name!r}: snapshot {read.id}, from which this change was computed, expired or was rolled "
            "back.",
            hint=_HINT,
        )
