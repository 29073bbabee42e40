"""SystemTable: a read-only table made from the metadata of a table (``orders$snapshots``).

Source: the columns are those of Java's system tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.display.notebook import NotebookDisplay, given_arguments, read_or_explain
from paimon.domain.columns.buffers import combine_column
from paimon.domain.errors import InvalidRequest, NotFound, PaimonError, did_you_mean
from paimon.domain.identifier import SYSTEM_DATABASE
from paimon.domain.manifest.entry_columns import files_at
from paimon.domain.options.table_options import TableOptions
from paimon.domain.partition.row_texts import RowTexts
from paimon.domain.paths import TablePaths
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.text import format_predicate
from paimon.domain.report import Report
from paimon.domain.scan.row_id_groups import count_rows
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.secrets import redact_option
from paimon.domain.types.arrow import fields_from_arrow
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.metadata.schemas import load_first_schema
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.read.evaluate import check_condition, evaluate_condition
from paimon.operations.read.system.columns import aggregation_fields_table, statistics_table
from paimon.operations.read.system.files import (
    file_indexes_table,
    file_key_ranges_table,
    files_table,
    manifests_table,
    table_indexes_table,
)
from paimon.operations.read.system.history import (
    branches_table,
    consumers_table,
    options_table,
    schemas_table,
    snapshots_table,
    tags_table,
)
from paimon.operations.read.system.partitions_and_buckets import buckets_table, partitions_table
from paimon.operations.read.system.views import DATA_VIEWS, ROW_TRACKING
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.results import Results
from paimon.scan import Scan, check_selection, condition_of, explain_large_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds

SystemTableSource = Callable[[TableContext], pa.Table]

SYSTEM_TABLES: Mapping[str, SystemTableSource] = {
    "aggregation_fields": aggregation_fields_table,
    "branches": branches_table,
    "buckets": buckets_table,
    "consumers": consumers_table,
    "file_indexes": file_indexes_table,
    "file_key_ranges": file_key_ranges_table,
    "files": files_table,
    "manifests": manifests_table,
    "options": options_table,
    "partitions": partitions_table,
    "schemas": schemas_table,
    "snapshots": snapshots_table,
    "statistics": statistics_table,
    "table_indexes": table_indexes_table,
    "tags": tags_table,
}
"""The system tables that are made from metadata, by name; each can be read."""
_FROM_MANIFESTS = frozenset(("buckets", "file_key_ranges", "files", "partitions"))
"""Those for which all manifests are read."""


_WITH_TEXTS: Mapping[str, Callable[[TableContext, RowTexts], pa.Table]] = {
    "buckets": buckets_table,
    "file_key_ranges": file_key_ranges_table,
    "files": files_table,
    "table_indexes": table_indexes_table,
}
"""The system tables that show partitions, keys or statistics, which may be shown in another form than Java's."""


