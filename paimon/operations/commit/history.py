"""Find the commits of a user: in the snapshots, in the records that expiry keeps, and in the memory of this process.

Source: `FileStoreCommitImpl.filterCommitted`.
"""

# A process that repeats a commit must not add its rows twice. Whether a commit is in the table is known from three
# places, and they are asked in this order:
#
#     snapshots        newest first, down to the first one of the user      written by the commit itself
#     last-commit/     one file for each user whose snapshots all expired   written by expiry, before it deletes
#     engine cache     the last commit of this process                      written after a commit is published
#
# Snapshots. The identifiers of one user ascend, so all up to that of its newest snapshot are committed. Batch commits
# share the largest identifier, which says nothing about other commits. A detached snapshot (`publish.py`) was never
# committed.
#
# Records. After an expiry nothing would be left of a user who commits seldom. So the expiry of this library copies the
# last snapshot of such a user to last-commit/. The record is written before the snapshot is deleted, and read after the
# snapshots were searched, so a commit is found in one of the two. A rollback deletes newer records. Other clients
# neither write nor delete records: what they expire is not recognized. A record is flushed as data files are, so that a
# power loss after the expiry does not take both.
#
# Last commit. On a storage without locks, another client may overwrite a snapshot that was acknowledged:
#
#     this process publishes 7   another client replaces 7 by its own   this process commits again: 7 is not ours
#
# Before its next commit, a process compares its last snapshots with the stored ones. A snapshot is reported as
# overwritten only if it was replaced and no later snapshot contains its files. While nothing is wrong, the check costs
# at most one read. A new process has no such record, and looks its identifiers up instead.

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from paimon.domain.commit.publishing import is_overwritten
from paimon.domain.commit.request import CommitRequest
from paimon.domain.commit.stream_batches import StreamBatch, check_history_reaches, check_same_plan, is_batch_committed
from paimon.domain.commit.stream_target import StreamTarget
from paimon.domain.errors import CommitOverwritten, CorruptTable, InvalidRequest, NotFound, StorageError, TableReplaced
from paimon.domain.json_text import LONG_MIN, SNAPSHOT_FILE
from paimon.domain.manifest.entries import FileKind
from paimon.domain.paths import TablePaths, is_within, join_path
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.snapshot.snapshot import (
    BATCH_COMMIT_IDENTIFIER,
    CommitKind,
    Snapshot,
    snapshot_from_json,
    snapshot_to_json,
)
from paimon.operations.commit.publish import check_durable, is_descendant, is_detached
from paimon.operations.metadata.manifests import read_delta_list, read_manifest
from paimon.operations.metadata.schemas import check_same_table, load_first_schema
from paimon.operations.metadata.snapshots import earliest_snapshot_id, find_snapshot, latest_snapshot
from paimon.operations.table_context import TableContext

_LAST_COMMIT = "last commit"
_FILE_BYTES = 2_000
"""Approximate size of the record of one file in the cache."""
_CLOCK_MARGIN_MILLIS = 3_600_000
"""Clocks differ, and a schema has the time at which its creation began."""
_PREFIX = "commit-"


def is_committed(context: TableContext, commit_user: str, commit_identifier: int) -> bool:
    """Return whether the commit is in the table, as far as its snapshots and the records of expiry reach back.

    It is if the newest identifier of the user is equal or larger; batch commits are ignored. Raises CommitUncertain if
    that snapshot is visible, but cannot be flushed.
    """
    newest = _find_newest_from(context, commit_user, commit_identifier)
    if newest is None:
        return False
    check_same_table(context)
    check_durable(context, newest)
    return True


def is_already_committed(
    context: TableContext, commit_user: str, commit_identifier: int, properties: Mapping[str, str]
) -> bool:
    """Return whether a job that is about to commit has made this commit before.

    Raises InvalidRequest if the user left out the identifier, or if it is that of a batch with another plan. Raises
    TableReplaced if the commit was refused, because its files were dropped with an earlier table of this name.
    """
    newest = _find_newest_from(context, commit_user, commit_identifier)
    if newest is None:
        return False
    check_same_table(context)
    existing = find_snapshots_of_commit(context, commit_user, commit_identifier)
    committed = [*existing, newest][0]
    if committed.commit_identifier == commit_identifier:
        check_same_plan(context.table.table_name, committed, properties)
        for snapshot in existing:
            _check_files_of_this_table(context, snapshot)
        check_durable(context, newest)
        return True
    raise InvalidRequest(
        f"Commit identifier {commit_identifier} of user {commit_user!r} must be larger than {newest.commit_identifier}",
        subject="identifier",
        hint="use a larger one, or another commit user",
    )


