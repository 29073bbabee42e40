"""Names of tables as pypaimon gives them: a database and an object, which may end in a branch and a system table.

Source: `pypaimon.common.identifier`.
"""

from __future__ import annotations

from typing import Any

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
