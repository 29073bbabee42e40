"""The tables of a catalog as views in a connection of DuckDB, which pushes its columns and filters down to them.

Invariant: all views of a catalog change at once, in one transaction, and each one keeps its snapshot until then.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Any, Protocol, cast

import duckdb
import pyarrow.dataset as ds
from attrs import evolve

from paimon.adapters.queries.attached_tables import ListedTables, open_dataset
from paimon.domain.errors import AlreadyExists, InvalidRequest
from paimon.domain.text_checks import check_text
from paimon.domain.types.type_text import quote_identifier
from paimon.ports.callbacks import CommitEvent
from paimon.ports.engine import Engine, with_callbacks

_RESERVED = ("information_schema", "pg_catalog")
"""Schemas of DuckDB that take no views."""


class ConnectedCatalog(ListedTables, Protocol):
    """A catalog, which is a value of attrs."""

    @property
    def engine(self) -> Engine:
        """The ports of its tables."""


class AttachedCatalog:
    """The views of a catalog in DuckDB; made by `paimon.attach_duckdb`. It may be used by several threads.

    `name` is the database in DuckDB. `catalog` is the attached catalog; commits to its tables refresh the views.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str, catalog: ConnectedCatalog) -> None:
        self.name = check_text(name, "name of the database")
        engine = with_callbacks(catalog.engine, [{f"views of {name} in DuckDB": self._refresh_after_commit}])
        self.catalog = evolve(cast(Any, catalog), engine=engine)
        self._lock = Lock()
        self._is_detached = False
        # A connection of its own, so that the current schema and transaction of the caller stay.
        self._connection = connection.cursor()
        (home,) = self._connection.execute("SELECT current_database(), current_schema()").fetchall()
        self._home = ".".join(map(quote_identifier, home))  # the attached database cannot be left without another one
        try:
            self._connection.execute(f"ATTACH ':memory:' AS {quote_identifier(name)}")
        except duckdb.BinderException as error:
            raise AlreadyExists(
                "database of DuckDB", name, hint="choose another name, or detach that database"
            ) from error
        is_ready = False
        try:
            self.refresh()
            is_ready = True
        finally:
            if not is_ready:
                self.detach()

    def refresh(self) -> None:
        """Show the newest snapshot of each table, new tables, and no more those that were dropped.

        Queries that run keep the snapshots with which they began. Refuses names of tables that differ only in case,
        because DuckDB takes them for one, and a call after `detach`.
        """
        with self._lock:
            if self._is_detached:
                raise InvalidRequest(
                    f"Database {self.name!r} is detached.", subject=self.name, hint="attach the catalog again"
                )
            datasets = self._open_tables()
            self._connection.execute("BEGIN")
            end = "ROLLBACK"
            try:
                self._replace_views(datasets)
                end = "COMMIT"
            finally:
                self._connection.execute(end)

    def detach(self) -> None:
        """Remove the database with its views from DuckDB."""
        with self._lock:
            if self._is_detached:
                return
            self._is_detached = True
            with suppress(duckdb.ConnectionException):  # DuckDB was closed, and its views with it
                self._connection.execute(f"USE {self._home}")
                self._connection.execute(f"DETACH {quote_identifier(self.name)}")
                self._connection.close()

    def _refresh_after_commit(self, event: CommitEvent) -> None:
        if self._is_detached:
            return
        try:
            self.refresh()
        except duckdb.ConnectionException:
            self._is_detached = True  # DuckDB was closed

    def _open_tables(self) -> dict[tuple[str, str], ds.Dataset]:
        """Choose a snapshot of each table that can be opened."""
        found: dict[tuple[str, str], ds.Dataset] = {}
        known: dict[str, str] = {}
        for name in self.catalog:
            other = known.setdefault(name.lower(), name)
            if other != name:
                hint = "rename one of them, or register the dataset of each table under a name of its own"
                raise InvalidRequest(
                    f"DuckDB cannot tell tables {other!r} and {name!r} apart.", subject=name, hint=hint
                )
            database, _, table = name.partition(".")
            if database.lower() in _RESERVED:
                raise InvalidRequest(
                    f"DuckDB reserves the name {database!r}.",
                    subject=database,
                    hint="rename the database, or register the dataset of each of its tables",
                )
            dataset = open_dataset(self.catalog, name)
            if dataset is not None:
                found[database, table] = dataset
        return found

    def _replace_views(self, datasets: dict[tuple[str, str], ds.Dataset]) -> None:
        rows = self._connection.execute(
            "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = ? AND NOT internal", [self.name]
        ).fetchall()
        for schema, view in rows:
            if (schema, view) not in datasets:
                self._connection.execute(
                    f"DROP VIEW {quote_identifier(self.name)}.{quote_identifier(schema)}.{quote_identifier(view)}"
                )
        for (schema, view), dataset in datasets.items():
            path = f"{quote_identifier(self.name)}.{quote_identifier(schema)}"
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {path}")
            self._connection.execute(f"USE {path}")
            self._connection.from_arrow(dataset).create_view(view, replace=True)
