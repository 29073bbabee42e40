"""Session: the catalogs, the current database, the views and the settings that statements see.

Invariant: a session changes only by its own statements. It belongs to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa
from attrs import define, evolve, field, frozen

from paimon.domain.commit.message import ReadState
from paimon.domain.errors import InvalidRequest, NotFound, Unsupported, did_you_mean
from paimon.domain.types.data_types import DataField
from paimon.ports.engine import Engine
from paimon.ports.queries import QueryEngine, QuerySource
from paimon.ports.row_files import RowFiles
from paimon.sql.missing_tables import refuse_file, suggest_table
from paimon.sql.parse.statements import ObjectName, Query, TableName
from paimon.system_table import SystemTable

if TYPE_CHECKING:
    from paimon.builders.direct_writes import WriteResult
    from paimon.builders.merge_builder import MergeBuilder, MergeResult
    from paimon.domain.snapshot.snapshot import Snapshot
    from paimon.operations.refs.clone_table import ClonedTable
    from paimon.operations.row_level.numbered_rows import NumberedChange
    from paimon.operations.row_level.selected_rows import WrittenChanges
    from paimon.operations.write.migrate_files import MigratedTable
    from paimon.sql.parse.parse_script import ParsedStatement
    from paimon.system_table import SystemTable
    from paimon.table import Table

Filled = TypeVar("Filled")
DEFAULT_CATALOG = "paimon"
DEFAULT_DATABASE = "default"
OPTION_PREFIX = "paimon."
"""The beginning of settings that are dynamic options of all tables."""
Connect = Callable[[str, Mapping[str, object]], "SqlCatalog"]


class SqlCatalog(Protocol):
    """What statements need of `paimon.catalog.Catalog`; see there."""

    @property
    def engine(self) -> Engine:
        """The ports that its tables use."""

    @property
    def warehouse(self) -> str:
        """The root of the warehouse."""

    def databases(self) -> list[str]:
        """Return the names of all databases."""

    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database."""

    def create_filled_table(  # noqa: PLR0913  (a public signature)
        self,
        name: str,
        schema: Sequence[DataField],
        fill: Callable[[Table], Filled],
        *,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        replace: bool = False,
    ) -> Filled | Snapshot | None:
        """Create a table together with its first rows; see `Catalog.create_filled_table`."""

    def create_database(self, name: str, *, exist_ok: bool = False) -> None:
        """Create a database."""

    def alter_database(self, name: str, set: Mapping[str, str] | None = None, *, remove: Sequence[str] = ()) -> None:
        """Change properties of a database."""

    def drop_database(self, name: str, *, cascade: bool = False, missing_ok: bool = False) -> None:
        """Delete a database."""

    def create_table(
        self,
        name: str,
        schema: Sequence[DataField],
        *,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        replace: bool = False,
    ) -> Table:
        """Create a table."""

    def drop_table(self, name: str, *, missing_ok: bool = False) -> None:
        """Delete a table."""

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name."""

    def table(self, name: str, options: Mapping[str, object] | None = None) -> Table:
        """Open a table or a system table."""

    def repair_table(self, name: str) -> Table:
        """Register a table whose files exist."""

    def clone_table(self, source: str, target: str, *, warehouse: Any = None, dry_run: bool = False) -> ClonedTable:
        """Copy a table with its files; see `Catalog.clone_table`."""

    def migrate_table(self, source: str, target: str, *, dry_run: bool = False) -> MigratedTable:
        """Make a table of files; see `Catalog.migrate_table`."""


PlanSource = Callable[[], tuple[str, Mapping[str, QuerySource]]]
"""Returns a query and what it reads."""


class Workers(Protocol):
    """Changes tables with the workers of an engine, so that no row passes through this process."""

    def write_query(
        self,
        table: Table,
        sql: str,
        sources: Mapping[str, QuerySource],
        *,
        overwrite: bool,
        partition: Mapping[str, object] | None,
        read_state: ReadState | None = None,
    ) -> WriteResult:
        """Write the rows of a query, which has the columns of the table by name, in one commit.

        `overwrite` and `partition` are as in `Table.overwrite`. `read_state` is the oldest snapshot of the table that
        the query reads: the commit is refused if others changed rows since. A DOUBLE may be given for a FLOAT column.
        `sql` is in the dialect of `QueryEngine`.
        """

    def merge(self, merge: MergeBuilder, read_source: PlanSource) -> MergeResult:
        """Run a merge as `MergeBuilder.execute` does.

        `read_source` plans the source query on the newest snapshots; it is called again for each attempt.
        """

    def change_rows(self, change: NumberedChange, sql: str, sources: Mapping[str, QuerySource]) -> WrittenChanges:
        """Write the changes of rows that a query finds in a table without a primary key, and return what to commit.

        The query returns the number of each row, then its new values; its dialect is that of `write_query`.
        """

    def distribute(self, table: Table) -> Table:
        """Return a table whose row changes and maintenance run with the workers."""


@frozen
class TablePlace:
    """A table by its full name."""

    catalog_name: str
    database: str
    table: str
    catalog: SqlCatalog = field(eq=False, repr=False)

    @property
    def name(self) -> str:
        """``database.table``."""
        return f"{self.database}.{self.table}"


@frozen(eq=False)
class View:
    """A query with a name, whose tables have their full names."""

    query: Query
    # Names of the columns; empty to use those of the query
    columns: tuple[str, ...] = ()


@define(eq=False)
class Session:
    """A state machine: what statements have set so far."""

    catalogs: dict[str, SqlCatalog]
    # Opens a warehouse for CREATE CATALOG
    connect: Connect | None = None
    # The current catalog
    catalog_name: str = DEFAULT_CATALOG
    # The current database
    database: str = DEFAULT_DATABASE
    # Temporary views by name in lower case
    views: dict[str, View] = field(factory=dict)
    settings: dict[str, str] = field(factory=dict)
    # None means the query engine of the current catalog
    queries: QueryEngine | None = None
    # Change tables with the workers of `queries`; None means that rows pass through this process
    workers: Workers | None = None
    # Directories and URLs whose files statements may read and write; see `RowFiles`
    allowed_files: tuple[str, ...] = ()
    # Cache of the values of constant expressions by their text
    constants: dict[str, tuple[Any, ...]] = field(factory=dict, repr=False)
    # Cache of the statements of recent scripts by their text
    parsed: dict[str, list[ParsedStatement]] = field(factory=dict, repr=False)

    def copy(self) -> Session:
        """Return the session as it is now; later statements do not change it."""
        return evolve(self, views=dict(self.views), settings=dict(self.settings))

    @property
    def engine(self) -> Engine:
        """The ports of the current catalog."""
        return self.catalog().engine

    def open_row_files(self, name: str) -> RowFiles:
        """Return what opens files, for a function or statement; refuse it if the caller allowed no directory."""
        if self.engine.row_files is None:
            raise Unsupported(f"{name} in this engine", hint="set the field row_files of the Engine")
        if not self.allowed_files:
            hint = "allow a directory: sql(text, allowed_files=['dir']), or paimon sql --allow-files DIR"
            raise InvalidRequest(f"{name} needs files, and SQL may open none.", subject=name, hint=hint)
        return self.engine.row_files

    def distribute(self, table: Table) -> Table:
        """Return a table that changes rows and files with the workers, if there are some."""
        return table if self.workers is None else self.workers.distribute(table)

    def catalog(self, name: str | None = None) -> SqlCatalog:
        """Return a catalog; by default the current one."""
        wanted = self.catalog_name if name is None else name
        if wanted not in self.catalogs:
            raise NotFound("catalog", wanted, hint=did_you_mean(wanted, self.catalogs))
        return self.catalogs[wanted]

    def locate_database(self, parts: ObjectName) -> tuple[SqlCatalog, str]:
        """Return the catalog and the database that a name of one or two parts means."""
        if len(parts) > 2:
            raise InvalidRequest(f"{'.'.join(parts)!r} is not the name of a database.", subject=".".join(parts))
        return self.catalog(parts[0] if len(parts) == 2 else None), parts[-1]

    def locate(self, parts: ObjectName) -> TablePlace:
        """Return the full name of a table."""
        database = parts[-2] if len(parts) > 1 else self.database
        catalog_name = parts[0] if len(parts) == 3 else self.catalog_name
        return TablePlace(catalog_name, database, parts[-1], self.catalog(catalog_name))

    def qualify(self, name: TableName) -> TableName:
        """Return a name with all three parts."""
        place = self.locate(name.parts)
        return evolve(name, parts=(place.catalog_name, place.database, place.table))

    def open(self, name: TableName) -> Table | SystemTable:
        """Open a table or a system table with the options of its name and of the settings."""
        place = self.locate(name.parts)
        options = {**self.table_options(), **read_function_options(name), **name.options}
        try:
            return place.catalog.table(place.name, options)
        except (NotFound, InvalidRequest) as error:
            if isinstance(error, InvalidRequest):
                refuse_file(name.parts)
                raise
            raise self.explain_missing(name.parts, error) from error

    def explain_missing(self, parts: ObjectName, error: NotFound) -> NotFound:
        """Return the error about the table of a name, or its database, with what helps; refuse the name of a view."""
        if error.kind not in ("table", "database"):
            return error
        self.refuse_view(parts)
        if error.kind == "table" and (error.hint or "").startswith("did"):
            return error
        hint = suggest_table(parts, self.locate(parts).catalog, error, self.workers is not None)
        return NotFound(error.kind, error.name, hint=hint)

    def find_view(self, parts: ObjectName) -> View | None:
        """Return the view of a name; None if it is not the name of a view."""
        return self.views.get(parts[0].lower()) if len(parts) == 1 else None

    def refuse_view(self, parts: ObjectName) -> None:
        """Refuse the name of a view where a statement needs a table."""
        if self.find_view(parts) is not None:
            message = f"{parts[0]!r} is a view of this session, and not a table."
            raise InvalidRequest(message, subject=parts[0], hint="use it in queries; DROP VIEW removes it")

    def open_table(self, name: TableName) -> Table:
        """Open a table that a statement changes; refuse a system table."""
        opened = self.open(name)
        if isinstance(opened, SystemTable):
            raise InvalidRequest(
                f"System table {name.text!r} is read-only.", subject=name.text, hint="name the table without the $ part"
            )
        return opened

    def table_options(self) -> dict[str, str]:
        """Return the settings that are dynamic options of tables."""
        return {k.removeprefix(OPTION_PREFIX): v for k, v in self.settings.items() if k.startswith(OPTION_PREFIX)}


_INCREMENTAL: Mapping[str, tuple[str, int]] = {
    "paimon_incremental_query": ("incremental-between", 2),
    "paimon_incremental_between_timestamp": ("incremental-between-timestamp", 2),
    "paimon_incremental_to_auto_tag": ("incremental-to-auto-tag", 1),
}
"""Table functions: the option of each, and how many values it takes after the name of the table."""


def read_function_options(name: TableName) -> dict[str, str]:
    """Return the dynamic options of a table function; refuse unknown functions and wrong numbers of arguments."""
    if name.function is None:
        return {}
    if name.function not in _INCREMENTAL:
        hint = did_you_mean(name.function, _INCREMENTAL)
        raise InvalidRequest(f"Table function {name.function!r} does not exist.", subject=name.function, hint=hint)
    option, wanted = _INCREMENTAL[name.function]
    if len(name.arguments) != wanted:
        message = f"Table function {name.function!r} has {len(name.arguments)} arguments after the table's name."
        raise InvalidRequest(message, subject=name.function, hint=f"give {wanted}")
    return {option: ",".join(name.arguments)}


def list_names(names: Sequence[str], pattern: str | None) -> list[str]:
    """Return the names that a LIKE pattern selects; ``*`` means the same as ``%``."""
    if pattern is None:
        return list(names)
    import pyarrow.compute as pc

    mask = pc.match_like(pa.array(names, pa.string()), pattern.replace("*", "%"))
    return [name for name, fits in zip(names, mask.to_pylist(), strict=True) if fits]
