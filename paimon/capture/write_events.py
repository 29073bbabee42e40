"""Write the events of change data capture to tables: `paimon.cdc`.

Invariant: nothing is committed before all events are read. Dead letters are committed first, so that a failure between
two commits never loses an event. With a commit user and an identifier, each table has the events once.
"""

# The steps of one call of `cdc`:
#
#     survey    the types of the columns of each source table, in a pass of its own over the events
#     plan      a schema for each table that lacks columns; it is not published yet
#     write     one pass over the events: files of all tables, and of the dead-letter table
#     publish   the planned schemas; if one is outdated, all files are deleted, and the call begins again with `plan`
#     commit    the dead-letter table, then each table
#
# Only `merge_schema` and a callable for the tables need the survey: the callable is called once for each source table.
# Without `merge_schema` nothing is planned and published.
#
# The order is what makes a call safe to repeat. A refused event ends the call before a schema or a row is visible. If
# the process dies between two commits, the same call with its commit user and identifier commits the tables that lack
# their rows, and skips the others. The dead letters are visible by then, so no event is in neither table.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.builders.direct_writes import (
    SCHEMA_ATTEMPTS,
    WriteResult,
    commit_messages,
    publish_planned_schema,
    retry_assignment,
    schema_changed_error,
)
from paimon.builders.table_write import TableWrite
from paimon.builders.write_builder import BatchWriteBuilder
from paimon.capture.convert_events import ConvertedEvents, EventCounts, convert_events, split_events
from paimon.capture.event_formats import COLUMNS_FORMAT, DEAD_LETTER_SCHEMA, SKIPPED, EventFormat, Routes, TargetTable
from paimon.capture.rows_columnar import KIND_COLUMN
from paimon.capture.survey_events import SourceColumns, merge_surveys, survey_events
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.report import CardDisplay, Grid, Report, report_fields
from paimon.domain.schema.changes import AddColumn
from paimon.domain.schema.missing_columns import ColumnCheck, find_needed_columns
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.schema.writable import check_rows_writable
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.text_layout import TextColumn
from paimon.domain.types.data_types import DataType
from paimon.domain.undo import undo_on_failure
from paimon.operations.evolve import load_at_newest_schema, plan_new_columns
from paimon.operations.table_context import commit_user_of
from paimon.operations.write.input_rows import can_be_read_again, to_arrow_tables
from paimon.table import Table

Targets: TypeAlias = Table | Mapping[str, Table] | Callable[[str], Table | None]
"""The table of all events, or the table of each source table; None skips a source table."""
_TEXTS_AT_ONCE = 10_000
_MOST_NEW_COLUMNS = 1_000


@frozen
class CdcResult(CardDisplay):
    """What the events of change data capture did.

    Attributes
    ----------
    tables : mapping of str to WriteResult
        By name of the table: the commit of its rows.
    events : int
        Events that were read.
    rejected : int
        Events that could not be read, and are in the dead-letter table.
    ignored : int
        Events that change no row, such as heartbeats and changes of schemas, and those of skipped source tables.
    dead_letters : WriteResult, optional
        The commit of the dead-letter table.
    """

    tables: Mapping[str, WriteResult]
    events: int
    rejected: int
    ignored: int
    dead_letters: WriteResult | None = None

    def _report(self) -> Report:
        report = report_fields(evolve(self, tables={}, dead_letters=None))
        results = {**self.tables, **({"dead letters": self.dead_letters} if self.dead_letters else {})}
        texts = {
            "table": list(results),
            "snapshots": [", ".join(map(str, result.snapshot_ids)) for result in results.values()],
            "rows": [f"{result.rows:,}" for result in results.values()],
            "files": [f"{result.files:,}" for result in results.values()],
        }
        columns = (TextColumn(name, name in ("rows", "files"), tuple(cells)) for name, cells in texts.items())
        return evolve(report, parts=(Grid(tuple(columns)),))


