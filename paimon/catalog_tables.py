"""The system tables about all tables of a catalog: the database ``sys``.

Source: `AllTablesTable`, `AllTableOptionsTable`, `CatalogOptionsTable`; names, order and types of columns are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.errors import NotFound, PaimonError, did_you_mean
from paimon.domain.identifier import SYSTEM_DATABASE
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.predicate.expression import Predicate
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.secrets import redact_option
from paimon.domain.types.arrow import fields_from_arrow
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.metadata.schemas import load_first_schema
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.system_table import SystemScan, SystemTable


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
    return {
        "record_count": int(live.number("_ROW_COUNT").sum()),
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
