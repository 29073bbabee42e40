"""The versions of a table's schema, by the names of pypaimon.

Source: `pypaimon.schema.schema_manager`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import paimon
from paimon.compat.data_types import to_paimon_field
from paimon.compat.managers import TableManager
from paimon.compat.refused import check_known_options
from paimon.compat.schema import Schema, SchemaChange, SetOption, TableSchema, check_fixed_options, from_paimon_schema
from paimon.domain.schema.table_schema import TableSchema as PaimonSchema
from paimon.domain.schema.table_schema import schema_to_json
from paimon.domain.schema.validate import check_schema

_PREFIX = "schema-"


class SchemaManager(TableManager):
    """The versions of the schema of a table; each is a file."""

    @property
    def branch_path(self) -> str:
        """The directory of the metadata of the branch."""
        return self._root

    @property
    def schema_path(self) -> str:
        """The directory of the files of schemas."""
        return f"{self._root}/schema"

    def copy_with_branch(self, branch_name: str) -> SchemaManager:
        """Return the schemas of another branch."""
        return self.on_branch(branch_name)

    def latest(self) -> TableSchema | None:
        """Return the newest schema; None without a table."""
        return self.get_schema(max(self._list_ids(), default=-1))

    def list_all(self) -> list[TableSchema]:
        """Return all schemas, oldest first."""
        found = (self.get_schema(number) for number in self._list_ids())
        return [schema for schema in found if schema is not None]

    def get_schema(self, schema_id: int) -> TableSchema | None:
        """Return the schema of a number; None if there is none."""
        path = self._to_path(schema_id)
        return TableSchema.from_path(self.file_io, path) if self.file_io.exists(path) else None

    def create_table(self, schema: Schema) -> TableSchema:
        """Write the first schema of a table."""
        if self.latest() is not None:
            raise RuntimeError("Schema in filesystem exists, creation is not allowed.")
        declared = TableSchema.from_schema(0, schema)
        self.commit(declared)
        return declared

    def commit(self, new_schema: TableSchema) -> bool:
        """Write a schema; return False if there is one of this number already."""
        stored = PaimonSchema(
            id=new_schema.id,
            fields=tuple(to_paimon_field(column) for column in new_schema.fields),
            highest_field_id=new_schema.highest_field_id,
            partition_keys=tuple(new_schema.partition_keys),
            primary_keys=tuple(new_schema.primary_keys),
            options={key: str(value) for key, value in new_schema.options.items()},
            comment=new_schema.comment,
            time_millis=new_schema.time_millis or self.file_io.engine.clock.now_millis(),
        )
        try:
            check_known_options(stored.options)
            check_schema(stored, self.file_io.engine.file_formats)
        except paimon.InvalidRequest as error:
            raise ValueError(add_peer_words(str(error))) from error
        return self.file_io.try_to_write_atomic(self._to_path(stored.id), schema_to_json(stored).decode())

    def commit_changes(self, changes: Sequence[SchemaChange]) -> TableSchema:
        """Change the newest schema, and return the next one."""
        if self.latest() is None:
            raise RuntimeError(f"Table schema does not exist at path: {self.table_path}.")
        try:
            return from_paimon_schema(change_schema(self.table, changes).table_schema)
        except (paimon.PaimonError, ValueError, TypeError) as error:
            raise RuntimeError(f"Failed to commit schema changes: {add_peer_words(str(error))}") from error

    def _list_ids(self) -> list[int]:
        names = [name.removeprefix(_PREFIX) for name in self.file_io.list_names(self.schema_path)]
        return sorted(int(name) for name in names if name.isdigit())

    def _to_path(self, schema_id: int) -> str:
        return f"{self.schema_path}/{_PREFIX}{schema_id}"


def change_schema(table: paimon.Table, changes: Sequence[SchemaChange]) -> paimon.Table:
    """Change the schema of a table; as in pypaimon, a type may change to one that loses stored values."""
    wanted = check_fixed_options(changes, table)
    check_known_options({change.key: change.value for change in wanted if isinstance(change, SetOption)})
    return table.alter(*(change.to_paimon() for change in wanted), allow_unknown_options=True, allow_lossy=True)


_PEER_WORDS = {
    "Option '([^']+)' cannot change|table of (type) 'format-table'": "Change '{}' is not supported yet.",
    "cannot become NOT NULL": "nullable to non nullable",
    "cannot become": "it cannot be converted: there is no executable cast",
    "of the partition key has the type": "it can not be part of partition keys",
    r"Option '([^']+)' is -?\d+\. Use at least 1": "{} should be at least 1",
    r"Option '(target-file-row-num)' .* 64 bits": "{} should be at most 9223372036854775807",
}
"""Words of pypaimon by the messages of this library that have them in brackets, because programs may look for them."""


def add_peer_words(message: str) -> str:
    """Return a message about a column or an option with the words of pypaimon added."""
    for pattern, words in _PEER_WORDS.items():
        if found := re.search(pattern, message):
            return f"{message} ({words.format(*filter(None, found.groups()))})"
    return message
