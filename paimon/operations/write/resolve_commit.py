"""Find out the status of an earlier commit, and complete it.

Invariant: "not committed" is only reported with evidence. A commit is repeated only if it is not committed, with the
same user, identifier and files, so that at most one of the two attempts counts.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.commit.entries import data_files
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.commit.publishing import CommitStatus, Place, Seen, commit_status_at, commit_status_of_identifier
from paimon.domain.commit.request import CommitRequest, CommitResult
from paimon.domain.errors import CommitConflict, CommitOverwritten, CommitUncertain, InvalidRequest, NotFound
from paimon.domain.report import CardDisplay
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.commit.history import find_last_commit, iterate_user_snapshots
from paimon.operations.commit.prepared_files import list_prepared_paths
from paimon.operations.commit.publish import find_place, is_detached, is_durable, try_read_snapshot
from paimon.operations.metadata.manifests import read_manifest, read_manifest_list
from paimon.operations.metadata.schemas import check_same_table
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.commit_rows import commit_rows, show_rows
from paimon.operations.write.row_visibility import collect_written_level_0


@frozen
class CommitOutcome(CardDisplay):
    """The status of a commit, and its snapshots, oldest first."""

    status: CommitStatus
    snapshot_ids: tuple[int, ...] = ()

    @property
    def committed(self) -> bool | None:
        """True or False if the status is certain, otherwise None."""
        return {CommitStatus.COMMITTED: True, CommitStatus.NOT_COMMITTED: False}.get(self.status)


def find_outcome(
    context: TableContext,
    commit_user: str,
    identifier: int = BATCH_COMMIT_IDENTIFIER,
    snapshot_id: int | None = None,
    identity: str | None = None,
) -> CommitOutcome:
    """Find the status of a commit by its user and identifier. Nothing is changed, but its snapshots are made durable.

    `snapshot_id` and `identity` (its uuid), from `CommitUncertain`, identify the snapshot that the commit tried to
    publish. Without them, a user with several batch commits is refused, because these share one identifier.
    """
    check_same_table(context)
    if snapshot_id is not None and identity is not None:
        status = _find_status_at(context, snapshot_id, identity)
        if status is not CommitStatus.UNKNOWN:
            return _to_outcome(context, status, (snapshot_id,) if status is CommitStatus.COMMITTED else ())
    batch = identifier == BATCH_COMMIT_IDENTIFIER
    made = list(iterate_user_snapshots(context, commit_user, batch=batch))
    detached = {s.id for s in made if s.commit_identifier >= identifier and is_detached(context, s)}
    made = [s for s in made if s.id not in detached]
    ids = tuple(sorted(s.id for s in made if s.commit_identifier == identifier))
    if batch and snapshot_id is not None:
        return CommitOutcome(CommitStatus.UNKNOWN)
    if batch and sum(s.commit_kind is not CommitKind.COMPACT for s in made if s.id in ids) > 1:
        hint = "pass the snapshot id and uuid that CommitUncertain reports"
        raise InvalidRequest(f"Commit user {commit_user!r} made several batch commits", subject="snapshot", hint=hint)
    recorded = None if made or batch else find_last_commit(context, commit_user)
    known = made if recorded is None else [recorded]
    return _to_outcome(context, commit_status_of_identifier(identifier, (s.commit_identifier for s in known)), ids)


def _to_outcome(context: TableContext, status: CommitStatus, snapshot_ids: tuple[int, ...]) -> CommitOutcome:
    """Return the outcome; unknown if the snapshots are visible, but cannot be made durable."""
    return CommitOutcome(status if is_durable(context, snapshot_ids) else CommitStatus.UNKNOWN, snapshot_ids)


def resolve_commit(context: TableContext, error: CommitUncertain | CommitOverwritten) -> CommitResult:
    """Find out the status of the commit that the error reports, and repeat it unless it is committed.

    The result has `already_committed` if the first attempt was published. CommitUncertain: the status is still unknown,
    and nothing was changed. NotFound: the files to commit were deleted, so the rows must be written again.
    """
    request = error.request
    if not isinstance(request, CommitRequest):
        raise InvalidRequest(
            "The error does not contain the files of the commit, so the commit cannot be repeated",
            subject="error",
            hint="pass the error object that the commit raised",
        )
    if isinstance(error, CommitUncertain):
        outcome = find_outcome(context, error.commit_user, error.identifier, error.snapshot_id, error.identity)
        if outcome.status is CommitStatus.COMMITTED:
            show_rows(context, request, collect_written_level_0(request.messages))
            return CommitResult(outcome.snapshot_ids, already_committed=True)
        if outcome.status is CommitStatus.UNKNOWN:
            raise error
    messages = [_drop_lost_compaction(context, message) for message in request.messages]
    try:
        return commit_rows(context, evolve(request, messages=messages, check_conflicts=True))
    except CommitConflict:  # the conflict may be with an earlier attempt of the same commit
        same = _find_same_commit(context, request)
        if same is None:
            raise
        if not is_durable(context, [same.id]):
            raise error from None
        show_rows(context, request, collect_written_level_0(request.messages))
        return CommitResult((same.id,), already_committed=True)


def _find_same_commit(context: TableContext, request: CommitRequest) -> Snapshot | None:
    """Return the snapshot that added the files of the request; file names are unique, so they identify the commit."""
    names = {file.file_name for message in request.messages for file in data_files(message)}
    for snapshot in iterate_user_snapshots(context, request.commit_user, batch=True):
        metas = read_manifest_list(context, snapshot.delta_manifest_list)
        added = {e.file.file_name for m in metas for e in read_manifest(context, m.file_name)}
        if names & added:
            return None if is_detached(context, snapshot) else snapshot
    return None


def _find_status_at(context: TableContext, snapshot_id: int, identity: str) -> CommitStatus:
    """Return the commit status that the file of this snapshot id shows."""
    standing = try_read_snapshot(context, snapshot_id)
    if isinstance(standing, Snapshot) and standing.identity == identity:
        base = find_snapshot(context, snapshot_id - 1) if snapshot_id > 1 else None
        where = Place.IN_HISTORY if base is not None else find_place(context, standing, None)
        return commit_status_at(Seen.MINE, False, where)
    if standing is not None:
        return commit_status_at(Seen.OTHER if isinstance(standing, Snapshot) else Seen.UNREADABLE, False, Place.UNKNOWN)
    latest = latest_snapshot(context)
    return commit_status_at(Seen.NOTHING, latest is None or latest.id < snapshot_id, Place.UNKNOWN)


def _drop_lost_compaction(context: TableContext, message: CommitMessage) -> CommitMessage:
    """Return the message without its compaction if the files of the compaction were deleted."""
    rows = evolve(message, compact=CompactIncrement())
    for path in list_prepared_paths(context.table, [rows]):
        if context.files.status(path) is None:
            raise NotFound("file", path, hint="the file was deleted after it was written; write the rows again")
    is_whole = all(context.files.status(path) is not None for path in list_prepared_paths(context.table, [message]))
    return message if is_whole else rows