def cdc(  # noqa: PLR0913  (a public signature)
    events: Any,
    table: Targets,
    format: str,
    *,
    operation_column: str = "op",
    metadata: Mapping[str, str] | None = None,
    dead_letters: Table | None = None,
    merge_schema: bool = False,
    commit_user: str | None = None,
    identifier: int = BATCH_COMMIT_IDENTIFIER,
) -> CdcResult:
    """Write the events of change data capture to one or more tables, one commit each.

    Parameters
    ----------
    events : object
        Texts (an iterable of str or bytes), or rows in any form that `Table.write` takes: the text in a column
        ``value``, and Kafka's ``key``, ``topic``, ``partition``, ``offset`` if there are any. They apply in order.
    table : Table, mapping of str to Table, or callable
        The table of all events; or by source table (``database.table``; in PostgreSQL ``database.schema.table``). A
        callable returns None for a source table to skip.
    format : str
        ``debezium-json``, ``canal-json``, ``maxwell-json``, ``json`` (an object with the columns and an operation), or
        ``columns`` (rows with a column for the operation).
    operation_column : str
        For the formats ``json`` and ``columns``: the member or column with the operation.
    metadata : mapping of str to str, optional
        By column of the table: the path of a member of the event, such as ``source.ts_ms``, or ``frame.`` and a column
        of `events`. A `sequence.field` from here orders late and doubled events, also deletes.
    dead_letters : Table, optional
        Gets the events that cannot be read, as `paimon.DEAD_LETTER_SCHEMA`. Without it, the first one is an error.
    merge_schema : bool
        Add columns that only the events have, once all rows are written to files: a refused call adds none.
    commit_user, identifier : str, int
        With both given, each table gets the events once: a second call with the same pair changes nothing.

    Returns
    -------
    CdcResult
        The commits and the numbers of events.

    Raises
    ------
    InvalidRequest
        An event cannot be read and there is no dead-letter table, or an argument does not fit. Or no row of the format
        ``columns`` has a column of the table, see `write.missing-columns`. No rows were committed.
    CommitConflict, CommitUncertain, CommitOverwritten
        As `Table.write` raises them. Tables that were written before have the events.
    """
    event_format = EventFormat(format, operation_column, metadata or {})
    event_format.check()
    surveyed = _survey(events, event_format) if merge_schema or callable(table) else {}
    targets = CaptureTargets.of(table, event_format, surveyed)
    written = (*targets.tables, *(() if dead_letters is None else (dead_letters,)))
    user = commit_user_of(written[0].context, commit_user, identifier) if written else ""

    added = surveyed if merge_schema else None
    write_once = partial(_write_once, events, event_format, targets, added, dead_letters, user, identifier)
    return retry_assignment(write_once) if _is_repeatable(events) else write_once()


def _write_once(
    events: Any,
    event_format: EventFormat,
    targets: CaptureTargets,
    added: SourceColumns | None,
    dead_letters: Table | None,
    user: str,
    identifier: int,
) -> CdcResult:
    """Write all events; `added` are columns of the events, of which the tables get those that they lack, if any."""
    for _ in range(SCHEMA_ATTEMPTS):
        planned = targets if added is None else targets.plan_columns(added)
        done = _WriteEvents(event_format, planned, dead_letters, user, identifier)(read_events(events))
        if done is not None:
            return done
    raise schema_changed_error(", ".join(table.name for table in targets.tables))


def _survey(events: Any, event_format: EventFormat) -> SourceColumns:
    """Read all events once, and return the columns of each source table."""
    if not _is_repeatable(events):
        hint = "pass a table or a list, not an iterator"
        message = "The events are read twice, which an iterator does not allow."
        raise InvalidRequest(message, subject="events", hint=hint)
    surveyed: SourceColumns = {}
    for part in read_events(events):
        surveyed = merge_surveys(surveyed, survey_events(part, event_format))
    return surveyed


def _is_repeatable(events: Any) -> bool:
    if isinstance(events, list | tuple) and all(row is None or isinstance(row, str | bytes) for row in events):
        return True
    return can_be_read_again(events)


def read_events(events: Any) -> Iterator[pa.Table]:
    """Yield events in any form of `cdc`, in order, in tables that are small enough to be read at once."""
    if isinstance(events, Iterable) and not hasattr(events, "__arrow_c_stream__") and not isinstance(events, Mapping):
        items = iter(events)
        while rows := list(islice(items, _TEXTS_AT_ONCE)):
            if all(row is None or isinstance(row, str | bytes) for row in rows):
                texts = [row.encode("utf-8", "surrogatepass") if isinstance(row, str) else row for row in rows]
                yield from split_events(pa.table({"value": pa.array(texts, pa.binary())}))
            else:
                for part in to_arrow_tables(rows, ()):
                    yield from split_events(part)
        return
    for part in to_arrow_tables(events, ()):
        yield from split_events(part)


