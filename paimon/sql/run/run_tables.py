"""Run CREATE, ALTER and DROP of catalogs, databases, tables, branches, tags and views, USE, SET and RESET."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from attrs import evolve
from sqlglot import exp

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported, did_you_mean
from paimon.domain.options.known_options import OPTIONS, canonical_key
from paimon.domain.options.validate import check_options
from paimon.domain.schema.changes import RemoveOption
from paimon.domain.schema.external_paths import list_copied_options
from paimon.domain.types.arrow import fields_from_arrow
from paimon.domain.types.data_types import DataField
from paimon.ports.queries import QuerySource
from paimon.sql.parse.statements import (
    AlterDatabase,
    AlterTable,
    Analyze,
    ChangeTag,
    CreateCatalog,
    CreateDatabase,
    CreateTable,
    DropCatalog,
    DropDatabase,
    DropPartitions,
    DropTable,
    DropView,
    Insert,
    ObjectName,
    Refresh,
    RenameTable,
    ResetOption,
    SetOption,
    TableName,
    Truncate,
    Use,
)
from paimon.sql.plan.plan_query import ScanOrigin, describe_query, plan_query
from paimon.sql.run.result import SqlResult, StatementRun, report
from paimon.sql.run.run_rows import insert_rows, report_completed
from paimon.sql.session import DEFAULT_DATABASE, OPTION_PREFIX, TablePlace
from paimon.table import Table
from paimon.verbs.file_verbs import ANALYZE
from paimon.verbs.verb_table import run_verb

_STORAGE = "storage."
"""The beginning of options of CREATE CATALOG for the file system."""
_WITHOUT_EFFECT = ("execution.", "table.", "parallelism.", "sql-client.", "pipeline.", "state.", "taskmanager.")
"""The beginnings of Flink's settings, which configure a cluster that there is not."""


def _create_catalog(run: StatementRun, statement: CreateCatalog) -> SqlResult:
    session, options = run.session, dict(statement.options)
    if statement.name in session.catalogs:
        if statement.exist_ok:
            return report(run, f"Catalog {statement.name!r} exists.")
        raise AlreadyExists("catalog", statement.name, hint="write CREATE CATALOG IF NOT EXISTS")
    kind = options.pop("type", "paimon")
    if kind != "paimon":
        raise Unsupported(f"catalog type {kind!r}", hint="write 'type' = 'paimon'")
    if "warehouse" not in options:
        near = get_close_matches("warehouse", options, n=1)
        hint = f"{near[0]!r} is unknown" if near else "give its path"
        raise InvalidRequest("CREATE CATALOG needs the option 'warehouse'.", subject="warehouse", hint=hint)
    if session.connect is None:
        raise Unsupported("CREATE CATALOG in this catalog", hint="open the catalog with paimon.connect")
    storage = {k.removeprefix(_STORAGE): options.pop(k) for k in list(options) if k.startswith(_STORAGE)}
    arguments: dict[str, object] = {**options, **({"storage": storage} if storage else {})}
    catalog = session.connect(str(arguments.pop("warehouse")), arguments)
    catalog.create_database(DEFAULT_DATABASE, exist_ok=True)
    session.catalogs[statement.name] = catalog
    return report(run, f"Catalog {statement.name!r} is created for this session.")


def _drop_catalog(run: StatementRun, statement: DropCatalog) -> SqlResult:
    session = run.session
    if statement.name not in session.catalogs:
        if statement.missing_ok:
            return report(run, f"There is no catalog {statement.name!r}.")
        raise NotFound("catalog", statement.name, hint=did_you_mean(statement.name, session.catalogs))
    if statement.name == session.catalog_name:
        raise InvalidRequest(
            f"Catalog {statement.name!r} is the current one.", subject=statement.name, hint="USE CATALOG another first"
        )
    del session.catalogs[statement.name]
    return report(run, f"Catalog {statement.name!r} is removed from this session; its tables are unchanged.")


