"""The errors of pypaimon's catalogs, and their translation from the errors of this library.

Source: `pypaimon.catalog.catalog_exception`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paimon import AlreadyExists, NotFound
from paimon.compat.identifier import Identifier


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
