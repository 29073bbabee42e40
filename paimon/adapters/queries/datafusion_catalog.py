"""The tables of a catalog as a catalog of DataFusion, which pushes its columns and filters down to them.

Invariant: each table keeps its snapshot until `refresh`, so that all parts of a query read the same one.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.dataset as ds
from datafusion import SessionContext
from datafusion.catalog import CatalogProvider, SchemaProvider, Table

from paimon.adapters.queries.attached_tables import ListedTables, open_dataset
from paimon.domain.errors import AlreadyExists
from paimon.domain.text_checks import check_text

_Databases = Mapping[str, Mapping[str, ds.Dataset]]


class AttachedContext:
    """The tables of a catalog in DataFusion, under the catalog `name`; made by `paimon.attach_datafusion`."""

    def __init__(self, context: SessionContext, name: str, catalog: ListedTables) -> None:
        self.name = check_text(name, "name of the catalog")
        if name in context.catalog_names():
            raise AlreadyExists("catalog of DataFusion", name, hint="choose another name")
        self.catalog = catalog
        self._provider = _Catalog(_open_tables(catalog))
        context.register_catalog_provider(name, self._provider)

    def refresh(self) -> None:
        """Show newest snapshots and the present tables; running queries keep theirs. Not during a planning."""
        self._provider.databases = _open_tables(self.catalog)


class _Catalog(CatalogProvider):
    """The databases of a catalog."""

    def __init__(self, databases: _Databases) -> None:
        self.databases = databases

    def schema_names(self) -> set[str]:
        """Return the names of the databases."""
        return set(self.databases)

    def schema(self, name: str) -> SchemaProvider | None:
        """Return a database; None if it does not exist."""
        tables = self.databases.get(name)
        return None if tables is None else _Database(tables)


class _Database(SchemaProvider):
    """The tables of one database."""

    def __init__(self, tables: Mapping[str, ds.Dataset]) -> None:
        self._tables = tables

    @property
    def table_names(self) -> list[str]:
        """The names of the tables; DataFusion reads an attribute, although its own class has a method."""
        return list(self._tables)

    def table(self, name: str) -> Table | None:
        """Return a table; None if it does not exist."""
        dataset = self._tables.get(name)
        return None if dataset is None else Table(dataset)

    def table_exist(self, name: str) -> bool:
        """Return whether there is a table of this name."""
        return name in self._tables


def _open_tables(catalog: ListedTables) -> _Databases:
    found: dict[str, dict[str, ds.Dataset]] = {name: {} for name in catalog.databases()}
    for full_name in catalog:
        database, _, table = full_name.partition(".")
        dataset = open_dataset(catalog, full_name)
        if dataset is not None:
            found.setdefault(database, {})[table] = dataset
    return found