def _use(run: StatementRun, statement: Use) -> SqlResult:
    session, (first, *others) = run.session, statement.parts
    if len(others) > 1:
        raise InvalidRequest(f"{'.'.join(statement.parts)!r} is not the name of a database.", subject="USE")
    is_catalog = statement.kind == "catalog" or (not others and not statement.kind and first in session.catalogs)
    if is_catalog and not others:
        session.catalog(first)
        session.catalog_name, session.database = first, DEFAULT_DATABASE
        return report(run, f"The current catalog is {first!r}.")
    catalog_name, database = (first, others[0]) if others else (session.catalog_name, first)
    known = session.catalog(catalog_name).databases()
    if database not in known:
        raise NotFound("database", database, hint=did_you_mean(database, known))
    session.catalog_name, session.database = catalog_name, database
    return report(run, f"The current database is {database!r}.")


def _create_database(run: StatementRun, statement: CreateDatabase) -> SqlResult:
    catalog, name = run.session.locate_database(statement.parts)
    try:
        catalog.create_database(name, exist_ok=statement.exist_ok)
    except AlreadyExists as error:
        raise AlreadyExists("database", name, hint="write CREATE DATABASE IF NOT EXISTS") from error
    return report(run, f"Database {name!r} is created.")


def _alter_database(run: StatementRun, statement: AlterDatabase) -> SqlResult:
    catalog, name = run.session.locate_database(statement.parts)
    catalog.alter_database(name, statement.properties, remove=statement.removed)
    return report(run, f"Database {name!r} is changed.")


def _drop_database(run: StatementRun, statement: DropDatabase) -> SqlResult:
    catalog, name = run.session.locate_database(statement.parts)
    known = catalog.databases()
    if statement.missing_ok and name not in known:
        return report(run, f"There is no database {name!r}.")
    tables = catalog.tables(name) if name in known else []
    if tables and not statement.cascade:
        message = f"Database {name!r} is not empty (number of tables: {len(tables)})."
        raise InvalidRequest(message, subject=name, hint="add CASCADE to drop them too")
    catalog.drop_database(name, cascade=statement.cascade, missing_ok=statement.missing_ok)
    return report(run, f"Database {name!r} is dropped.")


def _drop_view(run: StatementRun, statement: DropView) -> SqlResult:
    views, key = run.session.views, statement.name.lower()
    if key not in views:
        if statement.missing_ok:
            return report(run, f"There is no view {statement.name!r}.")
        raise NotFound("view", statement.name, hint=did_you_mean(statement.name, views))
    del views[key]
    return report(run, f"View {statement.name!r} is dropped.")


def _set_option(run: StatementRun, statement: SetOption) -> SqlResult:
    key, value = statement.key, statement.value
    if key.startswith(OPTION_PREFIX):
        formats = run.session.catalog().engine.file_formats
        check_options({key.removeprefix(OPTION_PREFIX): value}, formats=formats)
        run.session.settings[key] = value
        return report(run, f"All tables of this session have the option {key.removeprefix(OPTION_PREFIX)!r}.")
    if key.startswith(_WITHOUT_EFFECT):
        return report(run, f"Setting {key!r} of Flink has no effect here.")
    hint = f"a table option begins with {OPTION_PREFIX!r}, such as '{OPTION_PREFIX}scan.snapshot-id'"
    raise InvalidRequest(f"Setting {key!r} is not known.", subject=key, hint=hint)


def _reset_option(run: StatementRun, statement: ResetOption) -> SqlResult:
    settings = run.session.settings
    if statement.key is None:
        settings.clear()
        return report(run, "All settings are removed.")
    if statement.key not in settings:
        raise NotFound("setting", statement.key, hint=did_you_mean(statement.key, settings))
    del settings[statement.key]
    return report(run, f"Setting {statement.key!r} is removed.")


