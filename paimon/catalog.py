"""Catalog: databases and tables of one warehouse.

Law: every name is checked before it becomes a path; a table is what its schema file says, read anew each time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, PaimonWarning, did_you_mean
from paimon.domain.identifier import Identifier, parse_identifier
from paimon.domain.options.setting import option_text
from paimon.domain.paths import TablePaths, segment
from paimon.domain.schema.rules.layout import explain_key_scope
from paimon.domain.secrets import without_password
from paimon.domain.texts import check_mapping, check_names
from paimon.domain.types.arrow import fields_from_arrow
from paimon.domain.types.data_types import DataField
from paimon.domain.types.ddl import parse_columns
from paimon.notebook import NotebookDisplay, read_or_explain
from paimon.ports.catalogs import CatalogStore
from paimon.ports.engine import Engine

if TYPE_CHECKING:
    from paimon.system_table import SystemTable
    from paimon.table import Table

SYSTEM_DATABASE = "sys"
_DATABASES_SHOWN = 8
DEFAULT_OPTION = "table-default."
"""What catalog options begin with that new tables take over."""


@frozen(eq=False, repr=False)
class Catalog(NotebookDisplay):
    """A warehouse.

    Parameters
    ----------
    engine : Engine
        The ports that all its tables use.
    store : CatalogStore
        Where databases and tables are kept.
    options : mapping
        Catalog options; ``table-default.X`` is copied into new tables as ``X``.
    recipe : tuple, optional
        A picklable function and its arguments that build such a catalog in another process, as for `Engine`.
    """

    engine: Engine
    store: CatalogStore
    options: Mapping[str, str] = field(repr=False)
    recipe: tuple[Callable[..., Catalog], tuple[Any, ...]] | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Callable[..., Catalog], tuple[Any, ...]]:
        if self.recipe is None:
            raise InvalidRequest("this catalog cannot travel to another process", hint="give it a recipe")
        return self.recipe

    @property
    def warehouse(self) -> str:
        """The root of the warehouse."""
        return self.store.warehouse

    def databases(self) -> list[str]:
        """Names of all databases, sorted.

        Raises
        ------
        NotFound
            The warehouse is a local directory that does not exist; its first database makes it. Under a URL an absent
            warehouse is one without databases: object stores have no empty directories.
        """
        names = sorted(self.store.databases())
        is_directory = "://" not in self.warehouse and self.engine.tables is None
        if not names and is_directory:
            status = self.engine.files.status(self.warehouse)
            if status is None or not status.is_directory:
                hint = "check the path, or make the warehouse: create_database(name), or paimon init"
                raise NotFound("warehouse", self.warehouse, hint=hint)
        return names

    def create_database(self, name: str, *, exist_ok: bool = False) -> None:
        """Make a database (AlreadyExists unless `exist_ok`)."""
        _check_database(name)
        if not exist_ok or name not in self.store.databases():
            self.store.create_database(name)

    def drop_database(self, name: str, *, cascade: bool = False, missing_ok: bool = False) -> None:
        """Remove a database; with tables in it only where `cascade` says so."""
        _check_database(name)
        if name not in self.store.databases():
            if missing_ok:
                return
            raise NotFound("database", name, hint=did_you_mean(name, self.databases()))
        held = self.store.tables(name)
        if held and not cascade:
            raise InvalidRequest(
                f"database {name!r} holds {len(held)} tables", subject=name, hint="pass cascade=True to drop them too"
            )
        self.store.drop_database(name)

    def list_databases(self) -> list[str]:
        """Names of all databases, sorted: another name of `databases`."""
        return self.databases()

    def list_tables(self, database: str) -> list[str]:
        """Names of the tables of a database, sorted: another name of `tables`."""
        return self.tables(database)

    def tables(self, database: str) -> list[str]:
        """Names of the tables of a database, sorted."""
        self._known_database(database)
        return sorted(self.store.tables(database))

    def create_table(
        self,
        name: str,
        schema: pa.Schema | str | Sequence[DataField],
        *,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        exist_ok: bool = False,
        allow_unknown_options: bool = False,
    ) -> Table:
        """Make a table.

        Parameters
        ----------
        name : str
            ``"database.table"``.
        schema : pyarrow.Schema or str or sequence of DataField
            The columns; a text is a column list in Paimon's types (``"id BIGINT NOT NULL, name STRING"``).
        primary_keys, partition_keys : sequence of str
            Column names.
        options : mapping
            Table options; values are written as text.
        exist_ok : bool
            Answer the table that is there already.
        allow_unknown_options : bool
            Accept options that this library does not know.

        Raises
        ------
        InvalidRequest
            A name, column, key or option that cannot be; nothing was made.
        AlreadyExists
            The table is there already.

        Warns
        -----
        PaimonWarning
            The primary key lacks a partition column, so keys are unique within a partition only.
        """
        from paimon.operations.evolve import create_table, properties_of  # and below: loaded when first used

        identifier = self._plain(name)
        self._known_database(identifier.database)
        paths = self._paths(identifier)
        if self._exists(identifier):
            if exist_ok:
                return self.table(name)
            raise AlreadyExists("table", name, hint="pass exist_ok=True to take the one that is there")
        defaults = {k.removeprefix(DEFAULT_OPTION): v for k, v in self.options.items() if k.startswith(DEFAULT_OPTION)}
        schema_made = create_table(
            self.engine,
            paths,
            _fields(schema),
            check_names(primary_keys, "primary_keys"),
            check_names(partition_keys, "partition_keys"),
            defaults | {k: option_text(v) for k, v in check_mapping(options, "options").items()},
            comment,
            allow_unknown_options=allow_unknown_options,
        )
        self.store.register_table(identifier.database, identifier.table, properties_of(schema_made))
        scope = explain_key_scope(schema_made)
        if scope is not None:
            warnings.warn(f"Table {name!r}: {scope}", PaimonWarning, stacklevel=2)
        return self.table(name)

    def repair_table(self, name: str) -> Table:
        """Take a table into the catalog whose files are in its place: its making was cut short, or they came so."""
        from paimon.operations.evolve import properties_of
        from paimon.operations.read.schemas import latest_schema

        identifier = self._plain(name)
        self._known_database(identifier.database)
        found = latest_schema(self.engine, self._paths(identifier))
        if found is None:
            raise self._missing(identifier)
        take_in = self.store.update_table if self._exists(identifier) else self.store.register_table
        take_in(identifier.database, identifier.table, properties_of(found))
        return self.table(name)

    def table(self, name: str, options: Mapping[str, object] | None = None) -> Table:
        """The table of a name.

        Parameters
        ----------
        name : str
            ``"database.table"``, or ``"database.table$branch_b"`` for a branch. ``"database.table$snapshots"`` opens a
            `SystemTable`, which has the reading methods of a table; `system_table` is the same with that type.
        options : mapping
            Dynamic options for this handle alone.

        Returns
        -------
        Table
            The table at its newest schema.

        Raises
        ------
        NotFound
            There is no such database or table.
        """
        return cast("Table", self._open(name, options))

    def open(self, name: str, options: Mapping[str, object] | None = None) -> Table:
        """The table of a name: another name of `table`."""
        return self.table(name, options)

    def load_table(self, name: str, options: Mapping[str, object] | None = None) -> Table:
        """The table of a name: another name of `table`."""
        return self.table(name, options)

    def system_table(self, name: str, options: Mapping[str, object] | None = None) -> SystemTable:
        """The system table ``"database.table$snapshots"``; InvalidRequest where the name is that of a table."""
        from paimon.system_table import SystemTable, refuse_plain_table

        opened = self._open(name, options)
        return opened if isinstance(opened, SystemTable) else refuse_plain_table(name)

    def _open(self, name: str, options: Mapping[str, object] | None) -> Table | SystemTable:
        from paimon.table import open_at

        identifier = parse_identifier(name)
        self._known_database(identifier.database)
        if not self._exists(identifier):
            raise self._missing(identifier)
        return open_at(
            self.engine,
            self.store.table_location(identifier.database, identifier.table),
            identifier,
            {k: option_text(v) for k, v in check_mapping(options, "options").items()},
        )

    def drop_table(self, name: str, *, missing_ok: bool = False) -> None:
        """Remove a table with all its files."""
        identifier = self._plain(name)
        if not self._exists(identifier):
            if missing_ok:
                return
            raise self._missing(identifier)
        self.store.drop_table(identifier.database, identifier.table)

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name, perhaps in another database."""
        old, new = self._plain(name), self._plain(new_name)
        self._known_database(new.database)
        if not self._exists(old):
            raise self._missing(old)
        if self._exists(new):
            raise AlreadyExists("table", new_name)
        self.store.rename_table(old.database, old.table, new.database, new.table)

    def __repr__(self) -> str:
        return f"Catalog({without_password(self.warehouse)!r})"

    def _repr_html_(self) -> str:
        from paimon.cards import catalog_card

        names = read_or_explain(self.databases)
        if isinstance(names, str):
            return catalog_card(self.warehouse, names, 0)
        shown = {name: read_or_explain(partial(self.tables, name)) for name in names[:_DATABASES_SHOWN]}
        return catalog_card(self.warehouse, shown, len(names) - len(shown))

    def _paths(self, identifier: Identifier) -> TablePaths:
        return TablePaths(self.store.table_location(identifier.database, identifier.table))

    def _exists(self, identifier: Identifier) -> bool:
        return self.store.has_table(identifier.database, identifier.table)

    def _missing(self, identifier: Identifier) -> NotFound:
        known = self.store.tables(identifier.database) if identifier.database in self.store.databases() else ()
        return NotFound("table", identifier.full_name, hint=did_you_mean(identifier.table, known))

    def _known_database(self, database: str) -> None:
        segment(database, "database name")
        if database not in self.store.databases():
            hint = did_you_mean(database, self.databases()) or f"{self.warehouse} has no databases: make one first"
            raise NotFound("database", database, hint=hint)

    def _plain(self, name: str) -> Identifier:
        identifier = parse_identifier(name)
        if "$" in name:
            raise InvalidRequest(f"{name!r} is not a plain table name", subject=name, hint="leave out the $ part")
        _check_database(identifier.database)
        _check_visible(identifier.table, "table")
        return identifier


def _check_visible(name: str, what: str) -> None:
    if name.startswith("."):
        raise InvalidRequest(f"{what} name {name!r} is hidden by its dot", subject=name, hint="begin it with a letter")


def _check_database(name: str) -> None:
    segment(name, "database name")
    _check_visible(name, "database")
    if name == SYSTEM_DATABASE:
        raise InvalidRequest(f"database {name!r} belongs to the system", subject=name)


def _fields(schema: pa.Schema | str | Sequence[DataField]) -> tuple[DataField, ...]:
    if isinstance(schema, str):
        return parse_columns(schema)
    if isinstance(schema, pa.Schema):
        return fields_from_arrow(schema)
    if isinstance(schema, Sequence) and all(isinstance(column, DataField) for column in schema):
        return tuple(schema)
    raise InvalidRequest(
        f"a {type(schema).__name__} is no schema",
        subject="schema",
        hint="give a pyarrow.Schema, or text such as 'id BIGINT NOT NULL, name STRING'",
    )
