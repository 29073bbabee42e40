"""The methods of a catalog about databases; `paimon.catalog.Catalog` has them all.

Invariant: a name is checked before it becomes part of a path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paimon.display.notebook import NotebookDisplay
from paimon.domain.errors import InvalidRequest, NotFound, did_you_mean
from paimon.domain.identifier import check_database_name
from paimon.domain.text_checks import check_mapping
from paimon.ports.catalogs import CatalogStore
from paimon.ports.engine import Engine

_OF_THE_CATALOG = ("exists", "location")
"""The properties of a database that the catalog sets itself."""


class DatabaseCatalog(NotebookDisplay):
    """A catalog whose databases can be listed, created, changed and dropped.

    Attributes
    ----------
    engine : Engine
        The ports that all tables use.
    store : CatalogStore
        Where databases and tables are recorded.
    """

    __slots__ = ()
    engine: Engine
    store: CatalogStore

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
