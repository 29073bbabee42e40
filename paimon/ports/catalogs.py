"""CatalogStore: the port that knows databases, tables and their directories.

Invariant: a table exists after its schema file is written and `register_table` has returned, in this order. Names are
single path segments, which the caller has checked. Suite: `paimon.testing.contracts.catalogs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class DatabaseStore(Protocol):
    """The databases of a warehouse."""

    @property
    def warehouse(self) -> str:
        """The root directory of the catalog, a local path or a URL without a slash at the end."""

    def databases(self) -> Sequence[str]:
        """Return the names of all databases.

        Returns
        -------
        sequence of str
            Each name once, in no particular order. Databases created or dropped during the call may be missing.

        Raises
        ------
        StorageError
            The storage or the database of the catalog failed.
        """

    def create_database(self, database: str, properties: Mapping[str, str] | None = None) -> None:
        """Create an empty database.

        Of several concurrent callers at least one succeeds. A catalog in a database lets exactly one succeed.

        Parameters
        ----------
        database : str
            One path segment.
        properties : mapping of str to str, optional
            Its properties, without `exists` and `location`. They are visible as soon as the database is.

        Raises
        ------
        AlreadyExists
            The database exists; it is unchanged.
        InvalidRequest
            A property is too long for the catalog. Nothing was created.
        Unsupported
            There are properties, and the catalog has no place for them. Nothing was created.
        StorageError
            The storage failed. The database may exist: the caller asks `databases`.
        """

    def database_properties(self, database: str) -> Mapping[str, str]:
        """Return the properties of a database.

        Parameters
        ----------
        database : str
            The database.

        Returns
        -------
        mapping of str to str
            The properties that were set, and its directory as `location`.

        Raises
        ------
        NotFound
            There is no such database.
        StorageError
            The storage or the database of the catalog failed.
        """

    def alter_database(self, database: str, properties: Mapping[str, str], removed: Sequence[str]) -> None:
        """Set and remove properties of a database.

        The call is atomic: concurrent readers see all changes or none. A repeated call changes nothing.

        Parameters
        ----------
        database : str
            The database.
        properties : mapping of str to str
            New values by property, without `exists` and `location`.
        removed : sequence of str
            Properties to remove; those that are not set are ignored.

        Raises
        ------
        NotFound
            There is no such database.
        InvalidRequest
            A property is too long for the catalog. Nothing was changed.
        Unsupported
            The catalog has no place for properties.
        StorageError
            The database of the catalog failed. The changes may have been made.
        """

    def drop_database(self, database: str) -> None:
        """Drop a database with all its tables and files.

        The database is invisible before its first file is deleted, where the storage can move directories or the
        catalog has rows. After an interrupted drop, the rest of the files may remain.

        Parameters
        ----------
        database : str
            The database. The caller has checked that it may drop its tables.

        Raises
        ------
        NotFound
            There is no such database. A second drop therefore raises.
        StorageError
            The storage failed. Files may remain.
        """


class TableStore(Protocol):
    """The tables of databases."""

    def tables(self, database: str) -> Sequence[str]:
        """Return the names of the tables of a database.

        Parameters
        ----------
        database : str
            The database; an unknown one has no tables.

        Returns
        -------
        sequence of str
            Each name once, in no particular order. Tables created or dropped during the call may be missing.

        Raises
        ------
        StorageError
            The storage or the database of the catalog failed.
        """

    def has_table(self, database: str, table: str) -> bool:
        """Return whether a table exists.

        Parameters
        ----------
        database : str
            The database; it need not exist.
        table : str
            The table name.

        Returns
        -------
        bool
            True as soon as `register_table` has returned, and False as soon as `drop_table` has.

        Raises
        ------
        StorageError
            The storage or the database of the catalog failed.
        """

    def table_location(self, database: str, table: str) -> str:
        """Return the directory of a table, whether the table exists or not.

        Parameters
        ----------
        database : str
            The database; it need not exist.
        table : str
            The table name.

        Returns
        -------
        str
            A path below the warehouse without a slash at the end. The same names give the same path.

        Raises
        ------
        CorruptTable
            The catalog records a location outside the warehouse.
        StorageError
            The database of the catalog failed.
        """

    def register_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Make a table visible after its schema file was written.

        The call is atomic: concurrent readers see the table with its properties or not at all. Where the schema file
        alone makes a table visible, the call does nothing.

        Parameters
        ----------
        database : str
            An existing database.
        table : str
            The table name.
        properties : mapping of str to str
            The table options and keys that the catalog keeps as a copy.

        Raises
        ------
        AlreadyExists
            The catalog lists the table. One that only looks for the schema file does not raise.
        StorageError
            The database of the catalog failed.
        """

    def update_table(self, database: str, table: str, properties: Mapping[str, str]) -> None:
        """Replace the copy of the properties of a table after its schema changed.

        The call is atomic and idempotent. A table that the catalog does not list is ignored.

        Parameters
        ----------
        database : str
            The database.
        table : str
            The table name.
        properties : mapping of str to str
            All table options and keys of the newest schema.

        Raises
        ------
        StorageError
            The database of the catalog failed.
        """

    def drop_table(self, database: str, table: str) -> None:
        """Drop a table with all its files.

        The table is invisible before its first file is deleted where the storage can move directories. Elsewhere the
        schema files are deleted last, so that an interrupted drop can be repeated.

        Parameters
        ----------
        database : str
            The database.
        table : str
            The table name.

        Raises
        ------
        NotFound
            There is no such table. A second drop therefore raises.
        StorageError
            The storage failed. Files may remain.
        """

    def rename_table(self, database: str, table: str, new_database: str, new_table: str) -> None:
        """Give a table another name and move its directory.

        The move is one step where the storage can move directories. Elsewhere the new name is reserved, all files are
        copied, and those of the old name deleted. Of concurrent calls that create a table of the new name, or rename
        one to it, exactly one succeeds. If the process dies, one of the names is a whole table, and a repeated call may
        be refused until the new name is dropped. Writers of the old name must have ended.

        Parameters
        ----------
        database : str
            The database.
        table : str
            The table name.
        new_database : str
            An existing database, which may be the same one.
        new_table : str
            The new table name.

        Raises
        ------
        NotFound
            The table or the new database does not exist; nothing changed.
        AlreadyExists
            A table with the new name exists, or the name is reserved; both tables are unchanged.
        StorageError
            The storage failed, or another process dropped the new name. One of the names is a whole table, unless this
            drop ended after the new name was visible.
        """


class CatalogStore(DatabaseStore, TableStore, Protocol):
    """A complete catalog: the databases of one warehouse, and their tables."""