def _check_files_of_this_table(context: TableContext, snapshot: Snapshot) -> None:
    """Raise TableReplaced if files that may be older than the table were dropped with an earlier table of this name.

    Such a snapshot stays if other commits were built on it before its own commit saw that the table is another one.
    Copied tables have older files, too, which are there.
    """
    created = load_first_schema(context.engine, context.paths).time_millis
    created_local = created + context.engine.clock.local_offset_millis(created) + _CLOCK_MARGIN_MILLIS
    directories = BucketPaths.of(context.table)
    for manifest in read_delta_list(context, snapshot):
        for entry in read_manifest(context, manifest.file_name):
            file = entry.file
            is_older = file.creation_time_millis is not None and file.creation_time_millis < created_local
            if entry.kind is FileKind.ADD and is_older:
                path = file.path_in(directories.directory(entry.partition, entry.bucket))
                if is_within(path, context.table.roots) and context.files.status(path) is None:
                    raise TableReplaced(context.table.location, snapshot.id)


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


def read_newest_id(context: TableContext) -> int:
    """Return the id of the newest snapshot; 0 if the table has none."""
    newest = latest_snapshot(context)
    return 0 if newest is None else newest.id


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


def find_recorded_commit(context: TableContext, commit_user: str) -> Snapshot | None:
    """Return the last expired commit of a user, if it was recorded."""
    path = _record_path(context.paths, commit_user)
    recorded = _read_record(context, path)
    if recorded is not None and recorded.commit_user != commit_user:
        raise CorruptTable(path, f"contains a commit of user {recorded.commit_user!r}")
    return recorded


def record_expiring_commits(context: TableContext, expiring: Sequence[Snapshot], first_staying: int) -> int:
    """Record the last commits of the users who have none from `first_staying` on.

    Returns the id of the first snapshot that must stay: `first_staying`, or the one whose record cannot be written.
    """
    last = {s.commit_user: s for s in expiring if s.commit_identifier != BATCH_COMMIT_IDENTIFIER}
    snapshot = latest_snapshot(context) if last else None
    while last and snapshot is not None and snapshot.id >= first_staying:
        if snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER:
            last.pop(snapshot.commit_user, None)
        snapshot = find_snapshot(context, snapshot.id - 1)
    for snapshot in sorted(last.values(), key=lambda s: s.id):
        if is_detached(context, snapshot):
            continue
        try:
            _write_record(context, snapshot)
        except StorageError as error:
            if snapshot.id > expiring[0].id:
                return snapshot.id
            raise StorageError(
                error.path,
                f"the last commit of user {snapshot.commit_user!r} cannot be recorded, so snapshot {snapshot.id} stays",
                hint="free space or repair the storage, and expire again",
            ) from error
    return first_staying


def delete_records_after(context: TableContext, snapshot_id: int) -> None:
    """Delete the records of commits that a rollback to this snapshot removes; only one to an expired tag has such."""
    for recorded in _read_records(context):
        if recorded.id > snapshot_id:
            context.files.delete([_record_path(context.paths, recorded.commit_user)])


def replace_records(source: TableContext, target: TableContext, first: int) -> None:
    """Copy the records of a branch to another one, which takes over its state from a snapshot on."""
    for recorded in _read_records(target):
        taken = find_snapshot(source, recorded.id) if recorded.id >= first else recorded
        if taken is None or not taken.is_same(recorded):
            target.files.delete([_record_path(target.paths, recorded.commit_user)])
    for recorded in _read_records(source):
        _write_record(target, recorded)


def _read_records(context: TableContext) -> list[Snapshot]:
    directory = context.paths.last_commits
    names = [status.name for status in context.files.list(directory) if status.name.startswith(_PREFIX)]
    records = [_read_record(context, join_path(directory, name)) for name in names]
    return [recorded for recorded in records if recorded is not None]


def _write_record(context: TableContext, snapshot: Snapshot) -> None:
    path = _record_path(context.paths, snapshot.commit_user)
    recorded = _read_record(context, path)
    if recorded is None or recorded.time_millis <= snapshot.time_millis:
        with context.files.create(path) as file:
            file.write(snapshot_to_json(snapshot))


def _read_record(context: TableContext, path: str) -> Snapshot | None:
    try:
        return snapshot_from_json(context.files.read(path, SNAPSHOT_FILE.max_bytes), path)
    except NotFound:
        return None


