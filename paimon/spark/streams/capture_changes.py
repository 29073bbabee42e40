"""Write events of change data capture from a data frame: tasks convert the events, and send rows to their buckets.

Invariant: tasks call `paimon.capture.convert_events`, as `paimon.cdc` does. The rows of a key are written in the
order of their events in a partition of the frame. The driver adds columns of a table when all its rows are in files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from attrs import evolve, field, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from paimon.adapters.executors.spark import SPARK_ERRORS, stoppable_jobs
from paimon.builders.direct_writes import (
    SCHEMA_ATTEMPTS,
    WriteResult,
    commit_messages,
    publish_planned_schema,
    retry_assignment,
    schema_changed_error,
)
from paimon.capture.convert_events import ConvertedEvents, EventCounts, convert_events, split_events
from paimon.capture.event_formats import SKIPPED, EventFormat, Routes
from paimon.capture.rows_columnar import KIND_COLUMN
from paimon.capture.survey_events import SourceColumns, merge_surveys, survey_events
from paimon.capture.write_events import CaptureTargets, CdcResult, Targets, plan_columns, rejection_error
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.json_text import dump_json
from paimon.domain.schema.missing_columns import ColumnCheck
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.types.data_types import DataType
from paimon.domain.types.type_text import format_type, parse_type
from paimon.operations.table_context import commit_user_of
from paimon.spark.frame_reads import to_frame_error
from paimon.spark.session import register
from paimon.spark.streams.checkpoint import CHECKPOINT_OPTION, Checkpoint, CommitName, StreamSink
from paimon.spark.tasks.shuffle import decode_rows, encode_rows
from paimon.spark.types import has_case_insensitive_names
from paimon.spark.write import check_tasks, make_builder, open_target, write_in_tasks
from paimon.table import Table

SparkTargets: TypeAlias = Table | str | Mapping[str, Table | str] | Callable[[str], Table | str | None]
"""The table of all events, or the table of each source table; None skips a source table."""
_COUNTS = -2
_ROWS_SCHEMA = "target INT NOT NULL, rows BINARY NOT NULL, events BIGINT, rejected BIGINT, ignored BIGINT"
_ARROW_SCHEMA = pa.schema(
    [
        pa.field("target", pa.int32(), nullable=False),
        pa.field("rows", pa.binary(), nullable=False),
        *(pa.field(name, pa.int64()) for name in ("events", "rejected", "ignored")),
    ]
)
_SOURCES = "paimon/sources.json"


def cdc(  # noqa: PLR0913  (a public signature)
    frame: DataFrame,
    table: SparkTargets,
    format: str,
    *,
    checkpoint: str | None = None,
    operation_column: str = "op",
    metadata: Mapping[str, str] | None = None,
    dead_letters: Table | str | None = None,
    merge_schema: bool = False,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    tasks: int | None = None,
    on_batch: Callable[[int, CdcResult], None] | None = None,
) -> CdcResult | StreamingQuery:
    """Write the events of change data capture in a data frame to one or more tables, one commit each.

    Parameters
    ----------
    frame : DataFrame
        A batch or a stream of events as `paimon.cdc` takes them: as Spark reads them from Kafka, or from text files.
        Events of a key are applied in the order of their partition.
    table : Table, str, mapping of str to (Table or str), or callable
        As in `paimon.cdc`; a str is a path, or a name in the warehouse of the session.
    format : str
        As in `paimon.cdc`.
    checkpoint : str, optional
        For a stream: directory or URL of the query's checkpoint. Each batch is committed once to each table.
    operation_column, metadata, dead_letters, merge_schema : str, mapping of str to str, Table or str, bool, optional
        As in `paimon.cdc`.
    commit_user, commit_identifier : str, int, optional
        For a batch: with both given, each table gets the events once; see `write` for `foreachBatch`.
    trigger, query_name, tasks : mapping of str to object, str, int, optional
        For a stream: as in `write_stream`. The number of writing tasks, as in `write`.
    on_batch : callable, optional
        For a stream: is called on the driver after each batch, with its number and its result.

    Returns
    -------
    CdcResult or StreamingQuery
        The commits and the numbers of events of a batch; the running query of a stream.

    Raises
    ------
    InvalidRequest
        An event cannot be read and there is no dead-letter table, or an argument does not fit. No rows were committed.
    CommitConflict, CommitUncertain, CommitOverwritten
        As `Table.write` raises them.
    """
    spark = register(frame.sparkSession)
    event_format = EventFormat(format, operation_column, metadata or {})
    capture = _Capture(table, event_format, dead_letters, merge_schema, tasks).open(spark)
    if not frame.isStreaming:
        _refuse_arguments({"checkpoint": checkpoint, "trigger": trigger, "query_name": query_name}, "a batch")
        return capture.write(frame, _CallCommits(spark, commit_user, commit_identifier))
    _refuse_arguments({"commit_user": commit_user, "commit_identifier": commit_identifier}, "a stream")
    commit = _CommitEvents(capture, _check_checkpoint(checkpoint), on_batch)
    return _start_query(frame, commit, trigger, query_name)


def _start_query(
    frame: DataFrame, commit: _CommitEvents, trigger: Mapping[str, Any] | None, query_name: str | None
) -> StreamingQuery:
    writer = frame.writeStream.option(CHECKPOINT_OPTION, commit.checkpoint).foreachBatch(commit)
    writer = writer if query_name is None else writer.queryName(query_name)
    return (writer if trigger is None else writer.trigger(**trigger)).start()


def _check_checkpoint(checkpoint: str | None) -> str:
    if checkpoint is None:
        raise InvalidRequest(
            "A stream of change events needs its checkpoint, which makes each batch commit once.",
            subject="checkpoint",
            hint="pass checkpoint='…'",
        )
    return checkpoint


def _refuse_arguments(given: Mapping[str, object], kind: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidRequest(f"Argument {name!r} has no effect for {kind} of events.", subject=name)


@frozen(eq=False)
class _TableCommit:
    """The commit of one table in a batch of events."""

    commit_user: str
    identifier: int
    properties: Mapping[str, str] = field(factory=dict)
    # None outside of a stream
    sink: StreamSink | None = None
    # Whether the table already has the batch, so its rows are not written again
    is_committed: bool = False

    def publish(self, table: Table, messages: list[CommitMessage]) -> WriteResult:
        """Commit messages; a table of a stream gets a snapshot for an empty batch, too."""
        builder = make_builder(table, "append", self.commit_user, None)
        if self.sink is not None:
            return self.sink.commit(builder, messages)
        return commit_messages(builder.new_commit(), messages, self.properties, self.identifier)


@frozen(eq=False)
class _CallCommits:
    """The commits of one call for a batch frame."""

    spark: SparkSession
    # None means a new user, or that of the running stream
    commit_user: str | None
    commit_identifier: int | None

    def open(self, table: Table) -> _TableCommit:
        """Return the commit of a table."""
        name = CommitName.of(self.spark, table, self.commit_user, self.commit_identifier)
        identifier = BATCH_COMMIT_IDENTIFIER if self.commit_identifier is None else self.commit_identifier
        user = commit_user_of(table.context, name.user)
        return _TableCommit(user, identifier, properties=name.properties)

    def add_sources(self, found: set[str], find_table: Callable[[str], Table | None]) -> set[str]:
        """Return the source tables of this batch."""
        return found


@frozen(eq=False)
class _StreamCommits:
    """The commits of one batch of a stream."""

    checkpoint: str
    number: int

    def open(self, table: Table) -> _TableCommit:
        """Return the commit of a table, which may have the batch already."""
        sink = StreamSink.open(table, self.checkpoint, self.number, is_one_of_several=True)
        is_committed = sink.is_committed()
        return _TableCommit(sink.commit_user, sink.find_identifier(), sink=sink, is_committed=is_committed)

    def add_sources(self, found: set[str], find_table: Callable[[str], Table | None]) -> set[str]:
        """Return the source tables of all batches, because each table gets each batch, and record them."""
        tables = (table for table in map(find_table, sorted(found)) if table is not None)
        table = next(tables, None)
        if table is None:
            return found
        checkpoint = Checkpoint.of(self.checkpoint, table)
        path = f"{checkpoint.location}/{_SOURCES}"
        try:
            known = set(json.loads(checkpoint.files.read(path)))
        except NotFound:
            known = set()
        if not found <= known:
            checkpoint.files.replace(path, dump_json(sorted(known | found)))
        return known | found


@frozen(eq=False)
class _Capture:
    """The arguments of a call of `cdc`, which writes each batch of events with them."""

    table: SparkTargets
    event_format: EventFormat
    dead_letters: Table | str | None
    # Whether to add columns that the events have and the table lacks
    merge_schema: bool
    # Number of writing tasks
    tasks: int | None
    # Schemas of the tables at the time of the call; empty if `table` is callable
    opened: tuple[TableSchema, ...] = ()

    def open(self, spark: SparkSession) -> _Capture:
        """Check the arguments, and return this capture with the schemas of its tables."""
        self.event_format.check()
        check_tasks(self.tasks)
        return self if callable(self.table) else evolve(self, opened=self.open_targets(spark, {}).opened)

    def write(self, frame: DataFrame, commits: _CallCommits | _StreamCommits) -> CdcResult:
        """Write a batch of events, and commit it to each table.

        Raises `InvalidRequest` if an event cannot be read and there is no dead-letter table.
        """
        targets, letters = self._prepare(frame, commits)
        tables = [(table, commits.open(table)) for table in targets.tables]
        letters_commit = None if letters is None else commits.open(letters)
        every = [commit for _, commit in tables] + ([] if letters_commit is None else [letters_commit])
        if every and all(commit.is_committed for commit in every):
            return CdcResult({t.name: c.publish(t, []) for t, c in tables}, 0, 0, 0)
        convert = _ConvertEvents(self.event_format, targets.routes, targets.make_column_checks())
        converted = frame.mapInArrow(convert, _ROWS_SCHEMA).persist()
        try:
            counts, present = _count_events(converted)
            if counts.rejected and letters is None:
                raise _find_first_rejection(converted)
            write = _WriteRows(converted, present, self.tasks, targets.wanted)
            # Dead letters come first: a failure between two commits never loses an event.
            set_aside = None if letters is None or letters_commit is None else write(SKIPPED, letters, letters_commit)
            results = {table.name: write(n, table, commit) for n, (table, commit) in enumerate(tables)}
        finally:
            converted.unpersist()
        return CdcResult(results, counts.events, counts.rejected, counts.ignored, set_aside)

    def _prepare(self, frame: DataFrame, commits: _CallCommits | _StreamCommits) -> tuple[CaptureTargets, Table | None]:
        """Open the tables, and plan the columns that only the events have."""
        spark = frame.sparkSession
        surveyed = _survey(frame, self.event_format) if self.merge_schema or callable(self.table) else {}
        named = surveyed
        if callable(self.table):
            sources = commits.add_sources(set(surveyed), self._find_function(spark, self.table))
            named = {name: surveyed.get(name, {}) for name in sources}
        targets = self.open_targets(spark, named)
        targets = evolve(targets, opened=self.opened or targets.opened)
        letters = None if self.dead_letters is None else open_target(self.dead_letters, None, spark)
        if self.merge_schema:
            targets = targets.plan_columns(surveyed, has_case_insensitive_names(spark))
        return targets, letters

    def open_targets(self, spark: SparkSession, surveyed: SourceColumns) -> CaptureTargets:
        """Return the tables at their newest schema."""
        table: Targets
        if isinstance(self.table, Mapping):
            table = {name: open_target(target, None, spark) for name, target in self.table.items()}
        elif callable(self.table):
            table = self._find_function(spark, self.table)
        else:
            table = open_target(self.table, None, spark)
        return CaptureTargets.of(table, self.event_format, surveyed)

    def _find_function(
        self, spark: SparkSession, function: Callable[[str], Table | str | None]
    ) -> Callable[[str], Table | None]:
        def find_table(source: str) -> Table | None:
            found = function(source)
            return None if found is None else open_target(found, None, spark)

        return find_table


@frozen(eq=False)
class _CommitEvents:
    """The function that Spark calls on the driver for each batch of a stream."""

    capture: _Capture
    checkpoint: str
    on_batch: Callable[[int, CdcResult], None] | None
    __name__: str = field(default="commit_events", init=False)

    def __call__(self, batch: DataFrame, number: int) -> None:
        result = self.capture.write(batch, _StreamCommits(self.checkpoint, number))
        if self.on_batch is not None:
            self.on_batch(number, result)


@frozen(eq=False)
class _WriteRows:
    """Write the converted rows of each table."""

    # Rows of all tables; the column `target` has the number of the table
    converted: DataFrame
    # Numbers of the tables that have rows
    present: frozenset[int]
    # Number of writing tasks
    tasks: int | None
    # For each table, the columns to add with its rows; empty if no table gets columns
    wanted: tuple[Mapping[str, DataType], ...]

    def __call__(self, number: int, table: Table, commit: _TableCommit) -> WriteResult:
        if commit.is_committed or number not in self.present:
            return commit.publish(table, [])
        return retry_assignment(partial(self._write_rows, number, table, commit))

    def _write_rows(self, number: int, table: Table, commit: _TableCommit) -> WriteResult:
        """Write and commit the rows of a table, and publish its new columns in between."""
        rows = self.converted.filter(self.converted["target"] == number)
        kinds = None if number == SKIPPED else KIND_COLUMN
        columns = self.wanted[number] if self.wanted and number != SKIPPED else {}
        for _ in range(SCHEMA_ATTEMPTS):
            target, is_planned = plan_columns(table, columns) if columns else (table, False)
            builder = make_builder(target, "append", commit.commit_user, None)
            messages = write_in_tasks(rows, builder, kinds, self.tasks, commit.identifier, True, _read_converted)
            if not is_planned or publish_planned_schema(builder, messages):
                return commit.publish(target, messages)
        raise schema_changed_error(table.name)


@frozen(eq=False)
class _ConvertEvents:
    """The task that converts events."""

    event_format: EventFormat
    routes: Routes
    checks: list[ColumnCheck]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        position = 0
        for batch in batches:
            for part in split_events(pa.Table.from_batches([batch])):
                converted = convert_events(part, self.event_format, self.routes, position)
                position += part.num_rows
                if self.event_format.has_column_names:
                    self._check_columns(part, converted)
                made = {**converted.rows, **({SKIPPED: converted.rejected} if converted.rejected.num_rows else {})}
                rows = [{"target": target, "rows": encode_rows(table).to_pybytes()} for target, table in made.items()]
                counts = converted.counts
                total = {"events": counts.events, "rejected": counts.rejected, "ignored": counts.ignored}
                yield pa.RecordBatch.from_pylist([*rows, {"target": _COUNTS, "rows": b"", **total}], _ARROW_SCHEMA)

    def _check_columns(self, part: pa.Table, converted: ConvertedEvents) -> None:
        """Refuse rows without columns; all parts of a frame have the same ones."""
        for number, rows in converted.rows.items():
            self.checks[number].add_rows(rows, part.column_names).check_given()


def _read_converted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows that `_ConvertEvents` returned."""
    for batch in batches:
        for rows in batch.column("rows"):
            yield decode_rows(rows.as_buffer())


