"""SystemTable: a read-only table about a table (``orders$snapshots``).

Law: a system table shows what the metadata say, in the columns that Java's system tables have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.columnar import evaluate
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.text import describe
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow import fields_from_arrow
from paimon.notebook import NotebookDisplay, given_arguments
from paimon.operations.read.system.registry import SYSTEM_TABLES
from paimon.operations.read.system.views import DATA_VIEWS
from paimon.ports.engine import Engine
from paimon.results import Results
from paimon.scan import Scan, check_selection, predicate_of


@frozen(eq=False, repr=False)
class SystemTable(NotebookDisplay):
    """One system table of one table, seen from one branch."""

    engine: Engine
    definition: TableDefinition
    system_name: str

    @property
    def name(self) -> str:
        """``database.table$system``."""
        return f"{self.definition.identifier}${self.system_name}"

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: int | str | datetime | None = None,
    ) -> SystemScan | Scan:
        """A lazy read; see `Table.scan`."""
        travel = {"snapshot": snapshot, "tag": tag, "timestamp": timestamp}
        view = DATA_VIEWS.get(self.system_name)
        if view is not None:
            return Scan(
                self.engine,
                self.definition,
                columns=columns,
                where=where,
                limit=limit,
                snapshot=snapshot,
                tag=tag,
                timestamp=timestamp,
                view=view,
            )
        given = [name for name, value in travel.items() if value is not None]
        if given:
            raise InvalidRequest(f"{self.name} has no time travel", subject=given[0], hint=f"leave out {given[0]}")
        return SystemScan(self, columns, where, limit)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return self.scan().arrow_schema

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema: another name of `arrow_schema`."""
        return self.arrow_schema

    if not TYPE_CHECKING:  # a checker shall not take every name for an attribute

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name, name=name, obj=self)
            what = f"The system table {self.name!r} is read-only and has no {name!r}."
            raise AttributeError(f"{what} Open {self.definition.identifier!r} for it.", name=name, obj=self)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.name, {}


class SystemScan(NotebookDisplay, Results):
    """Rows of a system table, as they are when the first result is asked for."""

    def __init__(
        self, table: SystemTable, columns: Sequence[str] | None, where: str | Predicate | None, limit: int | None
    ) -> None:
        check_selection(columns, limit)
        self._system = table
        self._columns = columns
        self._where = where
        self._limit = limit
        self._rows: pa.Table | None = None

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        where = describe(self._where) if isinstance(self._where, Predicate) else self._where
        columns = None if self._columns is None else list(self._columns)
        return self._system.name, given_arguments(columns=columns, where=where, limit=self._limit)

    @property
    def arrow_schema(self) -> pa.Schema:
        return self._table().schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._table().to_batches()

    def _table(self) -> pa.Table:
        if self._rows is None:
            source = SYSTEM_TABLES[self._system.system_name]
            self._rows = self._shaped(source(self._system.engine, self._system.definition))
        return self._rows

    def _shaped(self, rows: pa.Table) -> pa.Table:
        if self._where is not None:
            rows = rows.filter(evaluate(bind(predicate_of(self._where), fields_from_arrow(rows.schema)), rows))
        if self._columns is not None:
            unknown = [c for c in self._columns if c not in rows.column_names]
            if unknown:
                raise InvalidRequest(
                    f"{self._system.name} has no column {unknown[0]!r}",
                    subject=unknown[0],
                    hint=did_you_mean(unknown[0], rows.column_names),
                )
            rows = rows.select(list(self._columns))
        return rows if self._limit is None else rows.slice(0, self._limit)


def refuse_plain_table(name: str) -> NoReturn:
    """Raise the error for a name that a system table was asked for by, and that names a table."""
    raise InvalidRequest(
        f"{name!r} names no system table.", subject=name, hint="add the name of one, such as $snapshots or $files"
    )


def open_system_table(engine: Engine, definition: TableDefinition, name: str) -> SystemTable:
    """The system table of this name; InvalidRequest with the nearest name where there is none."""
    known = SYSTEM_TABLES.keys() | DATA_VIEWS.keys()
    if not isinstance(name, str) or name not in known:
        raise InvalidRequest(f"there is no system table {name!r}", subject=name, hint=did_you_mean(name, known))
    return SystemTable(engine, definition, name)
