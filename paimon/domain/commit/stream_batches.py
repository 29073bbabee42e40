"""Decide whether a batch of a stream is in a table already, from the commits of the stream that the table shows.

Invariant: the batches of a stream are 0, 1, 2, …, and each makes a snapshot, also an empty one. So the newest commit of
the stream is the batch itself, or the one before it. Anything else is refused, because rows would be lost or doubled.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.snapshot.snapshot import Snapshot

_CLOCK_MARGIN_MILLIS = 60_000
"""How far the clocks of the writers of a table may differ."""
_SUBJECT = "checkpointLocation"


@frozen
class StreamBatch:
    """A batch that a stream is about to commit.

    Parameters
    ----------
    number : int
        The number of the batch, from 0.
    planned_millis : int, optional
        When the batch was planned, in epoch milliseconds; None if that is unknown.
    is_first_attempt : bool
        Whether the checkpoint shows that no batch was committed before: a commit records the table there first.
    """

    number: int
    planned_millis: int | None = None
    is_first_attempt: bool = False


def is_batch_committed(table_name: str, batch: StreamBatch, newest: int | None, first: Snapshot | None) -> bool:
    """Return whether a batch is committed.

    Parameters
    ----------
    table_name : str
        The table.
    batch : StreamBatch
        The batch.
    newest : int, optional
        The number of the newest batch of the stream in the history of the table; None if it shows none.
    first : Snapshot, optional
        The oldest snapshot of the history; needed only if `newest` is None.

    Returns
    -------
    bool
        True if the batch is in the table.

    Raises
    ------
    InvalidRequest
        The stream and the table do not belong together, or the history does not reach back to the batch.
    """
    if newest is None:
        return _is_before_history(table_name, batch, first)
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
    if first is None or is_complete or batch.is_first_attempt:
        return False
    if batch.planned_millis is not None and first.time_millis <= batch.planned_millis - _CLOCK_MARGIN_MILLIS:
        return False
    raise InvalidRequest(
        f"Batch {batch.number} of the stream may be in table {table_name!r}: its snapshots begin with {first.id}, and "
        "are newer than the plan of the batch.",
        subject=_SUBJECT,
        hint="the snapshots of the stream expired while it was stopped: look for the rows of the batch, then start a "
        "new stream with a new checkpoint after or before them; raise 'snapshot.time-retained' for longer pauses",
    )
