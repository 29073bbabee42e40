"""Refuse a commit whose table is gone, and take its snapshot back if it was published already.

Invariant: a snapshot is taken back only while it is the newest one and no tag or branch has a copy of it. Otherwise it
stays, and the error names it. On storage without a commit lock, another commit can build on it during the deletion:
then it is put back, or that commit, which confirms its base, is published again without it.
"""

from __future__ import annotations

from enum import Enum

from paimon.domain.errors import CommitUncertain, PaimonError, TableDropped, TableReplaced
from paimon.domain.paths import MAIN_BRANCH
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.snapshot.snapshot_json import snapshot_to_json
from paimon.operations.commit.publish import delete_newest_snapshot, try_read_snapshot
from paimon.operations.metadata.snapshots import find_snapshot, list_branch_directories, tags, write_hint
from paimon.operations.metadata.table_identity import check_same_table, find_missing_table
from paimon.operations.table_context import TableContext

_TRIES = 5
_FIRST_WAIT_MILLIS = 5


class _Left(Enum):
    """What is left of a snapshot in the directory of the table."""

    NOTHING = "taken back"
    MOVED = "not found: dropped or renamed with its table"
    IN_USE = "still there"


def confirm_same_table(context: TableContext, snapshot: Snapshot) -> None:
    """Check that a published snapshot is in the table that was opened; otherwise take it back.

    Raise TableDropped or TableReplaced if it is not: the commit must not be acknowledged. Raise CommitUncertain if the
    storage does not show it.
    """
    reason = ""
    for attempt in range(_TRIES):
        if attempt:
            context.engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        try:
            check_same_table(context)
        except (TableDropped, TableReplaced) as missing:
            raise _withdraw(context, missing, snapshot.id, snapshot.identity) from None
        except PaimonError as error:
            reason = error.message
        else:
            return
    raise CommitUncertain(
        snapshot.commit_user,
        snapshot.commit_identifier,
        f"snapshot {snapshot.id} is published, but the first schema of the table cannot be read: {reason}",
        snapshot_id=snapshot.id,
        identity=snapshot.identity,
    )


def explain_failure(context: TableContext, error: PaimonError) -> PaimonError:
    """Return why an attempt failed: the error that says that the table is gone, or the error itself."""
    missing = None if isinstance(error, (TableDropped, TableReplaced)) else find_missing_table(context)
    if missing is None:
        return error
    if isinstance(error, CommitUncertain) and error.snapshot_id is not None:
        return _withdraw(context, missing, error.snapshot_id, error.identity)
    return missing


def _withdraw(
    context: TableContext, missing: TableDropped | TableReplaced, snapshot_id: int, identity: str | None
) -> TableDropped | TableReplaced:
    """Take a snapshot back if possible, and return the error that says what is left of it."""
    try:
        left = _take_back(context, snapshot_id, identity)
    except PaimonError:
        left = _Left.IN_USE
    if left is _Left.NOTHING:
        return missing
    return (TableDropped if left is _Left.MOVED else type(missing))(context.table.location, snapshot_id)


def _take_back(context: TableContext, snapshot_id: int, identity: str | None) -> _Left:
    with context.engine.snapshots.lock(context.paths):
        stored = try_read_snapshot(context, snapshot_id)
        if isinstance(stored, PaimonError):
            return _Left.IN_USE
        if stored is None or stored.identity != identity:
            return _Left.MOVED
        if _is_used(context, stored):
            return _Left.IN_USE
        before = find_snapshot(context, snapshot_id - 1) if snapshot_id > 1 else None
        delete_newest_snapshot(context, snapshot_id)
        if before is not None:
            write_hint(context, context.paths.latest_hint, before.id)
        if find_snapshot(context, snapshot_id + 1) is None:
            return _Left.NOTHING
        # Without a lock, another commit was built on it meanwhile; its history must not have a gap.
        context.files.put_if_absent(context.paths.snapshot(snapshot_id), snapshot_to_json(stored))
    return _Left.IN_USE


def _is_used(context: TableContext, snapshot: Snapshot) -> bool:
    """Return whether another commit was built on the snapshot, or a tag or another branch has a copy of it."""
    if find_snapshot(context, snapshot.id + 1) is not None:
        return True
    names = {MAIN_BRANCH, *list_branch_directories(context.engine, context.paths)} - {context.table.branch}
    copies = [tag.snapshot for tag in tags(context)]
    copies += [s for n in sorted(names) if (s := find_snapshot(context.at_branch(n), snapshot.id)) is not None]
    return any(copy.is_same(snapshot) for copy in copies)