def _create_table(run: StatementRun, statement: CreateTable) -> SqlResult:
    place = run.session.locate(statement.name.parts)
    if place.database == DEFAULT_DATABASE:
        place.catalog.create_database(DEFAULT_DATABASE, exist_ok=True)
    if _has_table(place) and not statement.replace and (statement.exist_ok or statement.query is None):
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
        replace=statement.replace,
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
    place.catalog.create_table(
        place.name,
        model.fields,
        primary_keys=statement.primary_keys or model.primary_keys,
        partition_keys=statement.partition_keys or model.partition_keys,
        options={**list_copied_options(model.options), **statement.options},
        comment=statement.comment if statement.comment is not None else model.comment,
        replace=statement.replace,
    )
    return report(run, f"Table {place.name!r} is created.")


def _create_from_query(run: StatementRun, statement: CreateTable, place: TablePlace) -> SqlResult:
    assert statement.query is not None
    planned = plan_query(run.session, statement.query, run.frames)
    schema = describe_query(run.session, planned)
    comments = _find_column_comments(statement.query.tree, planned.sources)
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
            replace=statement.replace,
        )
    except AlreadyExists as error:
        raise (_exists_error(place) if error.kind == "table" else error) from error
    return done if isinstance(done, SqlResult) else report_completed(run, done)


def _find_column_comments(tree: exp.Expression, sources: Mapping[str, QuerySource]) -> dict[str, str]:
    """Return the comments of the columns of a query, by column name in lower case; columns without one are left out.

    Only a single SELECT passes them on, as in Spark. `sources` has what the query reads, by table name in the tree.
    """
    if not isinstance(tree, exp.Select):
        return {}
    tables = dict(_find_tables(tree, sources))
    comments: dict[str, str] = {}
    for projection in tree.expressions:
        comments |= _find_comments(projection, tables)
    return comments


def _find_tables(tree: exp.Select, sources: Mapping[str, QuerySource]) -> Iterator[tuple[str, Sequence[DataField]]]:
    """Yield the tables of FROM and of its joins, under the names that the query gives them."""
    clauses = (*tree.args.values(), *(tree.args.get("joins") or ()))
    tables = (clause.this for clause in clauses if isinstance(clause, exp.From | exp.Join))
    for table in (table for table in tables if isinstance(table, exp.Table)):
        source = sources.get(table.name)
        origin = None if source is None else source.origin
        if isinstance(origin, ScanOrigin) and isinstance(origin.table, Table):
            yield table.alias_or_name.lower(), origin.table.table_schema.fields


def _find_comments(projection: exp.Expression, tables: Mapping[str, Sequence[DataField]]) -> dict[str, str]:
    column = projection.this if isinstance(projection, exp.Alias) else projection
    if not isinstance(column, exp.Star | exp.Column):
        return {}
    qualifier = "" if isinstance(column, exp.Star) else column.table.lower()
    fields = [field for name, columns in tables.items() if qualifier in ("", name) for field in columns]
    if isinstance(column, exp.Star) or isinstance(column.this, exp.Star):
        return {field.name.lower(): field.description for field in fields if field.description is not None}
    found = [field.description for field in fields if field.name.lower() == column.name.lower()]
    name = projection.alias_or_name.lower()
    return {name: found[0]} if len(found) == 1 and found[0] is not None else {}


def _to_column(column: DataField, comment: str | None) -> DataField:
    """Return a column of a query as one of a table; whether it may be null is not known."""
    return evolve(column, type=column.type.with_nullable(True), description=comment)


def _alter_table(run: StatementRun, statement: AlterTable) -> SqlResult:
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


