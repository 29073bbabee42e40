"""Identifiers, errors and results of catalogs by the names of pypaimon.

Source: `pypaimon.common.identifier`, `pypaimon.catalog.catalog_exception`, `pypaimon.api.api_response`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Generic, TypeVar

from attrs import define

from paimon import AlreadyExists, NotFound
from paimon.compat.snapshot import Snapshot

T = TypeVar("T")


class Database:
    """A database."""

    def __init__(self, name: str, options: dict[str, str], comment: str | None = None) -> None:
        self.name = name
        self.options = options
        self.comment = comment


@define
class PagedList(Generic[T]):
    """A part of a listing, and the token with which it continues."""

    elements: list[T]
    next_page_token: str | None = None


@define
class Partition:
    """A partition and its size."""

    spec: dict[str, str]
    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int = 0
    total_buckets: int = 0
    done: bool = False
    options: dict[str, str] | None = None


@define
class GetTagResponse:
    """A tag of a catalog: the creation time is in epoch milliseconds, the time to live in the form of ISO 8601."""

    tag_name: str | None = None
    snapshot: Snapshot | None = None
    tag_create_time: int | None = None
    tag_time_retained: str | None = None


@define
class TableSnapshot:
    """The latest snapshot of a table, with the size of the table."""

    snapshot: Snapshot
    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int = 0


def to_iso_duration(duration: timedelta) -> str:
    """Return a duration in the form of ISO 8601, as Java writes it.

    >>> to_iso_duration(timedelta(days=1, minutes=5))
    'PT24H5M'
    """
    hours, rest = divmod(duration, timedelta(hours=1))
    minutes, rest = divmod(rest, timedelta(minutes=1))
    seconds = f"{rest.total_seconds():.6f}".rstrip("0").rstrip(".")
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", f"{seconds}S" if rest else ""]
    return "PT" + ("".join(parts) or "0S")


def cut_page(names: list[str], size: int | None, token: str | None) -> tuple[list[str], str | None]:
    """Return a page of sorted names, and the token of the next page."""
    left = [name for name in names if token is None or name > token]
    if not size or size >= len(left):
        return left, None
    return left[:size], left[size - 1]


def to_partition(row: Mapping[str, Any]) -> Partition:
    """Return the partition of a row of the system table `partitions`."""
    spec = dict(part.partition("=")[::2] for part in str(row["partition"]).split("/"))
    updated = row.get("last_update_time")
    millis = int(updated.timestamp() * 1000) if updated is not None else 0
    return Partition(spec, row["record_count"], row["file_size_in_bytes"], row["file_count"], millis)


SYSTEM_TABLE_SPLITTER = "$"
SYSTEM_BRANCH_PREFIX = "branch_"
DEFAULT_MAIN_BRANCH = "main"
UNKNOWN_DATABASE = "unknown"


class Identifier:
    """The name of a table: ``Identifier("db", "orders$branch_b$files")``."""

    def __init__(
        self,
        database: str,
        object: str | None = None,
        branch: str | None = None,
        system_table: str | None = None,
    ) -> None:
        self.database = database
        self.object = object or ""
        if branch is not None and branch.lower() != DEFAULT_MAIN_BRANCH:
            self.object += f"${SYSTEM_BRANCH_PREFIX}{branch}"
        if system_table is not None:
            self.object += f"${system_table}"
        self._branch = branch

    @classmethod
    def create(
        cls, database: str, table: str, branch: str | None = None, system_table: str | None = None
    ) -> Identifier:
        """Return the name of a table."""
        return cls(database, table, branch=branch, system_table=system_table)

    @classmethod
    def from_string(cls, full_name: str) -> Identifier:
        """Parse ``database.object``; parts in backticks may contain dots."""
        if not full_name or not full_name.strip():
            raise ValueError("fullName cannot be null or empty")
        if full_name.count("`") % 2:
            raise ValueError(f"Unclosed backtick in identifier: {full_name}")
        quoted = full_name.split("`")
        if len(quoted) == 1:
            database, dot, table = full_name.partition(".")
            if not dot:
                raise ValueError(f"Cannot get splits from '{full_name}' to get database and object")
            return cls(database, table)
        # Dots between backticks belong to a name: those outside are the parts with even numbers.
        marked = "".join(part.replace(".", "\0") if i % 2 == 0 else part for i, part in enumerate(quoted))
        parts = [part for i, part in enumerate(marked.split("\0")) if part or i == 0]
        if len(parts) != 2:
            raise ValueError(f"Invalid identifier format: {full_name}")
        return cls(*parts)

    def _split(self) -> tuple[str, str | None, str | None]:
        table, *suffixes = self.object.split(SYSTEM_TABLE_SPLITTER)
        if len(suffixes) > 2:
            raise ValueError("Invalid object name: " + self.object)
        branch = None
        if suffixes and suffixes[0].startswith(SYSTEM_BRANCH_PREFIX):
            branch = suffixes.pop(0).removeprefix(SYSTEM_BRANCH_PREFIX)
        if len(suffixes) > 1:
            raise ValueError(f"System table can only contain one '$' separator, but this is: {self.object}")
        return table, branch, suffixes[0] if suffixes else None

    def get_full_name(self) -> str:
        """Return ``database.object``."""
        return self.object if self.database == UNKNOWN_DATABASE else f"{self.database}.{self.object}"

    def get_database_name(self) -> str:
        """Return the database."""
        return self.database

    def get_table_name(self) -> str:
        """Return the table without suffixes."""
        return self._split()[0]

    def get_object_name(self) -> str:
        """Return the table with its suffixes."""
        return self.object

    def get_branch_name(self) -> str | None:
        """Return the branch; None for a name without one."""
        return self._split()[1] or self._branch

    def get_branch_name_or_default(self) -> str:
        """Return the branch, ``"main"`` by default."""
        return self.get_branch_name() or DEFAULT_MAIN_BRANCH

    def get_system_table_name(self) -> str | None:
        """Return the system table; None for the name of a table."""
        return self._split()[2]

    def is_system_table(self) -> bool:
        """Return whether the name is that of a system table."""
        return self.get_system_table_name() is not None

    @property
    def branch(self) -> str | None:
        """The branch; None for a name without one."""
        return self.get_branch_name()

    @branch.setter
    def branch(self, value: str | None) -> None:
        table, _, system = self._split()
        self.__init__(self.database, table, value, system)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identifier) and (self.database, self.object) == (other.database, other.object)

    def __hash__(self) -> int:
        return hash((self.database, self.object))

    def __repr__(self) -> str:
        return f"Identifier(database={self.database!r}, object={self.object!r})"

    __str__ = get_full_name


def to_identifier(name: str | Identifier | Any) -> Identifier:
    """Return the name of a table that is given as text or as an identifier."""
    return name if isinstance(name, Identifier) else Identifier.from_string(name)


class CatalogException(Exception):
    """The base of all errors of catalogs."""


class _DatabaseException(CatalogException):
    _text = "{}"

    def __init__(self, database: str) -> None:
        super().__init__(self._text.format(database))
        self.database = database


class _TableException(CatalogException):
    _text = "{}"

    def __init__(self, identifier: Identifier) -> None:
        super().__init__(self._text.format(identifier.get_full_name()))
        self.identifier = identifier


class DatabaseNotExistException(_DatabaseException):
    """Raised when a database does not exist."""

    _text = "Database {} does not exist"


class DatabaseAlreadyExistException(_DatabaseException):
    """Raised when a database exists already."""

    _text = "Database {} already exists"


class DatabaseNoPermissionException(_DatabaseException):
    """Never raised here; programs import it to catch it."""

    _text = "No permission to access database {}"


class TableNotExistException(_TableException):
    """Raised when a table does not exist."""

    _text = "Table {} does not exist"


class TableAlreadyExistException(_TableException):
    """Raised when a table exists already."""

    _text = "Table {} already exists"


class TableNoPermissionException(_TableException):
    """Never raised here; programs import it to catch it."""

    _text = "No permission to access table {}"


class ColumnNotExistException(CatalogException):
    """Raised when a column does not exist."""

    def __init__(self, column: str) -> None:
        super().__init__(f"Column {column} does not exist")
        self.column = column


class ColumnAlreadyExistException(CatalogException):
    """Raised when a column exists already."""

    def __init__(self, column: str) -> None:
        super().__init__(f"Column {column} already exists")
        self.column = column


class BranchNotExistException(CatalogException):
    """Raised when a branch does not exist."""

    def __init__(self, branch: str) -> None:
        super().__init__(f"Branch {branch} does not exist")
        self.branch = branch


class BranchAlreadyExistException(CatalogException):
    """Raised when a branch exists already."""

    def __init__(self, branch: str) -> None:
        super().__init__(f"Branch {branch} already exists")
        self.branch = branch


class TagNotExistException(CatalogException):
    """Raised when a tag does not exist."""

    def __init__(self, tag: str) -> None:
        super().__init__(f"Tag {tag} does not exist")
        self.tag = tag


class TagAlreadyExistException(CatalogException):
    """Raised when a tag exists already."""

    def __init__(self, tag: str) -> None:
        super().__init__(f"Tag {tag} already exists")
        self.tag = tag


class IllegalArgumentError(CatalogException):
    """Never raised here; programs import it to catch it."""


class IllegalStateError(CatalogException):
    """Never raised here; programs import it to catch it."""


_MISSING: dict[str, type[CatalogException]] = {
    "database": DatabaseNotExistException,
    "column": ColumnNotExistException,
    "branch": BranchNotExistException,
    "tag": TagNotExistException,
}
_EXISTING: dict[str, type[CatalogException]] = {
    "database": DatabaseAlreadyExistException,
    "column": ColumnAlreadyExistException,
    "branch": BranchAlreadyExistException,
    "tag": TagAlreadyExistException,
}


@contextmanager
def catalog_errors(identifier: Identifier | None = None) -> Iterator[None]:
    """Raise errors about databases, tables, columns, branches and tags as the classes of pypaimon."""
    try:
        yield
    except NotFound as error:
        if error.kind == "table":
            raise TableNotExistException(identifier or Identifier.from_string(error.name)) from error
        if error.kind in _MISSING:
            raise _MISSING[error.kind](error.name) from error
        raise
    except AlreadyExists as error:
        if error.kind == "table":
            raise TableAlreadyExistException(identifier or Identifier.from_string(error.name)) from error
        if error.kind in _EXISTING:
            raise _EXISTING[error.kind](error.name) from error
        raise


@contextmanager
def state_errors() -> Iterator[None]:
    """Raise the error about a missing snapshot or tag that options name as the ValueError of pypaimon."""
    try:
        yield
    except NotFound as error:
        raise ValueError(f"{error.kind.capitalize()} '{error.name}' doesn't exist.") from error
