"""Run SHOW, DESCRIBE and CALL, and write the CREATE TABLE statement of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.errors import InvalidRequest, NotFound, did_you_mean
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.secrets import redact_option
from paimon.domain.types.sql_tokens import StatementReader
from paimon.domain.types.type_text import format_field, format_type, quote_identifier, quote_name, quote_text
from paimon.operations.refs.clone_table import ClonedTable
from paimon.operations.write.migrate_files import MigratedTable
from paimon.sql.missing_tables import suggest_database
from paimon.sql.parse.parse_query import parse_query
from paimon.sql.parse.statements import Call, Describe, Show, TableName
from paimon.sql.plan.plan_query import describe_query, plan_query
from paimon.sql.run.result import SqlResult, StatementRun
from paimon.sql.session import Session, TablePlace, list_names
from paimon.system_table import SystemTable
from paimon.table import Table
from paimon.verbs.arguments import bind_arguments, complete_arguments
from paimon.verbs.verb import Verb
from paimon.verbs.verb_table import (
    CATALOG_PROCEDURES,
    HELP,
    PROCEDURES,
    call_help,
    find_procedure,
    list_procedures,
    run_verb,
    split_table_argument,
)


def _show(run: StatementRun, statement: Show) -> SqlResult:
    return _KINDS[statement.kind](run, statement)


def _show_catalogs(run: StatementRun, statement: Show) -> SqlResult:
    return run.to_result({"catalog": sorted(run.session.catalogs)})


def _show_current(run: StatementRun, statement: Show) -> SqlResult:
    what = statement.kind.rpartition(" ")[2]
    return run.to_result({what: [run.session.catalog_name if what == "catalog" else run.session.database]})


def _show_databases(run: StatementRun, statement: Show) -> SqlResult:
    catalog = run.session.catalog(statement.parts[0] if statement.parts else None)
    return run.to_result({"database": list_names(catalog.databases(), statement.pattern)})


def _show_tables(run: StatementRun, statement: Show) -> SqlResult:
    catalog, database = run.session.locate_database(statement.parts or (run.session.database,))
    try:
        names = catalog.tables(database)
    except NotFound as error:
        raise error if statement.parts else suggest_database(error, catalog) from error
    return run.to_result({"table": list_names(names, statement.pattern)})


def _show_table_extended(run: StatementRun, statement: Show) -> SqlResult:
    """Return a row with a description for each table of a database whose name matches."""
    names = _show_tables(run, statement).to_arrow()["table"].to_pylist()
    catalog, database = run.session.locate_database(statement.parts or (run.session.database,))
    texts = []
    for name in names:
        table = catalog.table(f"{database}.{name}")
        schema = table.table_schema
        facts = {
            "Location": table.location,
            "Comment": schema.comment,
            "Primary keys": ", ".join(schema.primary_keys),
            "Partitions": ", ".join(schema.partition_keys),
            "Options": ", ".join(f"{k}={redact_option(k, v)}" for k, v in sorted(schema.options.items())),
            "Columns": ", ".join(format_field(column) for column in schema.fields),
        }
        texts.append("\n".join(f"{key}: {value}" for key, value in facts.items() if value))
    return run.to_result({"database": [database] * len(names), "table": names, "information": texts})


def _show_tags(run: StatementRun, statement: Show) -> SqlResult:
    tags = run.session.open_table(TableName(statement.parts)).tags
    return run.to_result({"tag": list(tags)})


def _show_views(run: StatementRun, statement: Show) -> SqlResult:
    return run.to_result({"view": list_names(sorted(run.session.views), statement.pattern)})


def _show_procedures(run: StatementRun, statement: Show) -> SqlResult:
    chosen = set(list_names(sorted(PROCEDURES), statement.pattern))
    return run.to_rows(list_procedures(chosen))


def _show_settings(run: StatementRun, statement: Show) -> SqlResult:
    settings = run.session.settings
    return run.to_result({"key": list(settings), "value": list(settings.values())})


def _show_partitions(run: StatementRun, statement: Show) -> SqlResult:
    table = run.session.open_table(TableName(statement.parts))
    if not table.partition_keys:
        raise InvalidRequest(
            f"Table {table.name!r} has no partitions.",
            subject=table.name,
            hint="CREATE TABLE … PARTITIONED BY makes partitions",
        )
    wanted = {f"{key}={value}" for key, value in (statement.partition or {}).items()}
    unknown = [key for key in statement.partition or {} if key not in table.partition_keys]
    if unknown:
        raise NotFound("partition column", unknown[0], hint=did_you_mean(unknown[0], table.partition_keys))
    names = table.system_table("partitions").scan(columns=["partition"]).to_arrow()["partition"].to_pylist()
    chosen = [name for name in names if wanted <= set(name.split("/"))]
    return run.to_result({"partition": chosen})


def _show_columns(run: StatementRun, statement: Show) -> SqlResult:
    opened = run.session.open(TableName(statement.parts))
    return run.to_result({"column": list(opened.arrow_schema.names)})


def _show_options(run: StatementRun, statement: Show) -> SqlResult:
    options = dict(run.session.open_table(TableName(statement.parts)).table_schema.options)
    if statement.pattern is not None:
        if statement.pattern not in options:
            hint = did_you_mean(statement.pattern, options) or "the table has no options"
            raise NotFound("option", statement.pattern, hint=hint)
        options = {statement.pattern: options[statement.pattern]}
    return run.to_result({"key": list(options), "value": list(options.values())})


def _show_create_table(run: StatementRun, statement: Show) -> SqlResult:
    table = run.session.open_table(TableName(statement.parts))
    name = tuple(table.name.split(".", 1))
    return run.to_result({"statement": [_format_create_table(name, table.table_schema)]})


def _format_create_table(name: Sequence[str], schema: TableSchema) -> str:
    """Return a CREATE TABLE statement in Flink's dialect, in several lines and without a semicolon."""
    lines = [f"  {format_field(column)}" for column in schema.fields]
    if schema.primary_keys:
        lines.append(f"  PRIMARY KEY ({_join_names(schema.primary_keys)}) NOT ENFORCED")
    parts = [f"CREATE TABLE {'.'.join(map(quote_name, name))} (\n" + ",\n".join(lines) + "\n)"]
    if schema.comment:
        parts.append(f"COMMENT {quote_text(schema.comment)}")
    if schema.partition_keys:
        parts.append(f"PARTITIONED BY ({_join_names(schema.partition_keys)})")
    if schema.options:
        pairs = (
            f"  {quote_text(key)} = {quote_text(redact_option(key, v))}" for key, v in sorted(schema.options.items())
        )
        parts.append("WITH (\n" + ",\n".join(pairs) + "\n)")
    return "\n".join(parts)


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(map(quote_name, names))


