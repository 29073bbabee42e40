"""Decide whether a batch of a stream is in a table already, from the commits of the stream that the table shows.

Invariant: the batches of a stream are 0, 1, 2, …, and each makes a snapshot, also an empty one. So the newest commit of
the stream is the batch itself, or the one before it. Anything else is refused, because rows would be lost or doubled.

A number identifies a batch only while its plan stays the same. Spark plans a batch again if the checkpoint is older
than the table, and then it may have other rows. So the snapshot of a batch records a hash of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.snapshot.snapshot import Snapshot

_CLOCK_MARGIN_MILLIS = 60_000
"""How far the clocks of the writers of a table may differ."""
_SUBJECT = "checkpointLocation"
PLAN_HASH = "stream-batch.plan-hash"
"""The snapshot property with the SHA-256 of the bytes of Spark's plan, ``offsets/<batch>`` of the checkpoint."""


@frozen
class StreamBatch:
    """A batch that a stream is about to commit."""

    # Counts from 0
    number: int
    # Epoch milliseconds of the plan; None if not known
    planned_millis: int | None = None
    # Whether the checkpoint does not record the table yet, which each commit does first
    is_first_attempt: bool = False
    # See `PLAN_HASH`; None if not known
    plan_hash: str | None = None
    # Watermark of the stream in epoch milliseconds when the batch was planned; None if it has none
    watermark_millis: int | None = None

    @property
    def properties(self) -> dict[str, str]:
        """What the snapshot of the batch records about it."""
        return {} if self.plan_hash is None else {PLAN_HASH: self.plan_hash}


def check_same_plan(table_name: str, committed: Snapshot, properties: Mapping[str, str]) -> None:
    """Check that a commit is that of the snapshot; one of an earlier version records no plan, and passes."""
    recorded, planned = committed.properties.get(PLAN_HASH), properties.get(PLAN_HASH)
    if recorded is not None and planned is not None and recorded != planned:
        raise InvalidRequest(
            f"Batch {committed.commit_identifier} of the stream has another plan than the one that table "
            f"{table_name!r} has in snapshot {committed.id}, so its rows may differ.",
            subject=_SUBJECT,
            hint="the checkpoint is older than the table: continue with its newest copy, or roll the table back to "
            "before this batch, or start a new stream with a new checkpoint",
        )


def is_batch_committed(table_name: str, batch: StreamBatch, last: Snapshot | None, first: Snapshot | None) -> bool:
    """Return whether a batch is committed; InvalidRequest if rows would be lost or doubled."""
    if last is None:
        return _is_before_history(table_name, batch, first)
    newest = last.commit_identifier
    if newest > batch.number:
        raise InvalidRequest(
            f"Batch {batch.number} of the stream is older than batch {newest}, which table {table_name!r} has.",
            subject=_SUBJECT,
            hint="the checkpoint is an old copy: continue with the newest one, or roll the table back to the snapshot "
            f"of batch {batch.number - 1}, or start a new stream with a new checkpoint",
        )
    if newest < batch.number - 1:
        raise InvalidRequest(
            f"Table {table_name!r} has the batches of the stream up to {newest}, and {batch.number} is the next one.",
            subject=_SUBJECT,
            hint="the table was rolled back, or another copy of it was restored: roll it back to the snapshot of batch "
            f"{batch.number - 1}, or start a new stream with a new checkpoint",
        )
    if newest == batch.number:
        check_same_plan(table_name, last, batch.properties)
    return newest == batch.number


def _is_before_history(table_name: str, batch: StreamBatch, first: Snapshot | None) -> bool:
    """Return False if a table without a commit of the stream cannot have had the batch; raise otherwise."""
    is_complete = first is None or first.id == 1
    if is_complete and batch.number > 0:
        raise InvalidRequest(
            f"Table {table_name!r} has no batch of the stream, whose next batch is {batch.number}.",
            subject=_SUBJECT,
            hint="the checkpoint belongs to another table, or this one was created again or rolled back: start a new "
            "stream with a new checkpoint",
        )
    check_history_reaches(table_name, batch, first)
    return False


def check_history_reaches(table_name: str, batch: StreamBatch, first: Snapshot | None) -> None:
    """Refuse a batch that a table without a commit of the stream may have had before its oldest snapshot `first`."""
    if first is None or first.id == 1 or batch.is_first_attempt:
        return
    if batch.planned_millis is not None and first.time_millis <= batch.planned_millis - _CLOCK_MARGIN_MILLIS:
        return
    raise InvalidRequest(
        f"Batch {batch.number} of the stream may be in table {table_name!r}: its snapshots begin with {first.id}, and "
        "are newer than the plan of the batch.",
        subject=_SUBJECT,
        hint="the snapshots of the stream expired while it was stopped: look for the rows of the batch, then start a "
        "new stream with a new checkpoint after or before them; raise 'snapshot.time-retained' for longer pauses",
    )
