"""Merge a source into a table: update, delete and insert rows in one commit.

Invariant: a call makes one commit or none. Rows that another user changed after the snapshot that was read refuse the
commit, so that the caller can merge again. Source: `MergeIntoPaimonTable`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from paimon.domain.assignment.merge_clauses import MergeAction
from paimon.domain.commit.message import ReadState
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.abort import abort_on_refusal
from paimon.operations.commit.read_snapshot import check_unexpired
from paimon.operations.commit.request import CommitRequest, CommitResult
from paimon.operations.row_level.merge_plan import BoundMerge, MergeRequest, MergeSource, bind_merge
from paimon.operations.table_context import TableContext
from paimon.operations.write.commit_written import commit_written


@frozen(eq=False)
class MergeChange:
    """What a merge did: its commit, without snapshots if no row changed, and the numbers of rows."""

    commit: CommitResult
    inserted: int
    updated: int
    deleted: int


def merge_source(
    context: TableContext,
    snapshot: Snapshot | None,
    source: MergeSource,
    request: MergeRequest,
    commit_user: str,
    properties: Mapping[str, str] | None = None,
    state: ReadState | None = None,
) -> MergeChange:
    """Merge a source into a table.

    The rows of `snapshot` (None: an empty table) are merged; the source was read at this time or later. `state` is the
    oldest snapshot that was read, if the source was read before. CommitConflict: another user changed rows, and nothing
    was changed.
    """
    bound = BoundMerge(context, snapshot, bind_merge(context, source.fields, request), commit_user)
    with check_unexpired(context, snapshot, "run the merge again"):
        written = source.write(bound)
    commit = CommitRequest(
        written.messages,
        commit_user,
        properties=properties or {},
        operation="MERGE",
        read_state=state or ReadState.of(snapshot),
        renumbers=True,
    )
    numbers = [written.counts.get(a, 0) for a in (MergeAction.INSERT, MergeAction.UPDATE, MergeAction.DELETE)]
    with abort_on_refusal(context, written.messages, commit_user, snapshot):
        return MergeChange(commit_written(context, commit), *numbers)
