"""Run statements about catalogs, databases, settings and views."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported, did_you_mean
from paimon.domain.options.validate import check_options
from paimon.sql.parse.statements import (
    CreateCatalog,
    CreateDatabase,
    DropCatalog,
    DropDatabase,
    DropView,
    ResetOption,
    SetOption,
    Use,
)
from paimon.sql.run.result import SqlResult
from paimon.sql.run.statement_run import StatementRun, report
from paimon.sql.session import DEFAULT_DATABASE, OPTION_PREFIX

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


def _set(run: StatementRun, statement: SetOption) -> SqlResult:
    key, value = statement.key, statement.value
    if key.startswith(OPTION_PREFIX):
        check_options({key.removeprefix(OPTION_PREFIX): value})
        run.session.settings[key] = value
        return report(run, f"All tables of this session have the option {key.removeprefix(OPTION_PREFIX)!r}.")
    if key.startswith(_WITHOUT_EFFECT):
        return report(run, f"Setting {key!r} of Flink has no effect here.")
    hint = f"a table option begins with {OPTION_PREFIX!r}, such as '{OPTION_PREFIX}scan.snapshot-id'"
    raise InvalidRequest(f"Setting {key!r} is not known.", subject=key, hint=hint)


def _reset(run: StatementRun, statement: ResetOption) -> SqlResult:
    settings = run.session.settings
    if statement.key is None:
        settings.clear()
        return report(run, "All settings are removed.")
    if statement.key not in settings:
        raise NotFound("setting", statement.key, hint=did_you_mean(statement.key, settings))
    del settings[statement.key]
    return report(run, f"Setting {statement.key!r} is removed.")


CATALOG_RUNNERS: Mapping[type, Any] = {
    CreateCatalog: _create_catalog,
    DropCatalog: _drop_catalog,
    Use: _use,
    CreateDatabase: _create_database,
    DropDatabase: _drop_database,
    DropView: _drop_view,
    SetOption: _set,
    ResetOption: _reset,
}
"""The function of each kind of statement."""
