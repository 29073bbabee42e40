"""Run INSERT, UPDATE, DELETE and MERGE INTO.

Invariant: each statement is one commit of the table, and INSERT casts each column to the type of the table. A cast
value fits the column, or the cast fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import evolve, frozen

from paimon.builders.direct_writes import WriteResult, retry_source
from paimon.display.row_formats import ROW_FORMATS, find_format, write_rows
from paimon.domain.assignment.given_values import LateInput, to_expression
from paimon.domain.assignment.time_zones import UTC, ZONED_TYPES, is_instant, use_zone_in_condition, use_zone_in_value
from paimon.domain.columns.accept import can_accept
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import find_column
from paimon.domain.predicate.scalar_sql import parse_condition
from paimon.domain.predicate.zero_order import equate_zeros, is_floating
from paimon.domain.schema.missing_columns import MISSING_COLUMNS
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import INTEGER_TYPES, DataField, DataType, DoubleType, FloatType
from paimon.domain.types.field_ids import all_types
from paimon.domain.types.type_text import format_type, quote_identifier, quote_text
from paimon.results import SourceReads, find_reads
from paimon.sql.parse.parse_rows import is_default
from paimon.sql.parse.statements import CopyTo, Delete, Insert, Merge, Update
from paimon.sql.plan.plan_query import PlannedQuery, describe_query, plan_query, query_engine
from paimon.sql.run.expressions import SubqueryError, has_subquery, name_columns, read_assignment, read_condition
from paimon.sql.run.query_changes import change_by_query, merge_query
from paimon.sql.run.result import SqlResult, StatementRun

if TYPE_CHECKING:
    from paimon.sql.session import Workers
    from paimon.table import Table

_REPORT = pa.schema([("rows", pa.int64()), ("snapshot", pa.int64())])
_MERGE_REPORT = pa.schema([(name, pa.int64()) for name in ("inserted", "updated", "deleted", "snapshot")])
_EVERY_ROW = "TRUE"
_ENGINE_TYPES: dict[type[DataType], str] = {
    dt.BooleanType: "BOOLEAN",
    dt.TinyIntType: "TINYINT",
    dt.SmallIntType: "SMALLINT",
    dt.IntType: "INTEGER",
    dt.BigIntType: "BIGINT",
    dt.FloatType: "FLOAT",
    dt.DoubleType: "DOUBLE",
    dt.DateType: "DATE",
    dt.TimeType: "TIME",
    dt.CharType: "VARCHAR",
    dt.VarCharType: "VARCHAR",
    dt.BinaryType: "BLOB",
    dt.VarBinaryType: "BLOB",
    dt.BlobType: "BLOB",
    dt.LocalZonedTimestampType: "TIMESTAMPTZ",
}
_ENGINE_TIMESTAMPS = {0: "TIMESTAMP_S", 1: "TIMESTAMP_MS", 2: "TIMESTAMP_MS", 3: "TIMESTAMP_MS"}
"""The names of types in DuckDB's SQL."""


def insert_rows(run: StatementRun, statement: Insert, table: Table | None = None) -> SqlResult:
    """Insert the rows of a query, or replace partitions or the whole table by them.

    Nothing is written if the columns of the query do not fit.
    """
    # A column that the statement leaves out has its default or is null, as SQL defines it.
    table = (table or run.session.open_table(statement.name)).with_options({MISSING_COLUMNS: "null"})
    rows = _CastRows.plan(run, table, statement)
    # Without a static partition, the partitions of the rows are replaced, or the table as its options say.
    replaced = (statement.partition or None) if statement.overwrite else None
    _check_replaced(run, table, replaced or {})
    workers = run.session.workers
    if workers is None:
        done = table.overwrite(rows, replaced) if statement.overwrite else table.write(rows)
    elif statement.overwrite or table.primary_keys:
        write = partial(_write_in_tasks, workers, table, statement.overwrite, replaced)
        done = retry_source(table.context, rows, write)
    else:
        done = _write_in_tasks(workers, table, False, replaced, rows, None)
    return _report_rows(run, done.rows, done.snapshot_ids)


def _check_replaced(run: StatementRun, table: Table, partition: Mapping[str, object]) -> None:
    """Refuse to replace a partition of instants, whose text means one of UTC, in another time zone."""
    zone = _find_time_zone(run)
    for column in table.table_schema.fields:
        if zone != UTC and is_instant(column.type) and partition.get(column.name) is not None:
            hint = "leave PARTITION out, and give the instant in the query"
            raise Unsupported(f"INSERT OVERWRITE of partition {column.name!r} in time zone {zone}", hint=hint)