def _rename_table(run: StatementRun, statement: RenameTable) -> SqlResult:
    place = run.session.locate(statement.name.parts)
    if statement.missing_ok and not _has_table(place):
        return report(run, f"There is no table {place.name!r}.")
    parts = statement.new_name
    new = parts if len(parts) > 1 else (place.database, parts[0])
    if len(new) == 3 and new[0] != place.catalog_name:
        raise InvalidRequest("A table cannot be renamed to another catalog.", subject=".".join(new))
    with _explain_missing(run, place, statement.name.parts):
        place.catalog.rename_table(place.name, ".".join(new[-2:]))
    return report(run, f"Table {place.name!r} has the name {'.'.join(new[-2:])!r}.")


@contextmanager
def _explain_missing(run: StatementRun, place: TablePlace, parts: ObjectName) -> Iterator[None]:
    """Add to the error about a missing table, or its database, what helps."""
    try:
        yield
    except NotFound as error:
        found = place.database in place.catalog.databases()
        missing = error if found else NotFound("database", place.database)
        raise run.session.explain_missing(parts, missing) from error


def _drop_table(run: StatementRun, statement: DropTable) -> SqlResult:
    place = run.session.locate(statement.name.parts)
    if statement.missing_ok and not _has_table(place):
        run.session.refuse_view(statement.name.parts)
        return report(run, f"There is no table {place.name!r}.")
    with _explain_missing(run, place, statement.name.parts):
        place.catalog.drop_table(place.name)
    return report(run, f"Table {place.name!r} is dropped.")


def _drop_partitions(run: StatementRun, statement: DropPartitions) -> SqlResult:
    table = run.session.open_table(statement.name)
    snapshots = table.drop_partitions(*statement.partitions, missing_ok=statement.missing_ok)
    return report(run, f"Partitions of {table.name!r} are dropped (number of snapshots: {len(snapshots)}).")


def _truncate_table(run: StatementRun, statement: Truncate) -> SqlResult:
    table = run.session.open_table(statement.name)
    table.overwrite(table.arrow_schema.empty_table(), {})
    return report(run, f"Table {table.name!r} is empty.")


def _change_tag(run: StatementRun, statement: ChangeTag) -> SqlResult:
    table = run.session.open_table(statement.name)
    tags, name = table.tags, statement.tag
    snapshot, time_retained = statement.snapshot, statement.time_retained
    match statement.action:
        case "rename":
            tag = tags.rename(name, str(statement.new_name))
        case "drop":
            if not (statement.is_lenient and name not in tags):
                tags.delete(name)
            return report(run, f"Tag {name!r} of {table.name!r} is dropped.")
        case "create or replace" | "replace" if statement.action == "replace" or name in tags:
            tag = tags.replace(name, snapshot, time_retained=time_retained)
        case _:
            tag = tags.create(name, snapshot, time_retained=time_retained, exist_ok=statement.is_lenient)
    return report(run, f"Tag {tag.name!r} of {table.name!r} names snapshot {tag.snapshot.id}.")


def _refresh_table(run: StatementRun, statement: Refresh) -> SqlResult:
    opened = run.session.open(statement.name)
    return report(run, f"Table {opened.name!r} is read at its newest state.")


def _analyze_table(run: StatementRun, statement: Analyze) -> SqlResult:
    table = run.session.distribute(run.session.open_table(statement.name))
    return run.to_rows(run_verb(ANALYZE, table, {"columns": statement.columns}))


TABLE_RUNNERS: Mapping[type, Any] = {
    CreateCatalog: _create_catalog,
    DropCatalog: _drop_catalog,
    Use: _use,
    CreateDatabase: _create_database,
    AlterDatabase: _alter_database,
    DropDatabase: _drop_database,
    DropView: _drop_view,
    SetOption: _set_option,
    ResetOption: _reset_option,
    CreateTable: _create_table,
    AlterTable: _alter_table,
    RenameTable: _rename_table,
    DropTable: _drop_table,
    DropPartitions: _drop_partitions,
    Truncate: _truncate_table,
    ChangeTag: _change_tag,
    Refresh: _refresh_table,
    Analyze: _analyze_table,
}
"""The function of each kind of statement."""
