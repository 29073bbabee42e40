"""Find out whether a batch of a stream is committed, before its rows are written."""

from __future__ import annotations

from paimon.domain.commit.stream_batches import StreamBatch, is_batch_committed
from paimon.operations.commit.history import iterate_user_snapshots
from paimon.operations.commit.lineage import is_detached
from paimon.operations.metadata.snapshots import earliest_snapshot_id, find_snapshot
from paimon.operations.table_context import TableContext


def check_stream_batch(context: TableContext, commit_user: str, batch: StreamBatch) -> bool:
    """Return whether the table has a batch of a stream.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    commit_user : str
        The user under whom the stream commits; no other job uses it.
    batch : StreamBatch
        The batch.

    Returns
    -------
    bool
        True if it is committed.

    Raises
    ------
    InvalidRequest
        The stream and the table do not belong together, or the history does not reach back to the batch.
    """
    newest = next((s for s in iterate_user_snapshots(context, commit_user) if not is_detached(context, s)), None)
    first_id = earliest_snapshot_id(context) if newest is None else None
    first = None if first_id is None else find_snapshot(context, first_id)
    number = None if newest is None else newest.commit_identifier
    return is_batch_committed(context.table.table_name, batch, number, first)
