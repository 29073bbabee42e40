"""Names of tables: ``database.table``, ``table$branch_b``, ``table$snapshots``, ``table$branch_b$snapshots``.

Invariant: each part is a single path segment.
Source: `Identifier`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.paths import MAIN_BRANCH, check_segment
from paimon.domain.text_checks import check_mapping

_BRANCH_PREFIX = "branch_"
_OF_THE_CATALOG = ("exists", "location")
"""The properties of a database that the catalog sets itself."""
SYSTEM_DATABASE = "sys"
"""The database of the system tables of a catalog."""


@frozen
class Identifier:
    """A table, seen from a branch, or one of its system tables."""

    # empty if the table was opened by its path
    database: str
    # the table name without suffixes
    table: str
    branch: str = MAIN_BRANCH
    # such as "snapshots"; None for the table itself
    system_table: str | None = None

    @property
    def full_name(self) -> str:
        """``database.table``, without branch and system table."""
        return f"{self.database}.{self.table}" if self.database else self.table


def parse_identifier(name: str) -> Identifier:
    """Parse ``database.table[$branch_b][$system]``.

    >>> parse_identifier("shop.orders$branch_test$snapshots")
    Identifier(database='shop', table='orders', branch='test', system_table='snapshots')
    >>> parse_identifier("shop.orders").full_name
    'shop.orders'
    """
    if not isinstance(name, str):
        raise _invalid_name_error(name, "write it as 'database.table'")
    database, dot, rest = name.partition(".")
    if not dot or not database or not rest:
        raise _invalid_name_error(name, "write it as 'database.table'")
    table, branch, system = split_suffixes(rest)
    return Identifier(check_segment(database, "database name"), check_segment(table, "table name"), branch, system)


def split_suffixes(name: str) -> tuple[str, str, str | None]:
    """Split ``table[$branch_b][$system]`` into table, branch and system table.

    >>> split_suffixes("orders$files")
    ('orders', 'main', 'files')
    """
    table, *suffixes = name.split("$")
    branch, system = MAIN_BRANCH, None
    if suffixes and suffixes[0].startswith(_BRANCH_PREFIX):
        branch = check_segment(suffixes.pop(0)[len(_BRANCH_PREFIX) :], "branch name")
    if suffixes:
        system = suffixes.pop(0)
    if suffixes or not table or system == "":
        raise _invalid_name_error(name, "end it in $branch_NAME, in $SYSTEM_TABLE, or in both in this order")
    return table, branch, system


def _invalid_name_error(name: object, hint: str) -> InvalidRequest:
    return InvalidRequest(f"Table name {name!r} is not valid", subject=str(name), hint=hint)


def check_not_hidden(name: str, what: str) -> None:
    """Refuse a name of a `what` that begins with a dot, because such directories are hidden."""
    if name.startswith("."):
        raise InvalidRequest(
            f"The {what} name {name!r} must not begin with a dot.", subject=name, hint="begin it with a letter"
        )


def check_database_name(name: str) -> None:
    """Refuse a database name that cannot name a directory, or that is reserved."""
    check_segment(name, "database name")
    check_not_hidden(name, "database")
    if name == SYSTEM_DATABASE:
        raise InvalidRequest(
            f"Database name {name!r} is reserved for system tables.", subject=name, hint="choose another name"
        )


def check_database_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    """Return the properties of a database that a caller sets, or refuse them."""
    given = dict(check_mapping(properties, "properties"))
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str) or key in _OF_THE_CATALOG:
            raise InvalidRequest(
                f"Property {key!r} of a database cannot be set to {value!r}.",
                subject=str(key),
                hint="use texts, and other names than 'exists' and 'location', which the catalog sets",
            )
    return given


def parse_table_name(name: str) -> Identifier:
    """Parse the name of a table that is created, changed or dropped; a part after ``$`` is refused."""
    identifier = parse_identifier(name)
    if "$" in name:
        raise InvalidRequest(f"{name!r} is not the name of a table.", subject=name, hint="leave out the $ part")
    check_database_name(identifier.database)
    check_not_hidden(identifier.table, "table")
    return identifier
