"""Maintain all tables of a catalog or of one database; see `Catalog.maintain`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from paimon.domain.errors import PaimonError
from paimon.operations.maintenance.due_work import DoneWork, to_report

if TYPE_CHECKING:
    from paimon.table import Table


class TableSource(Protocol):
    """What the maintenance needs of `paimon.catalog.Catalog`; see there."""

    def databases(self) -> list[str]:
        """Return the names of all databases."""

    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database."""

    def table(self, name: str) -> Table:
        """Open a table."""


def maintain_tables(catalog: TableSource, database: str | None, maintain: Callable[[Table], pa.Table]) -> pa.Table:
    """Maintain tables one after the other, and return the reports of all; `database` limits this to one database."""
    reports = [to_report([])]
    for name in list_table_names(catalog, database):
        try:
            report = maintain(catalog.table(name))
        except PaimonError as error:
            report = to_report([DoneWork(name, "open", error=str(error))])
        reports.append(report)
    return pa.concat_tables(reports)


def list_table_names(catalog: TableSource, database: str | None) -> list[str]:
    """Return the full names of the tables of one database or of all."""
    databases = catalog.databases() if database is None else [database]
    return [f"{found}.{table}" for found in databases for table in catalog.tables(found)]