@frozen(eq=False)
class CaptureTargets:
    """The tables that events are written to."""

    # Each table once; other fields refer to positions in this tuple
    tables: tuple[Table, ...]
    # Position of the target by source table; None if all events go to one table
    numbers: Mapping[str, int] | None = field(default=None)
    # For each table, its schema when it was opened
    opened: tuple[TableSchema, ...] = ()
    # For each table, the columns of its events; empty if missing columns are not added
    wanted: tuple[Mapping[str, DataType], ...] = ()
    # Positions of the tables whose new schema is not published yet
    planned: frozenset[int] = frozenset()

    @classmethod
    def of(cls, table: Targets, event_format: EventFormat, surveyed: SourceColumns) -> CaptureTargets:
        """Return the tables of an argument of `cdc`, at their newest schema; refuse tables that cannot be written.

        `surveyed` has the columns by source table, for a callable. Only one table is possible if the events do not name
        their source table.
        """
        if isinstance(table, Table):
            return cls._check((table,), None, event_format)
        if event_format.name in ("json", COLUMNS_FORMAT):
            raise InvalidRequest(
                f"Events of the format {event_format.name!r} do not name their source table.",
                subject="table",
                hint="pass one table",
            )
        named = {name: table(name) for name in sorted(surveyed)} if callable(table) else dict(table)
        found: dict[str, Table] = {}
        numbers: dict[str, int] = {}
        for source, target in named.items():
            if target is None:
                numbers[source] = SKIPPED
                continue
            place = f"{target.location}${target.definition.branch}"
            found.setdefault(place, target)
            numbers[source] = list(found).index(place)
        return cls._check(tuple(found.values()), numbers, event_format)

    @classmethod
    def _check(
        cls, tables: tuple[Table, ...], numbers: Mapping[str, int] | None, event_format: EventFormat
    ) -> CaptureTargets:
        newest = tuple(Table(load_at_newest_schema(table.context)) for table in tables)
        for table in newest:
            check_rows_writable(table.definition)
            event_format.check_columns(table.name, table.table_schema)
        return cls(newest, numbers, tuple(table.table_schema for table in tables))

    def make_column_checks(self) -> list[ColumnCheck]:
        """Return for each table a check of the columns that its rows need."""
        needed = (find_needed_columns(t.definition, o) for t, o in zip(self.tables, self.opened, strict=True))
        return [ColumnCheck.of(t.definition, KIND_COLUMN, n) for t, n in zip(self.tables, needed, strict=True)]

    @property
    def routes(self) -> Routes:
        """The tables as values, for `convert_events`."""
        return Routes(tuple(map(_describe_target, self.tables)), self.numbers)

    def plan_columns(self, surveyed: SourceColumns, ignores_case: bool = False) -> CaptureTargets:
        """Return the tables at schemas with all columns; `ignores_case` refuses names that differ in case."""
        wanted: list[dict[str, DataType]] = [{} for _ in self.tables]
        for source, columns in surveyed.items():
            number = 0 if self.numbers is None else self.numbers.get(source, SKIPPED)
            if number != SKIPPED:
                wanted[number] = merge_surveys({"": wanted[number]}, {"": columns})[""]
        if ignores_case:
            for table, columns in zip(self.tables, wanted, strict=True):
                _check_case(table, columns)
        plans = [plan_columns(table, columns) for table, columns in zip(self.tables, wanted, strict=True)]
        planned = frozenset(number for number, (_, is_planned) in enumerate(plans) if is_planned)
        tables = tuple(table for table, _ in plans)
        return evolve(self, tables=tables, wanted=tuple(wanted), planned=planned)


def _describe_target(table: Table) -> TargetTable:
    is_insert_only = not table.table_schema.primary_keys and not table.definition.options.ignore_delete
    return TargetTable(table.name, table.table_schema, is_insert_only)


def _check_case(table: Table, columns: Iterable[str]) -> None:
    known = {name.lower(): name for name in table.table_schema.names}
    for name in columns:
        other = known.setdefault(name.lower(), name)
        if other != name and name not in table.table_schema.names:
            raise InvalidRequest(
                f"Column {name!r} of the events differs from column {other!r} of table {table.name!r} only in case, "
                "which the session ignores.",
                subject=name,
                hint="write the name as the table does, or set spark.sql.caseSensitive to true",
            )


def plan_columns(table: Table, columns: Mapping[str, DataType]) -> tuple[Table, bool]:
    """Return a table at its newest schema, or at a planned one with more columns, and whether it is planned."""
    context = load_at_newest_schema(table.context)
    lacking = [n for n in columns if n not in context.schema.fields_by_name]
    if len(lacking) > _MOST_NEW_COLUMNS:
        message = f"The events add {len(lacking):,} columns to table {table.name!r} at once."
        hint = f"the limit is {_MOST_NEW_COLUMNS:,}; without merge_schema such events become dead letters"
        raise InvalidRequest(message, subject=table.name, hint=hint)
    added = [AddColumn(name, columns[name].with_nullable(True)) for name in lacking]
    return Table(plan_new_columns(context, added)), bool(added)


