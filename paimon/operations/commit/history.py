"""Find the commits of a user in the snapshots of a table.

Invariant: the identifiers of one user ascend, so all up to that of the newest snapshot of the user are committed. Batch
commits have the largest identifier, which says nothing about other commits. Snapshots are read from the newest to the
first one of the user; if there is none, the record that expiry keeps is read. A detached snapshot was never committed.

Source: `FileStoreCommitImpl.filterCommitted`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paimon.domain.commit.stream_batches import check_same_plan
from paimon.domain.errors import InvalidRequest
from paimon.domain.json_text import LONG_MIN
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.commit.lineage import is_detached
from paimon.operations.commit.recorded_commits import find_recorded_commit
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.metadata.table_identity import check_same_table
from paimon.operations.table_context import TableContext


def is_committed(context: TableContext, commit_user: str, commit_identifier: int) -> bool:
    """Return whether the commit is in the table, as far as its snapshots and the records of expiry reach back.

    It is if the newest identifier of the user is equal or larger; batch commits are ignored.
    """
    if _find_newest_from(context, commit_user, commit_identifier) is None:
        return False
    check_same_table(context)
    return True


def is_already_committed(
    context: TableContext, commit_user: str, commit_identifier: int, properties: Mapping[str, str]
) -> bool:
    """Return whether a job that is about to commit has made this commit before.

    Raises InvalidRequest if the user left out the identifier, or if it is that of a batch with another plan.
    """
    newest = _find_newest_from(context, commit_user, commit_identifier)
    if newest is None:
        return False
    check_same_table(context)
    committed = [*find_snapshots_of_commit(context, commit_user, commit_identifier), newest][0]
    if committed.commit_identifier == commit_identifier:
        check_same_plan(context.table.table_name, committed, properties)
        return True
    raise InvalidRequest(
        f"Commit identifier {commit_identifier} of user {commit_user!r} must be larger than {newest.commit_identifier}",
        subject="identifier",
        hint="use a larger one, or another commit user",
    )


def find_snapshots_of_commit(context: TableContext, commit_user: str, commit_identifier: int) -> list[Snapshot]:
    """Return the snapshots of a commit, without detached ones: the compaction, if any, before the written files."""
    candidates = (s for s in iterate_user_snapshots(context, commit_user) if s.commit_identifier == commit_identifier)
    return [s for s in candidates if not is_detached(context, s)]


def find_last_commit(context: TableContext, commit_user: str) -> Snapshot | None:
    """Return the newest snapshot of the user, without batch commits; if all expired, the recorded one."""
    return _find_newest_from(context, commit_user, LONG_MIN)


def _find_newest_from(context: TableContext, commit_user: str, commit_identifier: int) -> Snapshot | None:
    """Return the newest snapshot of the user, without batch commits, if its identifier is at least this one."""
    oldest_id = 1
    for snapshot in iterate_snapshots(context):
        oldest_id = snapshot.id
        if snapshot.commit_user != commit_user or snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
            continue
        if snapshot.commit_identifier < commit_identifier:
            return None
        if not is_detached(context, snapshot):
            return snapshot
    recorded = find_recorded_commit(context, commit_user) if oldest_id > 1 else None
    return None if recorded is None or recorded.commit_identifier < commit_identifier else recorded


def iterate_user_snapshots(context: TableContext, commit_user: str, batch: bool = False) -> Iterator[Snapshot]:
    """Yield the existing snapshots of a user, newest first; each is read when the iterator reaches it.

    Batch commits are left out unless `batch` is true.
    """
    for snapshot in iterate_snapshots(context):
        if snapshot.commit_user == commit_user and (batch or snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER):
            yield snapshot


def iterate_snapshots(context: TableContext) -> Iterator[Snapshot]:
    """Yield the existing snapshots, newest first; each is read when the iterator reaches it."""
    snapshot = latest_snapshot(context)
    while snapshot is not None:
        yield snapshot
        snapshot = _find_previous(context, snapshot.id)


def find_published_since(
    context: TableContext,
    since: int,
    newest: Snapshot | None,
    commit_user: str,
    commit_identifier: int,
    kind: CommitKind,
) -> Snapshot | None:
    """Return the snapshot of a commit among the snapshots after id `since`; None without one, or if it is detached."""
    snapshot = newest
    while snapshot is not None and snapshot.id > since:
        same = snapshot.commit_user == commit_user and snapshot.commit_identifier == commit_identifier
        if same and snapshot.commit_kind is kind:
            return None if is_detached(context, snapshot) else snapshot
        snapshot = _find_previous(context, snapshot.id)
    return None


def _find_previous(context: TableContext, snapshot_id: int) -> Snapshot | None:
    return find_snapshot(context, snapshot_id - 1) if snapshot_id > 1 else None