def _describe(run: StatementRun, statement: Describe) -> SqlResult:
    if run.session.find_view(statement.name.parts) is not None:
        query = parse_query(StatementReader(f"SELECT * FROM {quote_identifier(statement.name.text)}"))
        schema = describe_query(run.session, plan_query(run.session, query, run.frames))
        return run.to_result({"column": schema.names, "type": [str(kind) for kind in schema.types]})
    opened = run.session.open(statement.name)
    if isinstance(opened, SystemTable):
        schema = opened.arrow_schema
        return run.to_result({"column": schema.names, "type": [str(kind) for kind in schema.types]})
    schema = opened.table_schema
    keys = dict.fromkeys(schema.primary_keys, "primary key")
    for name in schema.partition_keys:
        keys[name] = f"{keys[name]}, partition" if name in keys else "partition"
    rows: list[tuple[str | None, ...]] = [
        (f.name, format_type(f.type), keys.get(f.name), f.default_value, f.description) for f in schema.fields
    ]
    if statement.extended:
        snapshot = opened.snapshot()
        rows.append(("", None, None, None, None))
        facts = {
            "# Table": opened.name,
            "# Location": opened.location,
            "# Schema": schema.id,
            "# Snapshot": None if snapshot is None else snapshot.id,
            "# Comment": schema.comment or None,
            **{f"# Option {key}": value for key, value in sorted(schema.options.items())},
        }
        rows += [(name, None if v is None else str(v), None, None, None) for name, v in facts.items()]
    names = ("column", "type", "key", "default", "comment")
    return run.to_result(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _call(run: StatementRun, statement: Call) -> SqlResult:
    return run.to_rows(_call_procedure(run.session, statement))


def _call_procedure(session: Session, statement: Call) -> pa.Table:
    """Find the table that the first argument names, and run the verb on it."""
    if statement.procedure == HELP:
        return call_help(statement.positional, statement.named)
    if statement.procedure in CATALOG_PROCEDURES:
        return _call_catalog_procedure(session, CATALOG_PROCEDURES[statement.procedure], statement)
    verb = find_procedure(statement.procedure)
    name, given = split_table_argument(verb, statement.positional, statement.named)
    table = session.distribute(session.open_table(TableName(tuple(name.split(".")))))
    return run_verb(verb, table, given)


def _call_catalog_procedure(session: Session, verb: Verb[Any], statement: Call) -> pa.Table:
    """Run a verb on the current catalog, or on those of the tables which it names."""
    bound = bind_arguments(verb.name, verb.call_parameters, statement.positional, statement.named)
    return verb.to_arrow(verb.run(_SessionTables(session), *complete_arguments(verb, bound)))


@frozen
class _SessionTables:
    """The tables of the current catalog, whose work runs where that of the session runs."""

    _session: Session

    def __iter__(self) -> Iterator[str]:
        catalog = self._session.catalog()
        for database in catalog.databases():
            yield from (f"{database}.{table}" for table in catalog.tables(database))

    def tables(self, database: str | None = None) -> list[str]:
        """Return the names of the tables of a database; without one, of all, with their databases."""
        return list(self) if database is None else list(self._session.catalog().tables(database))

    def table(self, name: str) -> Table:
        """Open a table."""
        return self._session.distribute(self._session.catalog().table(name))

    def clone_table(self, source: str, target: str, *, warehouse: str | None = None, **given: Any) -> ClonedTable:
        """Copy a table, also to another catalog of the session."""
        place, new = self._locate(source), self._locate(target)
        other = new.catalog if warehouse is None else warehouse
        done = place.catalog.clone_table(place.name, new.name, warehouse=other, **given)
        return evolve(done, source=source, target=target)

    def migrate_table(self, source: str, target: str, **given: Any) -> MigratedTable:
        """Make a table of files."""
        place = self._locate(target)
        return place.catalog.migrate_table(source, place.name, **given)

    def repair_table(self, name: str) -> Table:
        """Register a table whose files exist."""
        place = self._locate(name)
        return place.catalog.repair_table(place.name)

    def _locate(self, name: str) -> TablePlace:
        return self._session.locate(tuple(name.split(".")))


_KINDS: Mapping[str, Callable[[StatementRun, Show], SqlResult]] = {
    "catalogs": _show_catalogs,
    "current catalog": _show_current,
    "current database": _show_current,
    "databases": _show_databases,
    "tables": _show_tables,
    "table extended": _show_table_extended,
    "tags": _show_tags,
    "views": _show_views,
    "procedures": _show_procedures,
    "settings": _show_settings,
    "partitions": _show_partitions,
    "columns": _show_columns,
    "options": _show_options,
    "create table": _show_create_table,
}
SHOW_RUNNERS: Mapping[type, Any] = {Show: _show, Describe: _describe, Call: _call}
"""The function of each kind of statement."""
