"""Catalog: the databases and tables of one warehouse.

Invariant: a name is checked before it becomes part of a path, and a table is opened with its newest schema file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, cast

import pyarrow as pa
from attrs import field, frozen

from paimon.display.notebook import NotebookDisplay, read_or_explain
from paimon.display.other_names import CATALOG_NAMES, explain_attribute
from paimon.domain.errors import InvalidRequest, NotFound, Unsupported, did_you_mean
from paimon.domain.identifier import (
    SYSTEM_DATABASE,
    Identifier,
    check_database_name,
    check_database_properties,
    parse_identifier,
    parse_table_name,
)
from paimon.domain.options.setting import option_text
from paimon.domain.paths import check_segment, has_same_store
from paimon.domain.report import Report
from paimon.domain.secrets import remove_password
from paimon.domain.text_checks import check_mapping
from paimon.domain.types.data_types import DataField
from paimon.ports.cancellation import finished_once_begun
from paimon.ports.catalogs import CatalogStore
from paimon.ports.engine import Engine

if TYPE_CHECKING:
    from paimon.builders.table_creation import TableCreation
    from paimon.domain.predicate.expression import Predicate
    from paimon.domain.snapshot.snapshot import Snapshot
    from paimon.operations.refs.clone_table import ClonedTable
    from paimon.operations.write.migrate_files import MigratedTable
    from paimon.sql.run.result import SqlResult
    from paimon.sql.run.run_statements import SqlSession
    from paimon.system_table import SystemTable
    from paimon.table import Table

_DATABASES_SHOWN = 8
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

    def close(self) -> None:
        """End the SQL session of `sql`, and release what the engine caches; the end of a ``with`` block calls it.

        The catalog and its tables stay usable, and cache again what they read.
        """
        self._sessions.clear()
        self.engine.cache.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        name, properties : str, mapping of str to str
            The name, and texts by name, such as an owner. Only a JDBC catalog stores properties.
        exist_ok : bool
            Accept an existing database of this name, and leave its properties as they are.

        Raises
        ------
        AlreadyExists, InvalidRequest
            There is a database of this name, or the name or a property is not possible.
        Unsupported
            There are properties, and the catalog cannot store them.
        """
        check_database_name(name)
        given = check_database_properties(properties)
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
        set, remove : mapping of str to str, sequence of str
            New values by property, and properties to remove. A property that is not set is ignored.

        Raises
        ------
        NotFound, InvalidRequest
            There is no such database, or a property is not possible.
        Unsupported
            The catalog cannot store properties: use a JDBC catalog.
        """
        check_database_name(name)
        removed = check_database_properties(dict.fromkeys(remove, ""))
        self.store.alter_database(name, check_database_properties(set), tuple(removed))

    def drop_database(self, name: str, *, cascade: bool = False, missing_ok: bool = False) -> None:
        """Delete a database.

        Parameters
        ----------
        name : str
            The name of the database.
        cascade, missing_ok : bool
            Also delete its tables with all their files; accept a name without a database.

        Raises
        ------
        NotFound, InvalidRequest
            There is no such database, or it contains tables and `cascade` is false.
        """
        check_database_name(name)
        if name not in self.store.databases():
            if missing_ok:
                return
            raise NotFound("database", name, hint=did_you_mean(name, self.databases()))
        if not cascade and (tables := self.store.tables(name)):
            wrong = f"Database {name!r} is not empty (number of tables: {len(tables)})."
            raise InvalidRequest(wrong, subject=name, hint="pass cascade=True to drop them too")
        from paimon.operations.refs.external_files import deleting_external_files

        tables = [self.store.table_location(name, table) for table in self.store.tables(name)]
        with deleting_external_files(self.engine, tables):
            self.store.drop_database(name)

    def tables(self, database: str | None = None) -> list[str]:
        """Return the names of the tables of a database, sorted; without one, ``database.table`` for all tables."""
        if database is None:
            return list(self)
        if database == SYSTEM_DATABASE:
            from paimon.system_table import CATALOG_TABLES

            return sorted(CATALOG_TABLES)
        self._check_database_exists(database)
        return sorted(self.store.tables(database))

    list_databases, list_tables = databases, tables  # other names

    @finished_once_begun()
    def create_table(  # noqa: PLR0913  (a public signature)
        self,
        name: str,
        schema: Any,
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
        schema : pyarrow.Schema, str, sequence of DataField, or frame
            The columns, as text in Paimon's types (``"id BIGINT NOT NULL, name STRING"``), or those of a frame or file.
        primary_keys, partition_keys : sequence of str
            Column names.
        options, comment : mapping, str, optional
            Table options, whose values are stored as text, and what the table contains.
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
        if exist_ok and replace:
            wrong = "Both 'exist_ok' and 'replace' are given."
            raise InvalidRequest(wrong, subject="replace", hint="give one of them")
        creation = self._creation_of(name)
        if not exist_ok or name not in self:
            declaration = creation.declare(schema, primary_keys, partition_keys, self._add_defaults(options), comment)
            creation.create(declaration, allow_unknown_options, replace)
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
        name, schema : str, pyarrow.Schema and others
            As in `create_table`.
        fill : callable
            Writes rows to the table that it is given, which has another branch than the new table.
        primary_keys, partition_keys, options, comment, replace : sequence of str, mapping, str, bool
            As in `create_table`. The replaced table stays if `fill` fails.

        Returns
        -------
        object
            What `fill` returned. If an earlier call was completed, the latest snapshot of the table, or None.

        Raises
        ------
        InvalidRequest, AlreadyExists
            As in `create_table`.
        """
        from paimon.operations.refs.filled_tables import begin_filled_table

        creation = self._creation_of(name)
        declaration = creation.declare(schema, primary_keys, partition_keys, self._add_defaults(options), comment)
        if replace and name in self:
            return creation.replace(declaration, fill)
        return creation.create_filled(lambda paths: begin_filled_table(self.engine, paths, declaration), fill)

    def _creation_of(self, name: str) -> TableCreation:
        """Return the steps that make a table of this name, whose database must exist."""
        from paimon.builders.table_creation import TableCreation
        from paimon.table import open_at

        identifier = parse_table_name(name)
        self._check_database_exists(identifier.database)
        return TableCreation(self.engine, self.store, identifier, partial(open_at, self.engine, options={}))

    def _add_defaults(self, options: Mapping[str, object] | None) -> dict[str, str]:
        """Return the options of a new table, with the catalog's default options."""
        defaults = {k.removeprefix(DEFAULT_OPTION): v for k, v in self.options.items() if k.startswith(DEFAULT_OPTION)}
        return defaults | _to_option_texts(options)

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

        name, other = parse_table_name(target), self._open_target(warehouse)
        request = CloneRequest.of(self._open_any(source, None), name, snapshot, tag, where)
        if dry_run:
            return request.describe()
        other.create_database(name.database, exist_ok=True)
        return request.run(other._creation_of(target))

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
        source, target : str
            The directory, as a path or URL, and the new table, as ``"database.table"``.
        format, options : str, mapping, optional
            ``"parquet"``, ``"orc"`` or ``"avro"``, by default the ending of the file names; options of the new table.
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

    @finished_once_begun()
    def repair_table(self, name: str) -> Table:
        """Register a table whose files exist at its location, for instance because its creation was interrupted.

        Raises
        ------
        NotFound
            There is no table at the location.
        """
        from paimon.operations.metadata.schemas import latest_schema

        creation = self._creation_of(name)
        found = latest_schema(self.engine, creation.paths)
        if found is None:
            raise self._missing_error(creation.identifier)
        creation.register(found, known=self._has_table(creation.identifier))
        return self.table(name)

    def maintain(
        self, database: str | None = None, *, full: bool = False, orphans: bool = False, dry_run: bool = False
    ) -> pa.Table:
        """Do the maintenance that is due for all tables, one after the other.

        Parameters
        ----------
        database, full, orphans, dry_run : str, bool
            Only the tables of this database, by default of all databases; the others as in `Maintain.run_due`.

        Returns
        -------
        pa.Table
            As `Maintain.run_due`. A table that cannot be opened has a row with the action ``open``.
        """
        from paimon.operations.maintenance.due_work import report_tables

        names = self if database is None else [f"{database}.{name}" for name in self.tables(database)]
        given = {"full": full, "orphans": orphans, "dry_run": dry_run}
        return report_tables(names, self.table, lambda table: table.maintain.run_due(**given))

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

    open = load_table = __getitem__ = table  # other names

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
        InvalidRequest, NotFound
            The name is that of a table, or there is no such system table, database or table.
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
        check_segment(identifier.database, "database name")
        if not self._has_table(identifier):
            self._check_database_exists(identifier.database)
            raise self._missing_error(identifier)
        location = self.store.table_location(identifier.database, identifier.table)
        return open_at(self.engine, location, identifier, _to_option_texts(options))

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
        name, missing_ok : str, bool
            ``"database.table"``, and whether a name without a table is accepted.

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
        from paimon.operations.refs.external_files import deleting_external_files

        with deleting_external_files(self.engine, [self.store.table_location(identifier.database, identifier.table)]):
            self.store.drop_table(identifier.database, identifier.table)

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name, in the same or in another database.

        Raises
        ------
        NotFound, AlreadyExists
            There is no such table or database; or the new name is in use, also by a creation or rename at this moment.

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

    def sql(self, text: str, /, *, allowed_files: Sequence[str] | None = None, **frames: Any) -> SqlResult:
        """Run SQL statements in the session of this catalog; `docs/reference/sql.md` lists them.

        ``USE``, ``SET`` and temporary views stay in effect for later calls. Other threads use their own `sql_session`.

        Parameters
        ----------
        text : str
            One or more statements, separated by semicolons. Nothing runs if the syntax of one of them is wrong.
        allowed_files : sequence of str, optional
            Directories and URLs whose files ``read_parquet('path')`` and ``COPY … TO`` may open; none by default.
        **frames : object
            Arrow tables, data frames and other data that queries read by name.

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
        return self._sessions[0].sql(text, allowed_files=allowed_files, **frames)

    def sql_session(self, allowed_files: Sequence[str] = ()) -> SqlSession:
        """Open a session of SQL statements, with its own current database, views, settings and allowed files."""
        from paimon.sql.run.run_statements import open_session

        return open_session(self, self.connect, allowed_files=allowed_files)

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


def _to_option_texts(options: Mapping[str, object] | None) -> dict[str, str]:
    return {key: option_text(value) for key, value in check_mapping(options, "options").items()}