def _record_path(paths: TablePaths, commit_user: str) -> str:
    digest = hashlib.sha256(commit_user.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return join_path(paths.last_commits, f"{_PREFIX}{digest}")


@frozen(eq=False)
class OwnCommit:
    """The snapshots of one request, each with the name of the index manifest before it."""

    request: CommitRequest
    snapshots: tuple[tuple[Snapshot, str | None], ...] = field(factory=tuple)


def record_own_commit(
    context: TableContext, request: CommitRequest, snapshot: Snapshot, index_before: str | None
) -> None:
    """Record a published snapshot in the engine's cache, next to the earlier snapshots of the same request.

    `index_before` is the name of the index manifest of its base.
    """
    last = _recall_own_commit(context)
    if last is None or last.request is not request:
        last = OwnCommit(request)
    record = evolve(last, snapshots=(*last.snapshots, (snapshot, index_before)))
    files = sum(len(m.data.new_files) + len(m.compact.compact_before) for m in request.messages)
    context.engine.cache.put(context.paths.snapshots, record, _FILE_BYTES * (files + 2), _LAST_COMMIT)


def check_own_commit(context: TableContext, latest: Snapshot | None) -> None:
    """Check that the last commit of this process is still in the table; a lost one is reported once."""
    last = _recall_own_commit(context)
    if last is None:
        return
    newest = last.snapshots[-1][0]
    if latest is None or latest.id < newest.id:  # rolled back
        forget_own_commit(context)
        return
    lost = _find_lost_safely(context, last, latest)
    if lost:
        forget_own_commit(context)
        _report_lost(context, last, lost)


def _report_lost(context: TableContext, last: OwnCommit, lost: Sequence[tuple[Snapshot, Snapshot]]) -> None:
    """Raise CommitOverwritten if rows are lost; a lost compaction is only counted."""
    written = [pair for pair in lost if pair[0].commit_kind is not CommitKind.COMPACT]
    if not written:
        context.engine.observer.count("commit.compaction_overwritten", len(lost))
        return
    committed, other = written[0]
    error = CommitOverwritten(committed.id, committed.commit_user, committed.commit_identifier, other.commit_user)
    error.request = last.request
    raise error


def _find_lost_safely(context: TableContext, last: OwnCommit, latest: Snapshot) -> list[tuple[Snapshot, Snapshot]]:
    """Return the lost snapshots; none if a read fails, because the new commit reports that error itself."""
    try:
        return _find_lost(context, last, latest)
    except (CorruptTable, StorageError, NotFound):  # the new commit reads what it needs, and reports the error
        return []


def _find_lost(context: TableContext, last: OwnCommit, latest: Snapshot) -> list[tuple[Snapshot, Snapshot]]:
    """Return lost snapshots with their replacements, oldest first; an existing snapshot contains those before it."""
    lost: list[tuple[Snapshot, Snapshot]] = []
    for committed, index_before in reversed(last.snapshots):
        stored = latest if latest.id == committed.id else find_snapshot(context, committed.id)
        if stored is not None and stored.is_same(committed):
            break
        following = find_snapshot(context, committed.id + 1) if latest.id > committed.id else None
        is_contained = None if following is None else is_descendant(context, following, committed, index_before)
        if stored is not None and is_overwritten(is_head=latest.id == committed.id, is_in_next=is_contained):
            lost.insert(0, (committed, stored))
    return lost


def _recall_own_commit(context: TableContext) -> OwnCommit | None:
    found = context.engine.cache.get(context.paths.snapshots, _LAST_COMMIT)
    return found if isinstance(found, OwnCommit) else None


def forget_own_commit(context: TableContext) -> None:
    """Drop the record of the last commit, before snapshots are removed on purpose."""
    context.engine.cache.drop([context.paths.snapshots])


def check_stream_batch(context: TableContext, commit_user: str, batch: StreamBatch) -> bool:
    """Return whether the table has a batch of a stream, under whose user no other job commits.

    Raises InvalidRequest if the stream and the table do not belong together, or the history does not show the batch.
    """
    check_same_table(context)
    last = find_last_commit(context, commit_user)
    first = _read_oldest_snapshot(context) if last is None else None
    found = is_batch_committed(context.table.table_name, batch, last, first)
    if found and last is not None:
        check_durable(context, last)
    return found


def check_batch_can_repeat(context: TableContext, commit_user: str, batch: StreamBatch) -> None:
    """Refuse a batch of `foreachBatch`, whose identifiers the caller chooses, if it may have expired unrecorded."""
    check_same_table(context)
    if find_last_commit(context, commit_user) is None:
        check_history_reaches(context.table.table_name, batch, _read_oldest_snapshot(context))


def _read_oldest_snapshot(context: TableContext) -> Snapshot | None:
    """Return the oldest snapshot; a table whose oldest one expires during the read does not look like an empty one."""
    while (first_id := earliest_snapshot_id(context)) is not None:
        first = find_snapshot(context, first_id)
        if first is not None:
            return first
    return None


def describe_stream_target(context: TableContext) -> StreamTarget:
    """Return what identifies a table as the target of a stream."""
    first = load_first_schema(context.engine, context.paths)
    return StreamTarget.of(context.table.location, context.table.branch, first, context.schema)
