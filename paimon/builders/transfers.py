"""Copy a table to another catalog, and make a table of the files of another system, for `paimon.catalog.Catalog`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from paimon.builders.direct_writes import commit_messages
from paimon.builders.table_creation import TableCreation
from paimon.domain.errors import AlreadyExists, InvalidRequest
from paimon.domain.identifier import Identifier
from paimon.domain.paths import TablePaths
from paimon.domain.predicate.expression import Predicate
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.ddl import to_fields
from paimon.operations.refs.clone_table import ClonedTable, TableState, fill_clone, put_schemas, read_table_state
from paimon.operations.refs.filled_tables import name_creation_branch
from paimon.operations.table_context import TableContext
from paimon.operations.write.migrate_files import MigratedTable, MigrationSource
from paimon.scan import condition_of
from paimon.system_table import SystemTable

CreateFilled = Callable[..., Any]
"""`Catalog.create_filled_table`."""
_COMPLETED = "an earlier call was completed; drop the table and call again"


@frozen
class CloneRequest:
    """A state to copy to a new table."""

    source: TableContext
    state: TableState
    target: Identifier

    @classmethod
    def of(
        cls,
        source: Any,
        target: Identifier,
        snapshot: int | None,
        tag: str | None,
        where: str | Predicate | None,
    ) -> CloneRequest:
        """Read the state of an opened table."""
        if isinstance(source, SystemTable):
            hint = "name the table without the $ part"
            raise InvalidRequest(f"{source.name!r} is a system table.", subject=source.name, hint=hint)
        condition = None if where is None else condition_of(where)
        return cls(source.context, read_table_state(source.context, snapshot, tag, condition), target)

    def describe(self) -> ClonedTable:
        """Return what would be copied."""
        return ClonedTable.of(self.state, self.source.table.table_name, self.target.full_name)

    def run(self, creation: TableCreation) -> ClonedTable:
        """Copy the state, or complete an earlier call, which is an error if that copied another state."""

        def begin(paths: TablePaths) -> tuple[TablePaths, TableSchema]:
            """Write the schemas to a branch."""
            branch = name_creation_branch(creation.engine, paths)
            put_schemas(creation.engine, branch, self.state.schemas)
            return branch, self.state.schemas[-1]

        def fill(table: Any) -> ClonedTable:
            """Copy the files."""
            fill_clone(table.context, self.source, self.state)
            return self.describe()

        done = creation.create_filled(begin, fill)
        if isinstance(done, ClonedTable):
            return done
        table = creation.open_at(creation.paths.root, creation.identifier)
        made = read_table_state(table.context, None if done is None else done.id, None, None)
        if made.file_names != self.state.file_names:
            raise AlreadyExists("table", self.target.full_name, hint=_COMPLETED)
        return self.describe()


@frozen
class MigrationRequest:
    """The files of a directory, and the table that they become."""

    source: MigrationSource
    target: str
    format_name: str | None
    partition_types: str | None

    def run(
        self, create: CreateFilled, options: Mapping[str, object] | None, delete_origin: bool, dry_run: bool
    ) -> MigratedTable:
        """Copy the files to a new table, which `create` makes, and delete them if the caller wants it."""
        declared = to_fields(self.partition_types) if self.partition_types else ()
        migration = self.source.plan(self.format_name, declared)
        if dry_run:
            return MigratedTable.of(migration)

        def fill(table: Any) -> MigratedTable:
            """Copy the files, and commit them."""
            messages, files = self.source.copy(table.context, migration)
            done = commit_messages(table.new_batch_write_builder().new_commit(), messages)
            return MigratedTable(next(iter(done.snapshot_ids), None), tuple(files))

        keys, all_options = migration.partition_keys, migration.add_default_options(options or {})
        done = create(self.target, migration.fields, fill, partition_keys=keys, options=all_options)
        if not isinstance(done, MigratedTable):  # the names of its files do not show where they come from
            raise AlreadyExists("table", self.target, hint=_COMPLETED)
        if delete_origin:
            self.source.delete([file.source for file in done.files])
        return done
