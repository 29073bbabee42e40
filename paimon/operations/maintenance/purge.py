"""Empty a table for good: its branches, tags and consumers go, then its rows, changelogs and old snapshots.

Invariant: the schemas and one snapshot without rows remain. After a crash the same call completes the work. The rows
are dropped only after all that refers to earlier ones, so no reference is left without its files.

Source: `FileStoreTable.purgeFiles`.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.commit.request import CommitRequest
from paimon.domain.json_text import INT_MAX
from paimon.domain.maintenance.snapshot_expiry import Retention
from paimon.operations.commit.commit import commit
from paimon.operations.expire.expire_changelogs import expire_changelogs
from paimon.operations.expire.expire_snapshots import expire_snapshots
from paimon.operations.expire.references import list_branch_names
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import latest_snapshot, tag_names
from paimon.operations.refs.branches import delete_branch
from paimon.operations.refs.consumers import clear_consumers
from paimon.operations.refs.tags import delete_tag
from paimon.operations.table_context import TableContext


@frozen
class Purged:
    """What a purge deleted."""

    # the snapshot without rows; None if the table had no snapshot
    snapshot_id: int | None
    branches: int = 0
    tags: int = 0
    consumers: int = 0
    snapshots: int = 0
    changelogs: int = 0


@on_same_table
def purge(context: TableContext, commit_user: str) -> Purged:
    """Delete all rows and all history of a table, but not the table."""
    branches, tags = list_branch_names(context.engine, context.paths), tag_names(context)
    for branch in branches:
        delete_branch(context, branch)
    for tag in tags:
        delete_tag(context, tag)
    consumers = clear_consumers(context)
    if latest_snapshot(context) is None:
        return Purged(None, len(branches), len(tags), len(consumers))
    emptied = commit(context, CommitRequest((), commit_user, overwrite={})).snapshot_ids[-1]
    snapshots = expire_snapshots(context, _keep_one(Retention.of_snapshots(context.options)), everything=True)
    changelogs = expire_changelogs(context, delete_all=True)
    return Purged(emptied, len(branches), len(tags), len(consumers), snapshots.snapshots, changelogs.snapshots)


def _keep_one(retention: Retention) -> Retention:
    return evolve(retention, num_min=1, num_max=1, time_millis=0, limit=INT_MAX)