@frozen(eq=False, repr=False)
class SystemTable(NotebookDisplay):
    """One system table of one table on one branch.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    system_name : str
        The name after the ``$``, such as ``"snapshots"``.
    """

    context: TableContext
    system_name: str

    @property
    def engine(self) -> Engine:
        """The ports through which this handle reads."""
        return self.context.engine

    @property
    def definition(self) -> TableDefinition:
        """The definition of the table that this system table describes."""
        return self.context.table

    @property
    def name(self) -> str:
        """``database.table$system``."""
        return f"{self.context.table.table_name}${self.system_name}"

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: int | str | datetime | None = None,
    ) -> SystemScan | Scan:
        """Return a lazy read; the parameters are those of `Table.scan`.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns of the result, in order; all by default.
        where : str or Predicate, optional
            Condition on rows.
        limit : int, optional
            The largest number of rows.
        snapshot, tag, timestamp : int, str, or int, str or datetime, optional
            Time travel, at most one; only for system tables that show rows of the table, such as ``audit_log``.

        Returns
        -------
        SystemScan or Scan
            It reads when rows are requested.

        Raises
        ------
        InvalidRequest
            The system table has no time travel, or `columns` or `limit` is not possible.
        """
        travel = {"snapshot": snapshot, "tag": tag, "timestamp": timestamp}
        view = DATA_VIEWS.get(self.system_name)
        if view is not None:
            return Scan(
                self.context,
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
            raise InvalidRequest(
                f"System table {self.name!r} has no time travel.", subject=given[0], hint=f"leave out {given[0]}"
            )
        return self._scan_metadata(columns, where, limit)

    def _scan_metadata(
        self, columns: Sequence[str] | None, where: str | Predicate | None, limit: int | None
    ) -> SystemScan:
        return SystemScan(self, columns, where, limit)

    def count(self, where: str | Predicate | None = None) -> int:
        """Return the number of rows, or of those where `where` is true."""
        return self.scan(where=where).count()

    def head(self, rows: int = 10) -> pa.Table:
        """Read at most `rows` rows; see `SystemScan.head`."""
        return self.scan().head(rows)

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table."""
        return self.scan().to_arrow()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows as a pandas DataFrame; `options` as in `SystemScan.to_pandas`."""
        return self.scan().to_pandas(**options)

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a polars DataFrame."""
        return self.scan().to_polars()

    def to_dataset(self) -> ds.Dataset:
        """Return the rows of this moment as a dataset of pyarrow, for query engines; see `Scan.to_dataset`."""
        return self.scan().to_dataset()

    def lazy(self) -> pl.LazyFrame:
        """Return the rows of this moment as a lazy frame of Polars; see `Scan.lazy`."""
        return self.scan().lazy()

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.arrow_schema.names)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return self.scan().arrow_schema

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema: another name of `arrow_schema`."""
        return self.arrow_schema

    if not TYPE_CHECKING:  # a type checker must not accept every attribute name

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name, name=name, obj=self)
            message = f"The system table {self.name!r} is read-only and has no {name!r}."
            raise AttributeError(f"{message} Open {self.context.table.table_name!r} for it.", name=name, obj=self)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.name, {}

    def _report(self) -> Report:
        found = self.scan()._report()
        # the table itself has no head
        parts = [part.replace("head(", "scan().head(") if isinstance(part, str) else part for part in found.parts]
        return evolve(found, title=self.name, kind="System table", parts=tuple(parts))


class SystemScan(NotebookDisplay, Results):
    """The rows of a system table at the first result; `columns` in their order, None for all."""

    def __init__(
        self,
        table: SystemTable,
        columns: Sequence[str] | None,
        where: str | Predicate | None,
        limit: int | None,
        source: SystemTableSource | None = None,
    ) -> None:
        self._source = SYSTEM_TABLES[table.system_name] if source is None else source
        self._system_table = table
        self._columns = check_selection(columns, limit)
        self._where = where
        self._limit = limit
        self._result: pa.Table | None = None

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        where = format_predicate(self._where) if isinstance(self._where, Predicate) else self._where
        columns = None if self._columns is None else list(self._columns)
        return self._system_table.name, given_arguments(columns=columns, where=where, limit=self._limit)

    def _report(self) -> Report:
        from paimon.display.cards import report_rows

        title, arguments = self._describe()
        return report_rows(title, "System scan", read_or_explain(copy(self)._read_preview), arguments)

    def _read_preview(self) -> pa.Table | str:
        """Return the first rows; a text says why there are none."""
        from paimon.display.cards import PREVIEW_ROWS

        context = self._system_table.context
        if self._result is None and self._system_table.system_name in _FROM_MANIFESTS:
            snapshot = latest_snapshot(context)
            reason = None if snapshot is None else explain_large_table(context, snapshot)
            if reason is not None:
                return reason
        return self._read_rows().slice(0, PREVIEW_ROWS + 1)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        return self._read_rows().schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._read_rows().to_batches()

    def _read_rows(self) -> pa.Table:
        if self._result is None:
            self._result = self._filter_and_project(self._source(self._system_table.context))
        return self._result

    def _evaluate_condition(self, where: Predicate, rows: pa.Table) -> pa.BooleanArray:
        fields, engine = fields_from_arrow(rows.schema), self._system_table.context.engine
        condition = bind(where, fields)
        check_condition(engine, condition, fields)
        columns = [combine_column(column) for column in rows.columns]
        return evaluate_condition(engine, condition, pa.RecordBatch.from_arrays(columns, schema=rows.schema))

    def _filter_and_project(self, rows: pa.Table) -> pa.Table:
        if self._where is not None:
            rows = rows.filter(self._evaluate_condition(condition_of(self._where), rows))
        if self._columns is not None:
            unknown = [c for c in self._columns if c not in rows.column_names]
            if unknown:
                raise InvalidRequest(
                    f"System table {self._system_table.name!r} has no column {unknown[0]!r}.",
                    subject=unknown[0],
                    hint=did_you_mean(unknown[0], rows.column_names),
                )
            rows = rows.select(list(self._columns))
        return rows if self._limit is None else rows.slice(0, self._limit)