def check_rejected(converted: ConvertedEvents) -> None:
    """Raise `InvalidRequest` for the first event that cannot be read, if there is one."""
    if converted.rejected.num_rows:
        raise rejection_error(converted.rejected.slice(0, 1).to_pylist()[0])


def rejection_error(letter: Mapping[str, Any]) -> InvalidRequest:
    """Return the error for an event that cannot be read; `letter` is its row of a dead-letter table."""
    place = f"Event {letter['position']}"
    if letter["topic"] is not None and letter["offset"] is not None:
        place = f"Event at offset {letter['offset']} of partition {letter['partition']} of topic {letter['topic']!r}"
    return InvalidRequest(
        f"{place} cannot be read: {letter['reason']}",
        subject="events",
        hint="correct the event or the table, or pass dead_letters=… to set such events aside",
    )


@frozen(eq=False)
class _WriteEvents:
    """One call of `cdc`, which may be repeated."""

    event_format: EventFormat
    targets: CaptureTargets
    dead_letters: Table | None
    commit_user: str
    identifier: int

    def __call__(self, events: Iterator[pa.Table]) -> CdcResult | None:
        """Write the events and commit them; None, without a commit, if another process changed a schema."""
        prepared: dict[int, list[CommitMessage]] = {}
        with undo_on_failure(lambda: self._abort(prepared)):
            return self._write_and_commit(events, prepared)

    def _write_and_commit(
        self, events: Iterator[pa.Table], prepared: dict[int, list[CommitMessage]]
    ) -> CdcResult | None:
        """Do the call; `prepared` has the messages of each table until its commit begins."""
        counts, routes = EventCounts(), self.targets.routes
        checks = self.targets.make_column_checks()
        with ExitStack() as stack:
            writers: dict[int, TableWrite] = {}
            for part in events:
                converted = convert_events(part, self.event_format, routes, counts.events)
                counts += converted.counts
                self._write(converted, writers, stack)
                for number in converted.rows if self.event_format.has_column_names else ():
                    checks[number] = checks[number].add_rows(converted.rows[number], part.column_names)
            for check in checks:
                check.check_given()
            for number, writer in writers.items():
                prepared[number] = writer.prepare_commit()
        if not self._publish_columns(prepared):
            return None
        skipped = prepared.pop(SKIPPED, None)
        letters = self._commit(self.dead_letters, skipped) if self.dead_letters is not None else None
        results = {t.name: self._commit(t, prepared.pop(n, None)) for n, t in enumerate(self.targets.tables)}
        return CdcResult(results, counts.events, counts.rejected, counts.ignored, letters)

    def _write(self, converted: ConvertedEvents, writers: dict[int, TableWrite], stack: ExitStack) -> None:
        if self.dead_letters is None:
            check_rejected(converted)
        elif converted.rejected.num_rows:
            self._open(SKIPPED, self.dead_letters, writers, stack).write(converted.rejected)
        for number, rows in converted.rows.items():
            self._open(number, self.targets.tables[number], writers, stack).write(rows, KIND_COLUMN)

    def _open(self, number: int, table: Table, writers: dict[int, TableWrite], stack: ExitStack) -> TableWrite:
        if number not in writers:
            writer = self._make_builder(table).new_write()
            writers[number] = stack.enter_context(writer)
        return writers[number]

    def _publish_columns(self, messages: Mapping[int, list[CommitMessage]]) -> bool:
        """Publish the planned schemas of the tables that get rows; if one is outdated, delete all files."""
        for number in sorted(self.targets.planned & messages.keys()):
            if publish_planned_schema(self._make_builder(self.targets.tables[number]), messages[number]):
                continue
            self._abort({other: messages[other] for other in messages.keys() - {number}})
            return False
        return True

    def _abort(self, messages: Mapping[int, list[CommitMessage]]) -> None:
        """Delete the files of messages that are never committed; where the storage fails, they stay."""
        for number, prepared in messages.items():
            table = self.dead_letters if number == SKIPPED else self.targets.tables[number]
            assert table is not None
            with suppress(PaimonError):
                self._make_builder(table).new_commit().abort(prepared)

    def _make_builder(self, table: Table) -> BatchWriteBuilder:
        return table.new_batch_write_builder(self.commit_user)

    def _commit(self, table: Table, messages: list[CommitMessage] | None) -> WriteResult:
        commit = self._make_builder(table).new_commit()
        return commit_messages(commit, messages or [], identifier=self.identifier)


__all__ = ["DEAD_LETTER_SCHEMA", "CdcResult", "cdc"]
