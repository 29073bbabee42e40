"""Catalog: the databases and tables of one warehouse.

Invariant: a name is checked before it becomes part of a path, and a table is opened with its newest schema file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.display.notebook import NotebookDisplay, read_or_explain
from paimon.display.other_names import CATALOG_NAMES, explain_attribute
from paimon.domain.errors import (
    AlreadyExists,
    InvalidRequest,
    NotFound,
    PaimonError,
    PaimonWarning,
    Unsupported,
    did_you_mean,
)
from paimon.domain.identifier import (
    SYSTEM_DATABASE,
    Identifier,
    check_database_name,
    parse_identifier,
    parse_table_name,
)
from paimon.domain.options.setting import option_text
from paimon.domain.paths import TablePaths, check_segment, has_same_store
from paimon.domain.report import Report
from paimon.domain.schema.rules.layout import explain_key_scope
from paimon.domain.secrets import remove_password
from paimon.domain.text_checks import check_mapping, check_names
from paimon.domain.types.data_types import DataField
from paimon.domain.types.ddl import to_fields
from paimon.domain.undo import undo_on_failure
from paimon.ports.catalogs import CatalogStore
from paimon.ports.engine import Engine

if TYPE_CHECKING:
    from paimon.domain.predicate.expression import Predicate
    from paimon.domain.schema.table_schema import TableSchema
    from paimon.domain.snapshot.snapshot import Snapshot
    from paimon.operations.evolve import TableDeclaration
    from paimon.operations.refs.clone_table import ClonedTable
    from paimon.operations.write.migrate_files import MigratedTable
    from paimon.sql.run.result import SqlResult
    from paimon.sql.run.run_statements import SqlSession
    from paimon.system_table import SystemTable
    from paimon.table import Table

_DATABASES_SHOWN = 8
_OF_THE_CATALOG = ("exists", "location")
"""The properties of a database that the catalog sets itself."""
DEFAULT_OPTION = "table-default."
"""The prefix of catalog options that are copied into new tables."""
_Result = TypeVar("_Result")


@frozen(eq=False, repr=False)
class Catalog(NotebookDisplay):
    """The databases and tables of a warehouse; made by `paimon.connect`.

    Parameters
    ----------
    engine : Engine
        The ports that all its tables use.
    store : CatalogStore
        Where databases and tables are recorded.
    options : mapping
        Catalog options; ``table-default.X`` is copied into new tables as ``X``.
    recipe : tuple, optional
        A picklable function and its arguments that build such a catalog in another process, as for `Engine`.
    connect : callable, optional
        Opens the warehouse that CREATE CATALOG names; None refuses this statement.

    Examples
    --------
    >>> import paimon
    >>> catalog = paimon.connect("memory://lake")
    >>> catalog.create_database("shop")
    >>> catalog.databases()
    ['shop']
    """

    engine: Engine
    store: CatalogStore
    options: Mapping[str, str] = field(repr=False)
    recipe: tuple[Callable[..., Catalog], tuple[Any, ...]] | None = field(default=None, repr=False)
    connect: Callable[[str, Mapping[str, object]], Catalog] | None = field(default=None, repr=False)
    _sessions: list[SqlSession] = field(factory=list, init=False, repr=False)

    def __reduce__(self) -> tuple[Callable[..., Catalog], tuple[Any, ...]]:
        if self.recipe is None:
            raise InvalidRequest(
                "This catalog has no recipe and cannot be pickled.", hint="create it with paimon.connect"
            )
        return self.recipe

    @property
    def warehouse(self) -> str:
        """The root of the warehouse."""
        return self.store.warehouse

    def databases(self) -> list[str]:
        """Return the names of all databases, sorted.

        Raises
        ------
        NotFound
            The warehouse is a local directory that does not exist; `create_database` creates it. A warehouse under a
            URL that does not exist has no databases, because object stores have no empty directories.
        """
        names = sorted(self.store.databases())
        is_directory = "://" not in self.warehouse and self.engine.tables is None
        if not names and is_directory:
            status = self.engine.files.status(self.warehouse)
            if status is None or not status.is_directory:
                hint = "check the path, or create the warehouse with create_database(name) or 'paimon init'"
                raise NotFound("warehouse", self.warehouse, hint=hint)
        return names

    def create_database(
        self, name: str, *, properties: Mapping[str, str] | None = None, exist_ok: bool = False
    ) -> None:
        """Create a database.

        Parameters
        ----------
        name : str
            The name of the database.
        properties : mapping of str to str, optional
            Texts by name, such as an owner. Only a JDBC catalog stores them.
        exist_ok : bool
            Accept an existing database of this name, and leave its properties as they are.

        Raises
        ------
        AlreadyExists
            There is a database of this name.
        InvalidRequest
            The name or a property is not possible.
        Unsupported
            There are properties, and the catalog cannot store them.
        """
        check_database_name(name)
        given = _check_properties(properties)
        if not exist_ok or name not in self.store.databases():
            self.store.create_database(name, given)

    def database_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database; ``"location"`` is its directory.

        Raises
        ------
        NotFound
            There is no such database.
        """
        check_database_name(name)
        return dict(self.store.database_properties(name))

    def alter_database(self, name: str, set: Mapping[str, str] | None = None, *, remove: Sequence[str] = ()) -> None:
        """Change properties of a database, all or none of them.

        Parameters
        ----------
        name : str
            The name of the database.
        set : mapping of str to str, optional
            New values by property.
        remove : sequence of str
            Properties to remove. A property that is not set is ignored.

        Raises
        ------
        NotFound
            There is no such database.
        InvalidRequest
            A property is not possible.
        Unsupported
            The catalog cannot store properties: use a JDBC catalog.
        """
        check_database_name(name)
        removed = _check_properties(dict.fromkeys(remove, ""))
        self.store.alter_database(name, _check_properties(set), tuple(removed))

    def drop_database(self, name: str, *, cascade: bool = False, missing_ok: bool = False) -> None:
        """Delete a database.

        Parameters
        ----------
        name : str
            The name of the database.
        cascade : bool
            Also delete its tables with all their files.
        missing_ok : bool
            Accept a name without a database.

        Raises
        ------
        NotFound
            There is no such database.
        InvalidRequest
            The database contains tables, and `cascade` is false.
        """
        check_database_name(name)
        if name not in self.store.databases():
            if missing_ok:
                return
            raise NotFound("database", name, hint=did_you_mean(name, self.databases()))
        if not cascade:
            self._check_empty(name)
        self.store.drop_database(name)

    def _check_empty(self, database: str) -> None:
        tables = self.store.tables(database)
        if tables:
            raise InvalidRequest(
                f"Database {database!r} is not empty (number of tables: {len(tables)}).",
                subject=database,
                hint="pass cascade=True to drop them too",
            )

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted: another name of `databases`."""
        return self.databases()

    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the names of the tables of a database, sorted: another name of `tables`."""
        return self.tables(database)

    def tables(self, database: str | None = None) -> list[str]:
        """Return the names of the tables of a database, sorted; without one, ``database.table`` for all tables."""
        if database is None:
            return list(self)
        if database == SYSTEM_DATABASE:
            from paimon.system_table import CATALOG_TABLES

            return sorted(CATALOG_TABLES)
        self._check_database_exists(database)
        return sorted(self.store.tables(database))

    def create_table(  # noqa: PLR0913  (a public signature)
        self,
        name: str,
        schema: pa.Schema | str | Sequence[DataField],
        *,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        exist_ok: bool = False,
        replace: bool = False,
        allow_unknown_options: bool = False,
    ) -> Table:
        """Create a table.

        Parameters
        ----------
        name : str
            ``"database.table"``.
        schema : pyarrow.Schema or str or sequence of DataField
            The columns; a text is a column list in Paimon's types (``"id BIGINT NOT NULL, name STRING"``).
        primary_keys, partition_keys : sequence of str
            Column names.
        options : mapping
            Table options; values are stored as text.
        comment : str, optional
            What the table contains.
        exist_ok, replace : bool
            Return an existing table of this name, or replace it with all its rows and history. At most one is given.
        allow_unknown_options : bool
            Accept options that this library does not know.

        Returns
        -------
        Table
            The table at its newest schema. A `PaimonWarning` reports that keys are unique within a partition only.

        Raises
        ------
        InvalidRequest
            A name, column, key or option is not possible; nothing was created.
        AlreadyExists
            There is a table of this name.
        Unsupported
            `replace`, and the storage or a JDBC catalog cannot move directories.

        Examples
        --------
        >>> import paimon
        >>> catalog = paimon.connect("memory://create-table")
        >>> catalog.create_database("shop")
        >>> catalog.create_table("shop.orders", "id BIGINT NOT NULL, amount INT").schema.names
        ['id', 'amount']
        """
        is_replaced = _check_one_of(exist_ok, replace) and name in self
        if is_replaced or self._can_create(name, exist_ok):
            declaration = self._declare(schema, primary_keys, partition_keys, options, comment)
            self._create(parse_table_name(name), declaration, allow_unknown_options, is_replaced)
        return self.table(name)

    def create_filled_table(  # noqa: PLR0913  (a public signature)
        self,
        name: str,
        schema: pa.Schema | str | Sequence[DataField],
        fill: Callable[[Table], _Result],
        *,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        replace: bool = False,
    ) -> _Result | Snapshot | None:
        """Create a table together with its first rows: no reader sees the table without them.

        If the call dies, there is no table. The repeated call completes what an earlier one began, or starts again.

        Parameters
        ----------
        name : str
            The table, as ``database.table``.
        schema : pyarrow.Schema, str or sequence of DataField
            As in `create_table`.
        fill : callable
            Writes rows to the table that it is given, which has another branch than the new table.
        primary_keys, partition_keys, options, comment, replace : sequence of str, mapping, str or bool, optional
            As in `create_table`. The replaced table stays if `fill` fails.

        Returns
        -------
        object
            What `fill` returned. If an earlier call was completed, the latest snapshot of the table, or None.

        Raises
        ------
        InvalidRequest
            A name, column, key or option is not possible; nothing was created.
        AlreadyExists
            There is a table of this name.
        """
        from paimon.operations.refs.filled_tables import begin_filled_table

        def begin(paths: TablePaths) -> tuple[TablePaths, TableSchema]:
            """Declare the table in a branch."""
            declaration = self._declare(schema, primary_keys, partition_keys, options, comment)
            return begin_filled_table(self.engine, paths, declaration)

        if replace and name in self:
            declaration = self._declare(schema, primary_keys, partition_keys, options, comment)
            return self._replace(parse_table_name(name), declaration, fill)
        return self._create_filled(name, begin, fill)

    def _replace(
        self,
        identifier: Identifier,
        declaration: TableDeclaration,
        fill: Callable[[Table], _Result],
        allow_unknown_options: bool = False,
    ) -> _Result:
        """Create a table at a hidden place, fill it, and put it in the place of the table of this name."""
        from paimon.operations.evolve import build_catalog_properties, create_table
        from paimon.operations.refs.replace_table import name_hidden_place, require_directories, swap_tables
        from paimon.table import open_at

        directories, paths = require_directories(self.engine), self._paths(identifier)
        new = name_hidden_place(self.engine, paths, "new")
        with undo_on_failure(lambda: directories.delete_directory(new.root)):
            schema = create_table(self.engine, new, declaration, allow_unknown_options)
            filled = fill(cast("Table", open_at(self.engine, new.root, identifier, {})))
            old = swap_tables(self.engine, new, paths)
        with suppress(PaimonError):  # the table is replaced; what remains is not referenced
            directories.delete_directory(old.root)
        self.store.update_table(identifier.database, identifier.table, build_catalog_properties(schema))
        _warn_of_key_scope(identifier, schema)
        return filled

    def _create_filled(
        self,
        name: str,
        begin: Callable[[TablePaths], tuple[TablePaths, TableSchema]],
        fill: Callable[[Table], _Result],
    ) -> _Result | Snapshot | None:
        """Create a table from a branch that `begin` declares and `fill` fills; see `create_filled_table`."""
        from paimon.operations.refs.filled_tables import discard_branch, find_interrupted
        from paimon.table import open_at

        identifier = parse_table_name(name)
        self._check_database_exists(identifier.database)
        paths = self._paths(identifier)
        interrupted = find_interrupted(self.engine, paths)
        if interrupted is None:
            self._can_create(name, exist_ok=False)
        branch, declared = begin(paths)
        with undo_on_failure(lambda: discard_branch(self.engine, branch)):
            if interrupted is not None:
                return self._complete_table(identifier, interrupted, declared)
            opened = cast("Table", open_at(self.engine, paths.root, evolve(identifier, branch=branch.branch), {}))
            named = evolve(opened.definition, table_name=identifier.full_name)
            filled = fill(evolve(opened, context=opened.context.with_table(named)))
        self._complete_table(identifier, branch, declared)
        _warn_of_key_scope(identifier, declared)
        return filled

    def _complete_table(self, identifier: Identifier, branch: TablePaths, declared: TableSchema) -> Snapshot | None:
        """Make a branch the table that was declared, and register the table; return its latest snapshot."""
        from paimon.operations.evolve import build_catalog_properties
        from paimon.operations.refs.filled_tables import delete_creation_branches, publish_filled_table

        paths = self._paths(identifier)
        done = publish_filled_table(self.engine, branch, paths)
        if not self._has_table(identifier):
            self.store.register_table(identifier.database, identifier.table, build_catalog_properties(done.schema))
        delete_creation_branches(self.engine, paths)
        if not done.is_declared_as(declared):
            raise AlreadyExists("table", identifier.full_name, hint="its creation was interrupted, and is complete now")
        return done.snapshot

    def _can_create(self, name: str, exist_ok: bool) -> bool:
        """Return whether no such table exists; an existing one is an error unless `exist_ok`."""
        identifier = parse_table_name(name)
        self._check_database_exists(identifier.database)
        if not self._has_table(identifier):
            return True
        if not exist_ok:
            hint = "pass exist_ok=True to open the existing table"
            raise AlreadyExists("table", name, hint=hint)
        return False

    def _declare(
        self,
        schema: pa.Schema | str | Sequence[DataField],
        primary_keys: Sequence[str],
        partition_keys: Sequence[str],
        options: Mapping[str, object] | None,
        comment: str | None,
    ) -> TableDeclaration:
        """Check the types of what a caller declares, and add the catalog's default options."""
        from paimon.operations.evolve import TableDeclaration  # here and below: loaded when first used

        defaults = {k.removeprefix(DEFAULT_OPTION): v for k, v in self.options.items() if k.startswith(DEFAULT_OPTION)}
        return TableDeclaration(
            to_fields(schema),
            check_names(primary_keys, "primary_keys"),
            check_names(partition_keys, "partition_keys"),
            defaults | _to_option_texts(options),
            comment,
        )

    def _create(
        self, identifier: Identifier, declaration: TableDeclaration, allow_unknown_options: bool, is_replaced: bool
    ) -> None:
        """Write the first schema of a table, and register the table."""
        if is_replaced:
            self._replace(identifier, declaration, lambda _: None, allow_unknown_options)
            return
        from paimon.operations.evolve import build_catalog_properties, create_table

        schema = create_table(self.engine, self._paths(identifier), declaration, allow_unknown_options)
        self.store.register_table(identifier.database, identifier.table, build_catalog_properties(schema))
        _warn_of_key_scope(identifier, schema)

    def clone_table(
        self,
        source: str,
        target: str,
        *,
        where: str | Predicate | None = None,
        warehouse: str | Catalog | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        dry_run: bool = False,
    ) -> ClonedTable:
        """Copy a table with its files to another name, or to another warehouse.

        The clone has the schemas of the source and one snapshot; it shares no file with the source. Readers see it when
        it is complete. A missing database of the target is created.

        Parameters
        ----------
        source, target : str
            ``"database.table"``.
        where : str or Predicate, optional
            A condition on partition columns: copy only the files of these partitions.
        warehouse : str or Catalog, optional
            The warehouse of the target; by default this one.
        snapshot, tag : int or str, optional
            The state to copy, at most one; by default the latest.
        dry_run : bool
            Copy nothing, and return what would be copied.

        Returns
        -------
        ClonedTable
            The snapshot of the source, and how many files, bytes and rows it has.

        Raises
        ------
        NotFound
            There is no such table, snapshot or tag.
        AlreadyExists
            There is a table of the target's name; it is unchanged. Or an interrupted call, which copied another state,
            was completed.
        SnapshotExpired
            The snapshot expired during the call; nothing was created.
        """
        from paimon.builders.transfers import CloneRequest
        from paimon.operations.refs.clone_table import read_table_state
        from paimon.scan import condition_of
        from paimon.system_table import SystemTable

        if isinstance(opened := self._open_any(source, None), SystemTable):
            hint = "name the table without the $ part"
            raise InvalidRequest(f"{source!r} is a system table.", subject=source, hint=hint)
        context, other = opened.context, self._open_target(warehouse)
        state = read_table_state(context, snapshot, tag, None if where is None else condition_of(where))
        request = CloneRequest(context, state, target)
        if dry_run:
            return request.describe()
        other.create_database(parse_table_name(target).database, exist_ok=True)
        return request.run(other.engine, other._create_filled, other.table)

    def _open_target(self, warehouse: str | Catalog | None) -> Catalog:
        """Return this catalog, or the one of a warehouse."""
        if warehouse is None or isinstance(warehouse, Catalog):
            return warehouse or self
        if self.connect is None:
            raise Unsupported("another warehouse for this catalog", hint="pass a Catalog that paimon.connect returned")
        return self.connect(warehouse, {})

    def migrate_table(
        self,
        source: str,
        target: str,
        *,
        format: str | None = None,
        options: Mapping[str, object] | None = None,
        delete_origin: bool = False,
        partition_types: str | None = None,
        dry_run: bool = False,
    ) -> MigratedTable:
        """Make an append table of the Parquet, ORC or Avro files of a directory.

        The files are copied, and no row is decoded. Directories such as ``day=2026-01-01`` are partitions. Names that
        begin with ``_`` or ``.`` are left out. Readers see the table when it is complete.

        Parameters
        ----------
        source : str
            The directory, as a path or URL.
        target : str
            The new table, as ``"database.table"``.
        format : str, optional
            ``"parquet"``, ``"orc"`` or ``"avro"``; by default the ending of the file names.
        options : mapping, optional
            Options of the new table.
        delete_origin : bool
            Delete the files of the source that were copied, after the table is complete.
        partition_types : str, optional
            Types of partition columns, such as ``"day DATE, hour INT"``. By default a column of whole numbers is INT or
            BIGINT, and another one STRING.
        dry_run : bool
            Copy nothing, and return what would be copied.

        Returns
        -------
        MigratedTable
            The snapshot, and each file with its copy.

        Raises
        ------
        NotFound
            There are no files in the directory, or no such database.
        AlreadyExists
            There is a table of the target's name, or an interrupted call was completed.
        InvalidRequest
            The files have different columns, or an option is not possible; nothing was created.
        Unsupported
            Java's Paimon cannot read a column as a file stores it; nothing was created.
        """
        from paimon.builders.transfers import MigrationRequest
        from paimon.operations.write.migrate_files import MigrationSource

        own = self.connect is None or has_same_store(source, self.warehouse)
        opened = self if own else self._open_target(source)
        place = MigrationSource(opened.engine, source if own else opened.warehouse)
        request = MigrationRequest(place, target, format, partition_types)
        return request.run(self.create_filled_table, options, delete_origin, dry_run)

    def repair_table(self, name: str) -> Table:
        """Register a table whose files exist at its location, for instance because its creation was interrupted.

        Raises
        ------
        NotFound
            There is no table at the location.
        """
        from paimon.operations.evolve import build_catalog_properties
        from paimon.operations.metadata.schemas import latest_schema

        identifier = parse_table_name(name)
        self._check_database_exists(identifier.database)
        found = latest_schema(self.engine, self._paths(identifier))
        if found is None:
            raise self._missing_error(identifier)
        register = self.store.update_table if self._has_table(identifier) else self.store.register_table
        register(identifier.database, identifier.table, build_catalog_properties(found))
        return self.table(name)

    def maintain(
        self, database: str | None = None, *, full: bool = False, orphans: bool = False, dry_run: bool = False
    ) -> pa.Table:
        """Do the maintenance that is due for all tables, one after the other.

        Parameters
        ----------
        database : str, optional
            Only the tables of this database; by default of all databases.
        full, orphans, dry_run : bool
            As in `Maintain.run_due`.

        Returns
        -------
        pa.Table
            As `Maintain.run_due`. A table that cannot be opened has a row with the action ``open``.
        """

        def run_due(table: Table) -> pa.Table:
            """Do what is due for one table."""
            return table.maintain.run_due(full=full, orphans=orphans, dry_run=dry_run)

        return report_tables(self, database, run_due)

    def table(self, name: str, options: Mapping[str, object] | None = None) -> Table:
        """Open a table.

        Parameters
        ----------
        name : str
            ``"database.table"``, or ``"database.table$branch_b"`` for a branch. ``"database.table$snapshots"`` opens a
            `SystemTable`, which has the reading methods of a table; `system_table` is the same with that type.
        options : mapping
            Dynamic options, for this handle alone.

        Returns
        -------
        Table
            The table at its newest schema.

        Raises
        ------
        NotFound
            There is no such database or table.
        """
        return cast("Table", self._open_any(name, options))

    def open(self, name: str, options: Mapping[str, object] | None = None) -> Table:
        """Open a table: another name of `table`."""
        return self.table(name, options)

    def load_table(self, name: str, options: Mapping[str, object] | None = None) -> Table:
        """Open a table: another name of `table`."""
        return self.table(name, options)

    def __getitem__(self, name: str) -> Table:
        """Open a table: ``catalog["shop.orders"]`` is ``catalog.table("shop.orders")``."""
        return self.table(name)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a table of this name: ``"shop.orders" in catalog``; False for all other names."""
        try:
            identifier = parse_table_name(name) if isinstance(name, str) else None
        except InvalidRequest:
            return False
        if identifier is None or identifier.database not in self.store.databases():
            return False
        return self._has_table(identifier)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all tables, as ``"database.table"``, sorted by database and table."""
        for database in self.databases():
            yield from (f"{database}.{table}" for table in self.tables(database))

    def system_table(self, name: str, options: Mapping[str, object] | None = None) -> SystemTable:
        """Open a system table such as ``"database.table$snapshots"``.

        Raises
        ------
        InvalidRequest
            The name is that of a table, or there is no such system table.
        NotFound
            There is no such database or table.
        """
        from paimon.system_table import SystemTable, refuse_plain_table

        opened = self._open_any(name, options)
        return opened if isinstance(opened, SystemTable) else refuse_plain_table(name)

    def _open_any(self, name: str, options: Mapping[str, object] | None) -> Table | SystemTable:
        from paimon.table import open_at

        identifier = self._parse_name(name)
        if identifier.database == SYSTEM_DATABASE:
            from paimon.system_table import open_catalog_table

            if options or "$" in name:
                wrong = f"System table {identifier.full_name!r} of the catalog has no options and no part after $."
                raise InvalidRequest(wrong, subject=name, hint=f"open {identifier.full_name!r}")
            return open_catalog_table(self, identifier.table)
        self._check_database_exists(identifier.database)
        if not self._has_table(identifier):
            raise self._missing_error(identifier)
        return open_at(
            self.engine,
            self.store.table_location(identifier.database, identifier.table),
            identifier,
            _to_option_texts(options),
        )

    def _parse_name(self, name: str, parse: Callable[[str], Identifier] = parse_identifier) -> Identifier:
        """Parse the name of a table that exists; the error about a name without a database names full ones."""
        try:
            return parse(name)
        except InvalidRequest as error:
            from paimon.sql.missing_tables import suggest_full_name

            hint = suggest_full_name(name, self) or error.hint
            raise InvalidRequest(error.message, subject=error.subject, hint=hint) from error

    def drop_table(self, name: str, *, missing_ok: bool = False) -> None:
        """Delete a table with all its files.

        Parameters
        ----------
        name : str
            ``"database.table"``.
        missing_ok : bool
            Accept a name without a table.

        Raises
        ------
        NotFound
            There is no such table.
        """
        identifier = self._parse_name(name, parse_table_name)
        if not self._has_table(identifier):
            if missing_ok:
                return
            raise self._missing_error(identifier)
        self.store.drop_table(identifier.database, identifier.table)

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name, in the same or in another database.

        Parameters
        ----------
        name, new_name : str
            ``"database.table"``.

        Raises
        ------
        NotFound
            There is no such table, or the database of the new name does not exist.
        AlreadyExists
            There is a table of the new name, or another process creates it or renames a table to it.

        Notes
        -----
        On an object store the files are copied. Until the copy is whole, the table has its old name, and the new name
        is reserved: it cannot be opened or created. If the process dies, drop the new name, then rename again.
        """
        old, new = self._parse_name(name, parse_table_name), parse_table_name(new_name)
        self._check_database_exists(new.database)
        if not self._has_table(old):
            raise self._missing_error(old)
        self.store.rename_table(old.database, old.table, new.database, new.table)

    def sql(self, text: str, /, **frames: Any) -> SqlResult:
        """Run SQL statements in the session of this catalog; `docs/reference/sql.md` lists them.

        ``USE``, ``SET`` and temporary views stay in effect for later calls. Other threads use their own `sql_session`.

        Parameters
        ----------
        text : str
            One or more statements, separated by semicolons. Nothing runs if the syntax of one of them is wrong.
        **frames : object
            Arrow tables, data frames and other tabular data that queries read by name, like tables.

        Returns
        -------
        SqlResult
            The rows of the last statement.

        Raises
        ------
        InvalidRequest, NotFound, AlreadyExists, Unsupported
            A statement is not valid, names an unknown object, or is not supported. The statements before it have run.
        MissingExtra
            The extra ``sql`` is not installed, and a statement contains a query.

        Examples
        --------
        >>> import paimon
        >>> catalog = paimon.connect("memory://catalog-sql")
        >>> created = catalog.sql("CREATE TABLE orders (id BIGINT, amount INT)")
        >>> catalog.sql("INSERT INTO orders VALUES (1, 5), (2, 9)").to_arrow()["rows"].to_pylist()
        [2]
        """
        if not self._sessions:
            self._sessions.append(self.sql_session())
        return self._sessions[0].sql(text, **frames)

    def sql_session(self) -> SqlSession:
        """Open a session of SQL statements, with its own current database, views and settings."""
        from paimon.sql.run.run_statements import open_session

        return open_session(self, self.connect)

    if not TYPE_CHECKING:  # a type checker must not accept these names

        def __getattr__(self, name: str) -> NoReturn:
            raise explain_attribute(self, name, CATALOG_NAMES)

    def __repr__(self) -> str:
        return f"Catalog({remove_password(self.warehouse)!r})"

    def _report(self) -> Report:
        from paimon.display.cards import report_catalog

        names = read_or_explain(self.databases)
        if isinstance(names, str):
            return report_catalog(self.warehouse, names, 0)
        shown = {name: read_or_explain(partial(self.tables, name)) for name in names[:_DATABASES_SHOWN]}
        return report_catalog(self.warehouse, shown, len(names) - len(shown))

    def _paths(self, identifier: Identifier) -> TablePaths:
        return TablePaths(self.store.table_location(identifier.database, identifier.table))

    def _has_table(self, identifier: Identifier) -> bool:
        return self.store.has_table(identifier.database, identifier.table)

    def _missing_error(self, identifier: Identifier) -> NotFound:
        known = self.store.tables(identifier.database) if identifier.database in self.store.databases() else ()
        return NotFound("table", identifier.full_name, hint=did_you_mean(identifier.table, known))

    def _check_database_exists(self, database: str) -> None:
        check_segment(database, "database name")
        if database not in self.store.databases():
            hint = did_you_mean(database, self.databases())
            raise NotFound("database", database, hint=hint or "the warehouse is empty: create one first")


def _warn_of_key_scope(identifier: Identifier, schema: TableSchema) -> None:
    scope = explain_key_scope(schema)
    if scope is not None:
        warnings.warn(f"Table {identifier.full_name!r}: {scope}", PaimonWarning, stacklevel=4)


def _check_one_of(exist_ok: bool, replace: bool) -> bool:
    """Return `replace`, which excludes `exist_ok`."""
    if exist_ok and replace:
        wrong = "Both 'exist_ok' and 'replace' are given."
        raise InvalidRequest(wrong, subject="replace", hint="give one of them")
    return replace


def _check_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    given = dict(check_mapping(properties, "properties"))
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str) or key in _OF_THE_CATALOG:
            raise InvalidRequest(
                f"Property {key!r} of a database cannot be set to {value!r}.",
                subject=str(key),
                hint="use texts, and other names than 'exists' and 'location', which the catalog sets",
            )
    return given


def _to_option_texts(options: Mapping[str, object] | None) -> dict[str, str]:
    return {key: option_text(value) for key, value in check_mapping(options, "options").items()}


def report_tables(catalog: Catalog, database: str | None, run_due: Callable[[Table], pa.Table]) -> pa.Table:
    """Do what is due for the tables of a database, or of all, one after the other, and join their reports."""
    from paimon.operations.maintenance.due_work import DoneWork, to_report

    reports = [to_report([])]
    for name in list_table_names(catalog, database):
        try:
            report = run_due(catalog.table(name))
        except PaimonError as error:
            report = to_report([DoneWork(name, "open", error=str(error))])
        reports.append(report)
    return pa.concat_tables(reports)


def list_table_names(catalog: Catalog, database: str | None) -> list[str]:
    """Return the full names of the tables of one database or of all."""
    databases = catalog.databases() if database is None else [database]
    return [f"{found}.{table}" for found in databases for table in catalog.tables(found)]