def read_with_texts(table: SystemTable, texts: RowTexts) -> pa.Table:
    """Return all rows of a system table, with partitions, keys and statistics in another form than Java's."""
    return _WITH_TEXTS[table.system_name](table.context, texts)


def refuse_plain_table(name: str) -> NoReturn:
    """Raise the error for the name of a table where the name of a system table is expected."""
    raise InvalidRequest(
        f"{name!r} is not the name of a system table.", subject=name, hint="append $snapshots, $files or another"
    )


def open_system_table(context: TableContext, name: str) -> SystemTable:
    """Return the system table of this name."""
    known = SYSTEM_TABLES.keys() | DATA_VIEWS.keys()
    if not isinstance(name, str) or name not in known:
        raise InvalidRequest(f"There is no system table {name!r}.", subject=name, hint=did_you_mean(name, known))
    if name == ROW_TRACKING and not context.options.row_tracking_enabled:
        raise InvalidRequest(
            f"Table {context.table.table_name!r} has no row ids, which {name!r} shows.",
            subject=name,
            hint="only tables with the option 'row-tracking.enabled' have them",
        )
    return SystemTable(context, name)


# The system tables about all tables of a catalog: the database ``sys``. Names, order and types of columns are those of
# Java's `AllTablesTable`, `AllTableOptionsTable` and `CatalogOptionsTable`.


class OpenedTable(Protocol):
    """What the rows need of a table."""

    @property
    def context(self) -> TableContext:
        """The engine and the table."""


class ListedCatalog(Protocol):
    """What the rows need of `paimon.catalog.Catalog`."""

    @property
    def engine(self) -> Engine:
        """The ports of the catalog."""

    @property
    def warehouse(self) -> str:
        """The root of the warehouse."""

    @property
    def options(self) -> Mapping[str, str]:
        """The catalog options."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all tables."""

    def table(self, name: str) -> OpenedTable:
        """Open a table."""


_TEXT, _NUMBER = pa.string(), pa.int64()
_TABLES = pa.schema([
    ("database_name", _TEXT), ("table_name", _TEXT), ("table_type", _TEXT), ("partitioned", pa.bool_()),
    ("primary_key", pa.bool_()), ("owner", _TEXT), ("created_at", _NUMBER), ("created_by", _TEXT),
    ("updated_at", _NUMBER), ("updated_by", _TEXT), ("record_count", _NUMBER), ("file_size_in_bytes", _NUMBER),
    ("file_count", _NUMBER), ("last_file_creation_time", _NUMBER),
])  # fmt: skip
_TABLE_OPTIONS = pa.schema([(name, _TEXT) for name in ("database_name", "table_name", "key", "value")])
_CATALOG_OPTIONS = pa.schema([pa.field(name, _TEXT, nullable=False) for name in ("key", "value")])


def list_all_tables(catalog: ListedCatalog) -> pa.Table:
    """Return one row per table of the catalog; a table that cannot be read has only its names."""
    return pa.Table.from_pylist([_describe_table(catalog, name) for name in catalog], schema=_TABLES)