def _write_in_tasks(
    workers: Workers,
    table: Table,
    overwrite: bool,
    partition: Mapping[str, object] | None,
    rows: _CastRows,
    state: ReadState | None,
) -> WriteResult:
    sources = rows.planned.sources
    return workers.write_query(table, rows.sql, sources, overwrite=overwrite, partition=partition, read_state=state)


@frozen(eq=False)
class _CastRows:
    """The rows of a query in the types of the columns of a table; they can be read again after a conflict."""

    engine: Any
    planned: PlannedQuery
    sql: str
    again: Callable[[], _CastRows]

    @classmethod
    def plan(cls, run: StatementRun, table: Table, statement: Insert) -> _CastRows:
        """Plan the query, and the casts of its columns to those of the target table; refuse columns that do not fit."""
        planned, engine = plan_query(run.session, statement.query, run.frames), query_engine(run.session)
        described = describe_query(run.session, planned)
        given = _select_columns(table, tuple(described.names) if statement.by_name else statement.columns, statement)
        found = described.types
        if len(found) != len(given):
            message = f"INSERT INTO {table.name} needs {len(given)} columns, and the query has {len(found)}."
            hint = f"the columns are {', '.join(column.name for column in given)}"
            raise InvalidRequest(message, subject=table.name, hint=hint)
        in_tasks = run.session.workers is not None
        # An error about a value names its column. Numbers distinguish columns whose names differ in case only.
        names = [quote_identifier(c.name) for c in given]
        sources = names if len({n.lower() for n in names}) == len(names) else [f"c{i}" for i in range(len(names))]
        casts = [
            f"{_cast(source, kind, c.type, in_tasks)} AS {name}"
            for source, name, c, kind in zip(sources, names, given, found, strict=True)
        ]
        static = statement.partition or {}
        fields = {column.name: column for column in table.table_schema.fields}
        casts += [
            f"CAST({_to_literal(value)} AS {_to_engine_type(fields[name].type)}) AS {quote_identifier(name)}"
            for name, value in static.items()
        ]
        text = f"SELECT {', '.join(casts)} FROM ({planned.sql}) AS q({', '.join(sources)})"
        return cls(engine, planned, text, lambda: cls.plan(run.renew(), table, statement))

    def open(self) -> pa.RecordBatchReader:
        """Run the query."""
        return self.engine.run(self.sql, self.planned.sources)

    def __len__(self) -> int:
        """Say that the rows can be read again; `Table.write` asks whether its data has a length."""
        return 1

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.open().__arrow_c_stream__(requested_schema)


@find_reads.register
def _find_rows_reads(rows: _CastRows) -> SourceReads:
    return SourceReads(rows.planned.reads, rows.again)


def _cast(name: str, found: pa.DataType, wanted: DataType, in_tasks: bool) -> str:
    """Return a column as a value of a type; an integer of this type, and what contains a VARIANT, are not cast.

    A fraction is rounded here, because a cast rounds 2.5 to an even number in some engines only. Tasks round DOUBLE to
    a FLOAT column themselves, because Spark casts a number that is too large to infinity.
    """
    if any(isinstance(part, dt.VariantType) for part in all_types(wanted)) and can_accept(wanted, found):
        return name
    if isinstance(wanted, INTEGER_TYPES):
        if found == arrow_type(wanted):
            return name
        name = f"round_even({name}, 0)" if pa.types.is_floating(found) else name
    if isinstance(wanted, FloatType) and in_tasks and not pa.types.is_integer(found):
        wanted = DoubleType()
    return f"CAST({name} AS {_to_engine_type(wanted)})"


def _to_engine_type(kind: DataType) -> str:
    """Return the name of the type in DuckDB's SQL; raise `Unsupported` if SQL cannot create values of the type."""
    plain = _ENGINE_TYPES.get(type(kind))
    if plain is not None:
        return plain
    match kind:
        case dt.DecimalType(precision=p, scale=s):
            return f"DECIMAL({p}, {s})"
        case dt.TimestampType(precision=p):
            return _ENGINE_TIMESTAMPS.get(p, "TIMESTAMP" if p <= 6 else "TIMESTAMP_NS")
        case dt.ArrayType(element=e):
            return f"{_to_engine_type(e)}[]"
        case dt.VectorType(element=e, length=n):
            return f"{_to_engine_type(e)}[{n}]"
        case dt.MapType(key=k, value=v):
            return f"MAP({_to_engine_type(k)}, {_to_engine_type(v)})"
        case dt.MultisetType(element=e):
            return f"MAP({_to_engine_type(e)}, INTEGER)"
        case dt.RowType(fields=fields):
            inner = ", ".join(f'"{f.name.replace(chr(34), chr(34) * 2)}" {_to_engine_type(f.type)}' for f in fields)
            return f"STRUCT({inner})"
    raise Unsupported(f"type {format_type(kind)} in INSERT", hint="write the rows with Table.write")


