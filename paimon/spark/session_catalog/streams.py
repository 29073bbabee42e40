"""Streams of attached catalogs: reads are those of the data source, and writes those of `paimon.spark.write_stream`.

Invariant: a batch has the guarantees of these two. Spark keeps the table of a query, so what is checked at the first
batch is kept for the later ones.
"""

# Spark plans a stream into a table as a command with writers in Java. `CommandPlanner` replaces it:
#
#     WriteToDataSourceV2(MicroBatchWrite(7, StreamWriteProxy), query)      in each batch
#       FrameExec (CommandStrategy.java) of the physical plan of `query`    so that state and watermarks stay Spark's
#         StreamWriteProxy.take_rows(data frame)
#           MicroBatchWrite.commit([])                                      adds the number of the batch
#             StreamWriteProxy.commit(7, [])                                `CommitBatch` routes, writes and commits

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from paimon.domain.errors import InvalidRequest
from paimon.operations.evolve import load_at_newest_schema
from paimon.operations.read.system.views import DATA_VIEWS, PLAIN
from paimon.spark.options import (
    ACCESS_OPTIONS,
    BATCH_WRITE_OPTIONS,
    PADS_TEXTS,
    READ_CHANGELOG,
    ROW_KIND_COLUMN,
    STREAM_READ_OPTIONS,
    STREAM_WRITE_OPTIONS,
    TIME_TRAVEL_OPTIONS,
    WRITE_OPTIONS,
    parse_source_options,
    to_source_options,
)
from paimon.spark.session_catalog.jvm import CONNECTOR, JavaProxy, Jvm
from paimon.spark.streams.checkpoint import find_running_checkpoint
from paimon.spark.streams.write_stream import CommitBatch, check_target
from paimon.system_table import SystemTable
from paimon.table import Table

_PADDING = {"spark.sql.readSideCharPadding": "true", "spark.sql.legacy.charVarcharAsString": "false"}
"""The settings of a session that pads texts of `CHAR`."""
CommitRows = Callable[[DataFrame, int], None]
"""Commits the rows of the batch with a number."""
_REFUSED = (*ACCESS_OPTIONS, *BATCH_WRITE_OPTIONS, *STREAM_READ_OPTIONS, *TIME_TRAVEL_OPTIONS, READ_CHANGELOG)
"""Options of the data source that the catalog already has, or that no stream into a table has."""
_ADDED_COLUMNS = frozenset({ROW_KIND_COLUMN, READ_CHANGELOG})
_LIMITS = frozenset(map(str.lower, STREAM_READ_OPTIONS)) - _ADDED_COLUMNS


def can_stream(opened: Table | SystemTable) -> bool:
    """Return whether a table can be read as a stream: tables, and views of their changes with row kinds."""
    return isinstance(opened, Table) or DATA_VIEWS.get(opened.system_name, PLAIN).row_kinds


def open_stream(
    spark: SparkSession, opened: Table | SystemTable, schema: StructType, given: Mapping[str, str], checkpoint: str
) -> Any:
    """Return the stream of the data source that reads the columns of a schema, with the options of a query."""
    parsed = parse_source_options({"path": opened.definition.location, **given})
    parsed.check_use("readStream.table", (*ACCESS_OPTIONS, *WRITE_OPTIONS, *STREAM_WRITE_OPTIONS))
    load_at_newest_schema(opened.context)  # refuses a table that was dropped since
    path, table = opened.definition.location, Table(opened.context).with_options(parsed.table_options)
    path += f"${opened.system_name}" if isinstance(opened, SystemTable) else ""
    if added := parsed.given.intersection(_ADDED_COLUMNS):
        hint = f"read `{table.name}$audit_log`, or use readStream.format('paimon')"
        raise InvalidRequest(f"Option {min(added)!r} adds a column to a table.", subject=opened.name, hint=hint)
    limits = {name: value for name, value in given.items() if name.lower() in _LIMITS}
    # Spark pads literals that streams compare with `CHAR`, but no texts that they read
    pads = isinstance(opened, Table) and all(spark.conf.get(name) == value for name, value in _PADDING.items())
    options = {**to_source_options(table), **limits, PADS_TEXTS: str(pads)}
    frame = spark.readStream.format("paimon").options(**options).load(path)
    if [(f.name, f.dataType) for f in frame.schema] != [(f.name, f.dataType) for f in schema]:
        wrong = f"The columns of {opened.name!r} changed after readStream.table, or its options select older ones."
        raise InvalidRequest(wrong, subject=opened.name, hint="call readStream.table again")
    relation = frame._jdf.queryExecution().analyzed().collectLeaves().apply(0)
    return relation.table().newScanBuilder(relation.extraOptions()).build().toMicroBatchStream(checkpoint)


class StreamWrites:
    """The streams into one table, by the ids of their queries."""

    def __init__(self) -> None:
        self._commits: dict[str, CommitBatch] = {}

    def find_commit(self, query_id: str, table: Table, options: Mapping[str, str], replaces: bool) -> CommitRows:
        """Return what commits a batch of a query; the first one is checked as `write_stream` checks its stream."""

        def commit(rows: DataFrame, number: int) -> None:
            """Commit a batch."""
            if query_id not in self._commits:
                checkpoint = find_running_checkpoint(rows.sparkSession, query_id)
                started = _start_commit(table, options, checkpoint, replaces)
                self._commits[query_id] = check_target(rows, started, "append")
            self._commits[query_id](rows, number)

        return commit


def _start_commit(table: Table, options: Mapping[str, str], checkpoint: str, replaces: bool) -> CommitBatch:
    parsed = parse_source_options({"path": table.definition.location, **options})
    parsed.check_use("writeStream.toTable", _REFUSED)
    parsed.check_written("writeStream.toTable")
    return CommitBatch(
        table=table.with_options(parsed.table_options),
        options=None,
        checkpoint=checkpoint,
        replaces=replaces,
        kind_column=parsed.kind_column,
        tasks=None,
        merge_schema=False,
        on_batch=None,
    )


class StreamWriteProxy(JavaProxy):
    """The write of one batch, whose rows `CommandPlanner` hands over."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.write.streaming.StreamingWrite",)

    def __init__(self, jvm: Jvm, title: str, commit: CommitRows) -> None:
        self.jvm = jvm
        self.title = title
        self._commit = commit
        self._rows: DataFrame | None = None

    def toString(self) -> str:
        """Return what plans show."""
        return f"paimon stream into {self.title}"

    def take_rows(self, rows: DataFrame) -> None:
        """Take the rows of the batch."""
        self._rows = rows

    def useCommitCoordinator(self) -> bool:
        """Return that no task of Spark commits."""
        return False

    def createStreamingWriterFactory(self, info: Any) -> None:
        """Return nothing: Spark makes no writers for this write."""

    def commit(self, number: int, messages: Any) -> None:
        """Write and commit the rows as the batch of this number."""
        del messages
        assert self._rows is not None
        self._commit(self._rows, number)

    def abort(self, number: int, messages: Any) -> None:
        """Do nothing: a batch that fails deletes its own files."""