def _describe_table(catalog: ListedCatalog, name: str) -> dict[str, object]:
    database, _, bare = name.partition(".")
    row: dict[str, object] = {"database_name": database, "table_name": bare}
    try:
        context = catalog.table(name).context
        schema = context.schema
        row |= {
            "table_type": schema.options.get("type", "table"),
            "partitioned": bool(schema.partition_keys),
            "primary_key": bool(schema.primary_keys),
            "owner": schema.options.get("owner"),
            "created_at": load_first_schema(context.engine, context.paths).time_millis,
            "updated_at": schema.time_millis,
        }
        return row | _measure_table(context)
    except PaimonError:
        return row


def _measure_table(context: TableContext) -> dict[str, object]:
    """Return the sizes of the newest snapshot; none without a snapshot."""
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return {}
    live = read_live_columns(context, read_data_manifests(context, snapshot))
    created = live.number("_CREATION_TIME", missing=-1)
    rows = int(live.number("_ROW_COUNT").sum())
    return {
        "record_count": count_rows(files_at(live.files)) if context.options.data_evolution_enabled else rows,
        "file_size_in_bytes": int(live.number("_FILE_SIZE").sum()),
        "file_count": len(live),
        "last_file_creation_time": int(created.max()) if len(live) and created.max() >= 0 else None,
    }


def list_all_table_options(catalog: ListedCatalog) -> pa.Table:
    """Return one row per option that a table of the catalog stores; secrets are hidden."""
    rows = [
        {"database_name": name.partition(".")[0], "table_name": name.partition(".")[2], "key": key, "value": value}
        for name in catalog
        for key, value in _read_options(catalog, name).items()
    ]
    return pa.Table.from_pylist(rows, schema=_TABLE_OPTIONS)


def _read_options(catalog: ListedCatalog, name: str) -> dict[str, str]:
    try:
        options = catalog.table(name).context.schema.options
    except PaimonError:
        return {}
    return {key: redact_option(key, value) for key, value in sorted(options.items())}


def list_catalog_options(catalog: ListedCatalog) -> pa.Table:
    """Return one row per option of the catalog; secrets are hidden."""
    options = {"warehouse": catalog.warehouse, **catalog.options}
    rows = [{"key": key, "value": redact_option(key, value)} for key, value in sorted(options.items())]
    return pa.Table.from_pylist(rows, schema=_CATALOG_OPTIONS)


_Source = Callable[[ListedCatalog], pa.Table]
CATALOG_TABLES: Mapping[str, tuple[pa.Schema, _Source]] = {
    "all_table_options": (_TABLE_OPTIONS, list_all_table_options),
    "all_tables": (_TABLES, list_all_tables),
    "catalog_options": (_CATALOG_OPTIONS, list_catalog_options),
    "tables": (_TABLES, list_all_tables),
}
"""The tables of the database ``sys`` by name; ``all_tables`` is another name of Java's ``tables``."""


@frozen(eq=False, repr=False)
class CatalogTable(SystemTable):
    """A system table about all tables of a catalog; see `open_catalog_table`."""

    catalog: ListedCatalog = field(kw_only=True)

    @property
    def name(self) -> str:
        """``sys.table``."""
        return self.context.table.table_name

    def _scan_metadata(
        self, columns: Sequence[str] | None, where: str | Predicate | None, limit: int | None
    ) -> SystemScan:
        source = CATALOG_TABLES[self.system_name][1]
        return SystemScan(self, columns, where, limit, lambda _: source(self.catalog))


def open_catalog_table(catalog: ListedCatalog, name: str) -> CatalogTable:
    """Return the table of the database ``sys`` with this name, without the database."""
    if name not in CATALOG_TABLES:
        raise NotFound("table", f"{SYSTEM_DATABASE}.{name}", hint=did_you_mean(name, CATALOG_TABLES))
    fields = fields_from_arrow(CATALOG_TABLES[name][0])
    schema = TableSchema(0, fields, len(fields) - 1, (), (), {}, None, 0)
    paths = TablePaths(f"{catalog.warehouse}/{SYSTEM_DATABASE}.db/{name}")
    definition = TableDefinition(f"{SYSTEM_DATABASE}.{name}", paths, schema, TableOptions.of({}))
    return CatalogTable(TableContext(catalog.engine, definition), name, catalog=catalog)