def _select_columns(table: Table, names: Sequence[str], statement: Insert) -> list[DataField]:
    """Return the columns of the table that the query gives, in its order; without names, all columns."""
    fields = {column.name: column for column in table.table_schema.fields}
    static = statement.partition or {}
    for name in static:
        if name not in table.partition_keys:
            hint = did_you_mean(name, table.partition_keys)
            raise InvalidRequest(f"{name!r} is not a partition column of {table.name!r}.", subject=name, hint=hint)
    if not names:
        return [column for column in fields.values() if column.name not in static]
    chosen: list[DataField] = []
    for name in names:
        exact = find_column(name, fields)
        if exact is None:
            raise InvalidRequest(
                f"Table {table.name!r} has no column {name!r}.", subject=name, hint=did_you_mean(name, fields)
            )
        if exact in static or fields[exact] in chosen:
            raise InvalidRequest(f"Column {name!r} is given twice.", subject=name, hint="give it once")
        chosen.append(fields[exact])
    return chosen


def _to_literal(value: object) -> str:
    """Return a value of a PARTITION clause as a literal."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else quote_text(str(value))


def report_completed(run: StatementRun, snapshot: Snapshot | None) -> SqlResult:
    """Report the rows of a table whose creation an earlier statement began."""
    rows = (snapshot.total_record_count or 0) if snapshot else 0
    return _report_rows(run, rows, () if snapshot is None else (snapshot.id,))


def _report_rows(run: StatementRun, rows: int, snapshot_ids: Sequence[int]) -> SqlResult:
    return run.to_result({"rows": [rows], "snapshot": _first_or_none(snapshot_ids)}, _REPORT)


def _first_or_none(snapshot_ids: Sequence[int]) -> list[int | None]:
    """Return the snapshot of the rows, without that of a compaction after it."""
    return [next(iter(snapshot_ids), None)]


def _update(run: StatementRun, statement: Update) -> SqlResult:
    table = run.session.open_table(statement.name)
    statement = evolve(statement, assignments=_name_assigned_columns(table, statement.assignments))
    texts = {column: _name_columns(table, statement, text) for column, text in statement.assignments.items()}
    if _depends_on_zone(run, table, statement, texts):
        return _change_by_query(run, table, _cast_assignments(table, statement))
    try:
        values = {column: _defer(run, read_assignment, text) for column, text in texts.items()}
        done = run.session.distribute(table).update(values, _defer_condition(run, table, statement))
    except SubqueryError:
        return _change_by_query(run, table, statement)
    return _report_rows(run, done.rows, done.snapshot_ids)


def _delete(run: StatementRun, statement: Delete) -> SqlResult:
    table = run.session.open_table(statement.name)
    if _depends_on_zone(run, table, statement, {}):
        return _change_by_query(run, table, statement)
    try:
        done = run.session.distribute(table).delete(_defer_condition(run, table, statement))
    except SubqueryError:
        return _change_by_query(run, table, statement)
    return _report_rows(run, done.rows, done.snapshot_ids)


def _find_time_zone(run: StatementRun) -> str:
    """Return the time zone of what workers change; without workers, the library evaluates all of it in UTC."""
    return UTC if run.session.workers is None else str(query_engine(run.session).time_zone)


def _depends_on_zone(
    run: StatementRun, table: Table, statement: Update | Delete, assignments: Mapping[str, str]
) -> bool:
    """Return whether a statement may mean other rows or values in the time zone of the session than in UTC.

    The engine of queries then finds the rows: engines differ in the instant of a local time that clocks repeat.
    """
    zone = _find_time_zone(run)
    texts = [text for text in (statement.where, *assignments.values()) if text is not None]
    if zone == UTC or not texts:
        return False
    if any(map(has_subquery, texts)):
        return True
    fields = {field.name: field for field in table.table_schema.fields}
    known, values = tuple(fields.values()), {name: to_expression(text) for name, text in assignments.items()}
    where = None if statement.where is None else parse_condition(_name_columns(table, statement, statement.where))
    is_changed = where is not None and use_zone_in_condition(where, known, zone) != where
    is_changed = is_changed or any(
        name in fields and use_zone_in_value(value, fields[name], known, zone) != value
        for name, value in values.items()
    )
    if is_changed and table.context.options.data_evolution_enabled:
        hint = "spark.conf.set('spark.sql.session.timeZone', 'UTC'), or use Table.update"
        raise Unsupported(f"times in {zone} in a change of table {table.name!r} with data evolution", hint=hint)
    return is_changed


def _cast_assignments(table: Table, statement: Update) -> Update:
    """Return an UPDATE whose new values of dates and times have the types of their columns."""
    kinds = {f.name: f.type for f in table.table_schema.fields if isinstance(f.type, ZONED_TYPES)}
    texts = {
        name: f"CAST(({text}) AS {_to_engine_type(kinds[name])})" if name in kinds and not is_default(text) else text
        for name, text in statement.assignments.items()
    }
    return evolve(statement, assignments=texts)


def _defer(run: StatementRun, read: Callable[[StatementRun, str], Any], text: str) -> Any:
    """Return a condition or value whose subqueries run again for each attempt to change rows."""
    return LateInput(lambda: read(run.renew(), text)) if has_subquery(text) else read(run, text)


def _defer_condition(run: StatementRun, table: Table, statement: Update | Delete) -> str | Predicate:
    if statement.where is None or not has_subquery(statement.where):
        return find_changed_rows(run, table, statement)
    return LateInput(lambda: find_changed_rows(run.renew(), table, statement))


def _change_by_query(run: StatementRun, table: Table, statement: Update | Delete) -> SqlResult:
    done = change_by_query(run, table, statement)
    return _report_rows(run, done.rows, done.snapshot_ids)


def find_changed_rows(run: StatementRun, table: Table, statement: Update | Delete) -> str | Predicate:
    """Return the condition of the rows that a statement changes; without WHERE, it is true for every row."""
    if statement.where is None:
        return _EVERY_ROW
    fields = table.table_schema.fields
    found = read_condition(run, _name_columns(table, statement, statement.where))
    if not any(is_floating(part) for field in fields for part in all_types(field.type)):
        return found
    return equate_zeros(parse_condition(found) if isinstance(found, str) else found, fields)


def _name_columns(table: Table, statement: Update | Delete, text: str) -> str:
    names = (statement.alias,) if statement.alias else statement.name.parts
    return name_columns(text, names, table.table_schema.names)


def _name_assigned_columns(table: Table, assignments: Mapping[str, str]) -> dict[str, str]:
    """Return assignments by the column names of the table; refuse columns that are set twice.

    A name that matches no column is left unchanged, and is refused later.
    """
    named: dict[str, str] = {}
    for name, text in assignments.items():
        column = find_column(name, table.table_schema.names) or name
        if column in named:
            raise InvalidRequest(f"Column {name!r} is set twice.", subject=name, hint="set it once")
        named[column] = text
    return named


def _merge(run: StatementRun, statement: Merge) -> SqlResult:
    table = run.session.open_table(statement.name)
    aliases = {"source_alias": statement.source_alias, "target_alias": statement.target_alias}
    merge = table.merge((), statement.on, **aliases)
    merge = evolve(merge, request=evolve(merge.request, is_statement=True, time_zone=_find_time_zone(run)))
    for clause in statement.clauses:
        named = _name_assigned_columns(table, clause.values or {})
        values = {column: _defer(run, read_assignment, text) for column, text in named.items()}
        given = () if clause.values is None else (values,)
        condition = None if clause.condition is None else _defer(run, read_condition, clause.condition)
        method = f"when_{clause.rows} {clause.action}".lower().replace(" ", "_")
        is_all = clause.values is None and clause.action != "DELETE"
        merge = getattr(merge, f"{method}_all" if is_all else method)(*given, condition=condition)
    done = merge_query(run, merge, statement.query)
    counts = {"inserted": [done.inserted], "updated": [done.updated], "deleted": [done.deleted]}
    return run.to_result({**counts, "snapshot": _first_or_none(done.snapshot_ids)}, _MERGE_REPORT)


def _copy(run: StatementRun, statement: CopyTo) -> SqlResult:
    """Write the rows of a query to a file, which appears when it is complete."""
    form = statement.format_name or find_format(statement.path)
    if form not in ("json", *ROW_FORMATS):
        hint = f"use one of json, {', '.join(ROW_FORMATS)}"
        raise InvalidRequest(f"COPY cannot write the format {form!r}.", subject=form, hint=hint)
    files, roots = run.session.open_row_files("COPY"), run.session.allowed_files
    planned = plan_query(run.session, statement.query, run.frames)
    reader = query_engine(run.session).run(planned.sql, planned.sources)
    warehouses = [catalog.warehouse for catalog in run.session.catalogs.values()]
    with files.create(statement.path, roots, warehouses) as output:
        sink = pa.PythonFile(output, "w")
        rows = write_rows(reader, form, sink)
        sink.flush()
    return run.to_result({"rows": [rows]}, pa.schema([("rows", pa.int64())]))


ROW_RUNNERS: Mapping[type, Any] = {
    Insert: insert_rows,
    Update: _update,
    Delete: _delete,
    Merge: _merge,
    CopyTo: _copy,
}
"""The function of each kind of statement."""
