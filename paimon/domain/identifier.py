"""How tables are named: ``database.table``, ``table$branch_b``, ``table$snapshots``, ``table$branch_b$snapshots``.

Law: each part is a single path segment. Source: `Identifier`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.paths import MAIN_BRANCH, segment

_BRANCH_PREFIX = "branch_"


@frozen
class Identifier:
    """A table, seen from a branch, or one of its system tables."""

    database: str
    table: str
    branch: str = MAIN_BRANCH
    system_table: str | None = None

    @property
    def full_name(self) -> str:
        """``database.table``, without branch and system table."""
        return f"{self.database}.{self.table}" if self.database else self.table


def parse_identifier(name: str) -> Identifier:
    """The identifier that ``database.table[$branch_b][$system]`` names (InvalidRequest where it is none)."""
    if not isinstance(name, str):
        raise InvalidRequest(f"{name!r} names no table", subject=str(name), hint="write it as 'database.table'")
    database, dot, rest = name.partition(".")
    if not dot or not database or not rest:
        raise InvalidRequest(f"{name!r} names no table", subject=name, hint="write it as 'database.table'")
    table, branch, system = split_suffixes(rest)
    return Identifier(segment(database, "database name"), segment(table, "table name"), branch, system)


def split_suffixes(name: str) -> tuple[str, str, str | None]:
    """``table[$branch_b][$system]`` as (table, branch, system table or None)."""
    table, *suffixes = name.split("$")
    branch, system = MAIN_BRANCH, None
    if suffixes and suffixes[0].startswith(_BRANCH_PREFIX):
        branch = segment(suffixes.pop(0)[len(_BRANCH_PREFIX) :], "branch name")
    if suffixes:
        system = suffixes.pop(0)
    if suffixes or not table or system == "":
        raise InvalidRequest(
            f"{name!r} names no table", subject=name, hint="a name may end in $branch_NAME and then in $SYSTEM_TABLE"
        )
    return table, branch, system
