"""Describe the table of a stream, and find out whether a batch is committed, before its rows are written."""

from __future__ import annotations

from paimon.domain.commit.stream_batches import StreamBatch, check_history_reaches, is_batch_committed
from paimon.domain.commit.stream_target import StreamTarget
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.history import find_last_commit
from paimon.operations.metadata.schemas import load_first_schema
from paimon.operations.metadata.snapshots import earliest_snapshot_id, find_snapshot
from paimon.operations.metadata.table_identity import check_same_table
from paimon.operations.table_context import TableContext


def check_stream_batch(context: TableContext, commit_user: str, batch: StreamBatch) -> bool:
    """Return whether the table has a batch of a stream, under whose user no other job commits.

    Raises InvalidRequest if the stream and the table do not belong together, or the history does not show the batch.
    """
    check_same_table(context)
    last = find_last_commit(context, commit_user)
    first = _read_oldest_snapshot(context) if last is None else None
    return is_batch_committed(context.table.table_name, batch, last, first)


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
