"""Begin a stream: continue where its consumer stopped, or start anew, and protect what is read next from expiry."""

from __future__ import annotations

from paimon.domain.changelog.stream_start import Start
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.stream.progress import Progress
from paimon.operations.stream.start import StreamStart, check_start, find_stream_start
from paimon.operations.table_context import TableContext


def find_progressed_start(context: TableContext, start: Start, progress: Progress) -> StreamStart | None:
    """Return the recorded progress of the consumer, or else the requested start.

    Returns None if a state is requested and the table has none yet. Raises `NotFound` if the start has expired.
    """
    resumed = None if context.options.consumer_ignore_progress else progress.resume()
    if resumed is None:
        return find_stream_start(context, start)
    return StreamStart(check_start(context, resumed, latest_snapshot(context)))


def protect_start(context: TableContext, found: StreamStart, progress: Progress) -> None:
    """Protect the files that are needed from a start on, if the stream has a consumer.

    Raises `NotFound` if the start expired meanwhile.
    """
    if found.state is not None:
        progress.protect_state(found.state.id)
        return
    progress.record(found.next_id)
    # Expiry reads consumers before it deletes snapshots. A consumer recorded in between must be checked again.
    check_start(context, found.next_id, latest_snapshot(context))
