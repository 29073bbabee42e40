"""CatalogStore: databases and tables, and the directories that they lie in.

Contract: names are single path segments (checked by the caller); `create_*` of something that exists, and
`drop_*`/`rename_table` of something that does not, raise AlreadyExists / NotFound. Whoever makes a table writes its
schema file first and registers it then, with its options and keys; until both are done it does not exist. Whoever
changes its schema tells by `update_table` what they are now; of a table that is not registered nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class DatabaseStore(Protocol):
    """Databases of a warehouse."""

    @property
    def warehouse(self) -> str: ...
    def databases(self) -> Sequence[str]: ...
    def create_database(self, database: str) -> None: ...
    def drop_database(self, database: str) -> None: ...


class TableStore(Protocol):
    """Tables of databases; `table_location` answers for tables that do not exist too."""

    def tables(self, database: str) -> Sequence[str]: ...
    def has_table(self, database: str, table: str) -> bool: ...
    def table_location(self, database: str, table: str) -> str: ...
    def register_table(self, database: str, table: str, properties: Mapping[str, str]) -> None: ...
    def update_table(self, database: str, table: str, properties: Mapping[str, str]) -> None: ...
    def drop_table(self, database: str, table: str) -> None: ...
    def rename_table(self, database: str, table: str, new_database: str, new_table: str) -> None: ...


class CatalogStore(DatabaseStore, TableStore, Protocol):
    """See the module's contract."""
