"""Run CREATE, ALTER, DROP and TRUNCATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, did_you_mean
from paimon.domain.options.known_options import OPTIONS, canonical_key
from paimon.domain.schema.changes import RemoveOption
from paimon.domain.types.arrow import fields_from_arrow
from paimon.domain.types.data_types import DataField
from paimon.sql.parse.statements import (
    AlterTable,
    CreateTable,
    DropPartitions,
    DropTable,
    Insert,
    RenameTable,
    TableName,
    Truncate,
)
from paimon.sql.plan.column_comments import find_column_comments
from paimon.sql.plan.plan_query import describe_query, plan_query
from paimon.sql.run.result import SqlResult
from paimon.sql.run.run_rows import insert_rows, report_completed
from paimon.sql.run.statement_run import StatementRun, report
from paimon.sql.session import DEFAULT_DATABASE, TablePlace

if TYPE_CHECKING:
    from paimon.table import Table


def _create_table(run: StatementRun, statement: CreateTable) -> SqlResult:
    place = run.session.locate(statement.name.parts)
    if place.database == DEFAULT_DATABASE:
        place.catalog.create_database(DEFAULT_DATABASE, exist_ok=True)
    if _has_table(place) and (statement.exist_ok or statement.query is None):
        if statement.exist_ok:
            return report(run, f"Table {place.name!r} exists.")
        raise _exists_error(place)
    if statement.like is not None:
        _check_no_columns(statement, "LIKE")
        return _create_like(run, statement, place)
    if statement.query is not None:
        _check_no_columns(statement, "AS")
        return _create_from_query(run, statement, place)
    place.catalog.create_table(
        place.name,
        statement.columns,
        primary_keys=statement.primary_keys,
        partition_keys=statement.partition_keys,
        options=statement.options,
        comment=statement.comment,
    )
    return report(run, f"Table {place.name!r} is created.")


def _exists_error(place: TablePlace) -> AlreadyExists:
    return AlreadyExists("table", place.name, hint="write CREATE TABLE IF NOT EXISTS to use it")


def _has_table(place: TablePlace) -> bool:
    return place.database in place.catalog.databases() and place.table in place.catalog.tables(place.database)


def _check_no_columns(statement: CreateTable, word: str) -> None:
    if statement.columns:
        raise InvalidRequest(
            f"CREATE TABLE … {word} has a list of columns.", subject=statement.name.text, hint="leave out the columns"
        )


def _create_like(run: StatementRun, statement: CreateTable, place: TablePlace) -> SqlResult:
    assert statement.like is not None
    model = run.session.open_table(statement.like).table_schema
    options = {key: value for key, value in model.options.items() if key != "path"}
    place.catalog.create_table(
        place.name,
        model.fields,
        primary_keys=statement.primary_keys or model.primary_keys,
        partition_keys=statement.partition_keys or model.partition_keys,
        options={**options, **statement.options},
        comment=statement.comment if statement.comment is not None else model.comment,
    )
    return report(run, f"Table {place.name!r} is created.")


def _create_from_query(run: StatementRun, statement: CreateTable, place: TablePlace) -> SqlResult:
    assert statement.query is not None
    planned = plan_query(run.session, statement.query, run.frames)
    schema = describe_query(run.session, planned)
    comments = find_column_comments(statement.query.tree, planned.sources)
    columns = [_to_column(column, comments.get(column.name.lower())) for column in fields_from_arrow(schema)]
    insert = Insert(TableName((place.catalog_name, place.database, place.table)), statement.query)
    try:
        done = place.catalog.create_filled_table(
            place.name,
            columns,
            lambda table: insert_rows(run, insert, table),
            primary_keys=statement.primary_keys,
            partition_keys=statement.partition_keys,
            options=statement.options,
            comment=statement.comment,
        )
    except AlreadyExists as error:
        raise (_exists_error(place) if error.kind == "table" else error) from error
    return done if isinstance(done, SqlResult) else report_completed(run, done)


def _to_column(column: DataField, comment: str | None) -> DataField:
    """Return a column of a query as one of a table; whether it may be null is not known."""
    return evolve(column, type=column.type.with_nullable(True), description=comment)


def _alter(run: StatementRun, statement: AlterTable) -> SqlResult:
    place = run.session.locate(statement.name.parts)
    if statement.missing_ok and not _has_table(place):
        return report(run, f"There is no table {place.name!r}.")
    opened = run.session.open_table(statement.name)
    _check_reset_options(opened, statement)
    table = opened.alter(*statement.changes)
    return report(run, f"Table {place.name!r} has schema {table.table_schema.id}.")


def _check_reset_options(table: Table, statement: AlterTable) -> None:
    """Refuse to reset an option that is not set, if another option has almost the same name."""
    options = table.table_schema.options
    for key in (change.key for change in statement.changes if isinstance(change, RemoveOption)):
        near = did_you_mean(key, {*options, *OPTIONS}) or ""
        if key not in options and canonical_key(key) not in OPTIONS and near.startswith("did"):
            raise InvalidRequest(f"Option {key!r} is unknown", subject=key, hint=near)


def _rename(run: StatementRun, statement: RenameTable) -> SqlResult:
    place = run.session.locate(statement.name.parts)
    if statement.missing_ok and not _has_table(place):
        return report(run, f"There is no table {place.name!r}.")
    parts = statement.new_name
    new = parts if len(parts) > 1 else (place.database, parts[0])
    if len(new) == 3 and new[0] != place.catalog_name:
        raise InvalidRequest("A table cannot be renamed to another catalog.", subject=".".join(new))
    place.catalog.rename_table(place.name, ".".join(new[-2:]))
    return report(run, f"Table {place.name!r} has the name {'.'.join(new[-2:])!r}.")


def _drop(run: StatementRun, statement: DropTable) -> SqlResult:
    place = run.session.locate(statement.name.parts)
    if place.database not in place.catalog.databases() and not statement.missing_ok:
        raise NotFound("database", place.database)
    if not _has_table(place):
        run.session.refuse_view(statement.name.parts)
        if statement.missing_ok:
            return report(run, f"There is no table {place.name!r}.")
    place.catalog.drop_table(place.name, missing_ok=statement.missing_ok)
    return report(run, f"Table {place.name!r} is dropped.")


def _drop_partitions(run: StatementRun, statement: DropPartitions) -> SqlResult:
    table = run.session.open_table(statement.name)
    snapshots = table.drop_partitions(*statement.partitions, missing_ok=statement.missing_ok)
    return report(run, f"Partitions of {table.name!r} are dropped (number of snapshots: {len(snapshots)}).")


def _truncate(run: StatementRun, statement: Truncate) -> SqlResult:
    table = run.session.open_table(statement.name)
    table.overwrite(table.arrow_schema.empty_table(), {})
    return report(run, f"Table {table.name!r} is empty.")


TABLE_RUNNERS: Mapping[type, Any] = {
    CreateTable: _create_table,
    AlterTable: _alter,
    RenameTable: _rename,
    DropTable: _drop,
    DropPartitions: _drop_partitions,
    Truncate: _truncate,
}
"""The function of each kind of statement."""
