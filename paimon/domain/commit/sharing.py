"""Decide which commits may share a snapshot with others, and join their changes.

Invariant: a shared snapshot has the same files as the snapshots of its members one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.commit.conflicts.other_commits import LateRowsFound, find_late_rows
from paimon.domain.commit.entries import Change
from paimon.domain.commit.plan_change import Intent, find_numbered_after, list_written_files
from paimon.domain.commit.request import CommitRequest
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.snapshot.snapshot import CommitKind


def can_share_snapshot(intent: Intent) -> bool:
    """Return whether no one can distinguish the snapshot of a commit from one that it shares with others.

    It only adds files, and depends on nothing that other additions change. All that a request or a change can contain
    beyond that, also in future, excludes it.
    """
    request, change, options = intent.request, intent.change, intent.table.options
    plain = CommitRequest(
        request.messages,
        request.commit_user,
        renumbers=request.renumbers,
        shares_snapshot=True,
        flushes_files=request.flushes_files,
    )
    return (
        request == plain
        and change == Change(CommitKind.APPEND, change.entries, change.changelog)
        and bool(change.entries)
        and all(entry.file.first_row_id is None and entry.file.level == 0 for entry in change.entries)
        and options.bucket != POSTPONED
        and not options.commit_discard_duplicate_files
        and options.commit_strict_mode_last_safe_snapshot is None
        and options.tag_automatic_creation != "batch"
    )


def check_order(intent: Intent, earlier: Sequence[Change]) -> None:
    """Raise LateRowsFound if rows would lose against those of earlier members, whose numbers may be the same."""
    if find_numbered_after(intent.request) is not None:
        added = (entry for change in earlier for entry in change.entries)
        if late := find_late_rows(list_written_files(intent.request), added, intent.key_types):
            raise LateRowsFound(late)


def join_changes(changes: Sequence[Change]) -> Change:
    """Return the change with the files of all changes, in their order."""
    entries = tuple(entry for change in changes for entry in change.entries)
    return Change(CommitKind.APPEND, entries, tuple(entry for change in changes for entry in change.changelog))


def join_requests(requests: Sequence[CommitRequest]) -> CommitRequest:
    """Return the request of a shared snapshot; that of a single member is returned itself."""
    if len(requests) == 1:
        return requests[0]
    messages = [m for request in requests for m in request.messages]
    return CommitRequest(messages, requests[0].commit_user, flushes_files=any(r.flushes_files for r in requests))
