"""Describe the table of a stream, and find out whether a batch is committed, before its rows are written."""

from __future__ import annotations

from paimon.domain.commit.stream_batches import StreamBatch, is_batch_committed
from paimon.domain.commit.stream_target import StreamTarget
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.history import iterate_user_snapshots
from paimon.operations.commit.lineage import is_detached
from paimon.operations.metadata.schemas import load_first_schema
from paimon.operations.metadata.snapshots import earliest_snapshot_id, find_snapshot
from paimon.operations.table_context import TableContext


def check_stream_batch(context: TableContext, commit_user: str, batch: StreamBatch) -> bool:
    """Return whether the table has a batch of a stream, under whose user no other job commits.

    Raises InvalidRequest if the stream and the table do not belong together, or the history does not show the batch.
    """
    newest = next((s for s in iterate_user_snapshots(context, commit_user) if not is_detached(context, s)), None)
    first = _read_oldest_snapshot(context) if newest is None else None
    return is_batch_committed(context.table.table_name, batch, newest, first)


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
