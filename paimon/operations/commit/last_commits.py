"""Record the last commit of this process, and check that it is still in the table before the next commit.

Invariant: the check costs at most one read while nothing is wrong. A snapshot is reported as overwritten only if it was
replaced and no later snapshot contains its files. The record is in the cache of the engine, so a new process has none
and looks up its commit identifiers instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, field, frozen

from paimon.domain.commit.publishing import is_overwritten
from paimon.domain.errors import CommitOverwritten, CorruptTable, NotFound, StorageError
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.commit.lineage import is_descendant
from paimon.operations.commit.request import CommitRequest
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.table_context import TableContext

_LAST_COMMIT = "last commit"
_FILE_BYTES = 2_000
"""Approximate size of the record of one file in the cache."""


@frozen(eq=False)
class LastCommit:
    """The snapshots of one request, each with the name of the index manifest before it."""

    request: CommitRequest
    snapshots: tuple[tuple[Snapshot, str | None], ...] = field(factory=tuple)


def record_last_commit(
    context: TableContext, request: CommitRequest, snapshot: Snapshot, index_before: str | None
) -> None:
    """Record a published snapshot in the engine's cache, next to the earlier snapshots of the same request.

    `index_before` is the name of the index manifest of its base.
    """
    last = _recall_last_commit(context)
    if last is None or last.request is not request:
        last = LastCommit(request)
    record = evolve(last, snapshots=(*last.snapshots, (snapshot, index_before)))
    files = sum(len(m.data.new_files) + len(m.compact.compact_before) for m in request.messages)
    context.engine.cache.put(context.paths.snapshots, record, _FILE_BYTES * (files + 2), _LAST_COMMIT)


def check_last_commit(context: TableContext, latest: Snapshot | None) -> None:
    """Check that the last commit of this process is still in the table; a lost one is reported once."""
    last = _recall_last_commit(context)
    if last is None:
        return
    newest = last.snapshots[-1][0]
    if latest is None or latest.id < newest.id:  # rolled back
        forget_last_commit(context)
        return
    lost = _find_lost_safely(context, last, latest)
    if lost:
        forget_last_commit(context)
        _report_lost(context, last, lost)


def _report_lost(context: TableContext, last: LastCommit, lost: Sequence[tuple[Snapshot, Snapshot]]) -> None:
    """Raise CommitOverwritten if rows are lost; a lost compaction is only counted."""
    written = [pair for pair in lost if pair[0].commit_kind is not CommitKind.COMPACT]
    if not written:
        context.engine.observer.count("commit.compaction_overwritten", len(lost))
        return
    committed, other = written[0]
    error = CommitOverwritten(committed.id, committed.commit_user, committed.commit_identifier, other.commit_user)
    error.request = last.request
    raise error


def _find_lost_safely(context: TableContext, last: LastCommit, latest: Snapshot) -> list[tuple[Snapshot, Snapshot]]:
    """Return the lost snapshots; none if a read fails, because the new commit reports that error itself."""
    try:
        return _find_lost(context, last, latest)
    except (CorruptTable, StorageError, NotFound):  # the new commit reads what it needs, and reports the error
        return []


def _find_lost(context: TableContext, last: LastCommit, latest: Snapshot) -> list[tuple[Snapshot, Snapshot]]:
    """Return lost snapshots with their replacements, oldest first; an existing snapshot contains those before it."""
    lost: list[tuple[Snapshot, Snapshot]] = []
    for committed, index_before in reversed(last.snapshots):
        stored = latest if latest.id == committed.id else find_snapshot(context, committed.id)
        if stored is not None and stored.is_same(committed):
            break
        following = find_snapshot(context, committed.id + 1) if latest.id > committed.id else None
        is_contained = None if following is None else is_descendant(context, following, committed, index_before)
        if stored is not None and is_overwritten(is_head=latest.id == committed.id, held_by_next=is_contained):
            lost.insert(0, (committed, stored))
    return lost


def _recall_last_commit(context: TableContext) -> LastCommit | None:
    found = context.engine.cache.get(context.paths.snapshots, _LAST_COMMIT)
    return found if isinstance(found, LastCommit) else None


def forget_last_commit(context: TableContext) -> None:
    """Drop the record of the last commit, before snapshots are removed on purpose."""
    context.engine.cache.drop([context.paths.snapshots])
