"""Define the context of a table: the ports and the definition of the table as one value; and name its commit users."""

from __future__ import annotations

from attrs import evolve, field, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO


@frozen
class TableContext:
    """The engine that gives access to storage, and the table that an operation reads or changes.

    The value is immutable and picklable where the engine is, so that a task may carry it to another process.
    """

    # the ports: files, formats, clock, executor and the others
    engine: Engine = field(eq=False)
    # the table at one version of its schema, with its effective options
    table: TableDefinition

    @property
    def files(self) -> FileIO:
        """The files of the engine."""
        return self.engine.files

    @property
    def paths(self) -> TablePaths:
        """The paths of the table's own files."""
        return self.table.paths

    @property
    def schema(self) -> TableSchema:
        """The schema of the table at this version."""
        return self.table.schema

    @property
    def options(self) -> TableOptions:
        """The effective options of the table."""
        return self.table.options

    def at_schema(self, schema: TableSchema) -> TableContext:
        """Return the context of the same table at another version of its schema."""
        return evolve(self, table=self.table.at_schema(schema))

    def at_branch(self, name: str) -> TableContext:
        """Return the context of the files of another branch; schema and options stay those of this branch."""
        return evolve(self, table=self.table.at_paths(TablePaths(self.table.location, name)))

    def with_engine(self, engine: Engine) -> TableContext:
        """Return a context of the same table with other ports."""
        return evolve(self, engine=engine)

    def for_tasks(self, tasks: int) -> TableContext:
        """Return the context for each of several tasks of the executor, which share the memory budget."""
        return evolve(self, engine=evolve(self.engine, memory=self.engine.memory.share(tasks)))

    def with_half_memory(self) -> TableContext:
        """Return the context for reads whose rows a writer with the other half of the memory budget takes."""
        return self.with_memory_share(2)

    def with_memory_share(self, parts: int) -> TableContext:
        """Return the context with one of so many equal parts of the memory budget."""
        memory = self.engine.memory
        return evolve(self, engine=evolve(self.engine, memory=evolve(memory, bytes=memory.bytes // parts)))

    def with_table(self, table: TableDefinition) -> TableContext:
        """Return a context of the same engine for another definition, for instance of a branch."""
        return evolve(self, table=table)

    def with_hidden_rows(self) -> TableContext:
        """Return a context whose reads include the rows of level 0 that they otherwise skip before a compaction."""
        options = self.options.with_values({"deletion-vectors.merge-on-read": "true"})
        return self.with_table(evolve(self.table, options=options))


def commit_user_of(
    context: TableContext, commit_user: str | None, commit_identifier: int = BATCH_COMMIT_IDENTIFIER
) -> str:
    """Return the commit user that was given, else a new one with the prefix of `commit.user-prefix`.

    Raises InvalidRequest if the user is an empty text, or if it is missing although there is an identifier.
    """
    if commit_user is None and commit_identifier != BATCH_COMMIT_IDENTIFIER:
        raise missing_user_error("identifier")
    if commit_user == "":
        raise InvalidRequest("'commit_user' is empty.", subject="commit_user", hint="give a name, or leave it out")
    if commit_user is not None:
        return commit_user
    prefix = context.options.get("commit.user-prefix")
    user = context.engine.ids.uuid()
    return f"{prefix}_{user}" if prefix else user


def missing_user_error(argument: str) -> InvalidRequest:
    """Return the error for a commit identifier without a user: with a new user, no repeated commit is recognized."""
    return InvalidRequest(
        f"Argument {argument!r} has no effect without a commit user.",
        subject=argument,
        hint=f"name the job with 'commit_user', or leave {argument!r} out",
    )
