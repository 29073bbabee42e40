"""Report to an observer what the streams of a session write to tables, and how far they are behind.

Invariant: a stream never fails because of its report.
"""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from paimon.builders.direct_writes import WriteResult
from paimon.domain.errors import PaimonError
from paimon.ports.observer import Observer
from paimon.spark.options import STORAGE
from paimon.spark.session import check_classic, register
from paimon.spark.streams.checkpoint import StreamSink, find_running_checkpoint, list_targets
from paimon.spark.warehouse import get_warehouse, open_in_session
from paimon.table import Table


def observe_streams(spark: SparkSession, observer: Observer) -> StreamingQueryListener:
    """Report the batches of all streams of a session to an observer.

    For each batch that a stream commits to a table, the observer gets the progress ``"stream into shop.orders"``, with
    the id of the snapshot, and counts ``"stream.batches"``, ``"stream.rows"`` and ``"stream.files"``. For each batch
    that it reads from a table, it gets the progress ``"stream NAME reads"``, with the newest snapshot that is read
    completely, of the newest one. NAME is the name of the query, or its id.

    Parameters
    ----------
    spark : SparkSession
        A session of this process. Queries that it starts later are reported.
    observer : Observer
        Receives the reports, in a thread of Spark's listeners.

    Returns
    -------
    StreamingQueryListener
        The listener; ``spark.streams.removeListener(listener)`` ends the reports.

    Raises
    ------
    Unsupported
        The session is one of Spark Connect.
    """
    check_classic(spark, "observe_streams", "pass on_batch to write_stream")
    listener = _StreamListener(register(spark), observer)
    spark.streams.addListener(listener)
    return listener


@define(eq=False)
class _Stream:
    """A running query."""

    checkpoint: str
    # The newest batch that was reported of each table, by its location
    reported: dict[str, int] = field(factory=dict)


class _StreamListener(StreamingQueryListener):
    """The listener of `observe_streams`. Spark calls it in one thread, and `onQueryStarted` before the first batch."""

    def __init__(self, spark: SparkSession, observer: Observer) -> None:
        self._spark = spark
        self._observer = observer
        self._streams: dict[str, _Stream] = {}

    def onQueryStarted(self, event: Any) -> None:
        """Remember the checkpoint, which Spark forgets when the query ends."""
        try:
            self._streams[str(event.id)] = _Stream(find_running_checkpoint(self._spark, str(event.id)))
        except PaimonError:
            self._observer.count("stream.report_failed", 1)

    def onQueryProgress(self, event: Any) -> None:
        """Report what a batch read and wrote."""
        progress = event.progress
        stream = self._streams.get(str(progress.id))
        try:
            for source in progress.sources:
                self._report_source(progress.name or str(progress.id), source)
            if stream is not None:
                self._report_commits(stream, progress.batchId)
        except PaimonError:
            self._observer.count("stream.report_failed", 1)

    def onQueryIdle(self, event: Any) -> None:
        """Report nothing."""

    def onQueryTerminated(self, event: Any) -> None:
        """Forget the query."""
        self._streams.pop(str(event.id), None)

    def _report_source(self, query_name: str, source: Any) -> None:
        end, latest = (_parse_offset(text) for text in (source.endOffset, source.latestOffset))
        if "tableCreated" in end and "snapshot" in latest:
            self._observer.progress(f"stream {query_name} reads", end["snapshot"] - 1, latest["snapshot"] - 1)

    def _report_commits(self, stream: _Stream, number: int) -> None:
        warehouse = get_warehouse(self._spark)
        storage = json.loads(warehouse.options.get(STORAGE, "{}")) if warehouse and "://" in stream.checkpoint else {}
        for target, is_one_of_several in list_targets(stream.checkpoint, storage):
            if stream.reported.get(target.location, -1) >= number:
                continue
            options = {} if target.branch == "main" else {"branch": target.branch}
            table = open_in_session(self._spark, target.location, options)
            if isinstance(table, Table):
                sink = StreamSink.open(table, stream.checkpoint, number, is_one_of_several)
                self._report_commit(table, sink.describe_recent_commit())
            stream.reported[target.location] = number

    def _report_commit(self, table: Table, done: WriteResult) -> None:
        if not done.snapshot_ids:
            return
        self._observer.progress(f"stream into {table.name}", done.snapshot_ids[-1])
        for metric, value in (("batches", 1), ("rows", done.rows), ("files", done.files)):
            self._observer.count(f"stream.{metric}", value)


def _parse_offset(text: str | None) -> dict[str, Any]:
    """Return the members of an offset of this library; none of another source's offset."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