def _count_events(converted: DataFrame) -> tuple[EventCounts, frozenset[int]]:
    """Return the numbers of events, and the tables that have rows; this converts the events."""
    names = ("events", "rejected", "ignored")
    try:
        with stoppable_jobs(converted.sparkSession):
            rows = converted.groupBy("target").sum(*names).collect()
    except SPARK_ERRORS as error:
        raise to_frame_error(converted, error) from error
    totals = next((row for row in rows if row["target"] == _COUNTS), None)
    counts = EventCounts() if totals is None else EventCounts(*(totals[f"sum({name})"] for name in names))
    return counts, frozenset(row["target"] for row in rows)


def _find_first_rejection(converted: DataFrame) -> InvalidRequest:
    rejected = converted.filter(converted["target"] == SKIPPED).first()
    assert rejected is not None
    return rejection_error(decode_rows(pa.py_buffer(bytes(rejected["rows"]))).slice(0, 1).to_pylist()[0])


@frozen(eq=False)
class _SurveyEvents:
    """The task that finds source tables and the types of their columns."""

    event_format: EventFormat

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: SourceColumns = {}
        for batch in batches:
            for part in split_events(pa.Table.from_batches([batch])):
                found = merge_surveys(found, survey_events(part, self.event_format))
        texts = {name: {column: format_type(kind) for column, kind in types.items()} for name, types in found.items()}
        yield pa.RecordBatch.from_pylist([{"found": json.dumps(texts)}], pa.schema([("found", pa.string())]))


def _survey(frame: DataFrame, event_format: EventFormat) -> SourceColumns:
    """Return the source tables of a batch, and the types of their columns."""
    found: SourceColumns = {}
    try:
        with stoppable_jobs(frame.sparkSession):
            rows = frame.mapInArrow(_SurveyEvents(event_format), "found STRING").collect()
    except SPARK_ERRORS as error:
        raise to_frame_error(frame, error) from error
    for row in rows:
        parsed = json.loads(row["found"])
        found = merge_surveys(found, {n: {c: parse_type(t) for c, t in types.items()} for n, types in parsed.items()})
    return found
